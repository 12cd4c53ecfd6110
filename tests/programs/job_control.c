/* Waits for children that stop and go on, as shells do; the child works between stops. */
#include "common.h"
#include <signal.h>
#include <sys/wait.h>

static volatile sig_atomic_t continued;
static void on_continue(int signo) { (void)signo; continued++; }

static void child(void) {
    struct sigaction action = {.sa_handler = on_continue};
    MUST(sigaction(SIGCONT, &action, 0) == 0);
    uint64_t sum = 7, rounds = scaled(20);
    for (uint64_t i = 0; i < rounds; i++) {
        sum = churn(sum, 150000);
        raise(i % 2 ? SIGSTOP : SIGTSTP);
    }
    _exit(continued == (int)rounds ? sum & 63 : BROKEN);
}

int main(void) {
    /* A group of its own within our session: SIGTSTP is ignored in groups nobody could continue. */
    pid_t pid = fork();
    MUST(pid >= 0);
    if (pid == 0) {
        setpgid(0, 0);
        child();
    }
    int status, stops = 0, signals = 0;
    for (;;) {
        MUST(waitpid(pid, &status, WUNTRACED | WCONTINUED) == pid);
        if (WIFSTOPPED(status)) {
            stops++;
            signals += WSTOPSIG(status);
            MUST(kill(pid, SIGCONT) == 0);
        } else if (!WIFCONTINUED(status)) { /* how often that is seen depends on timing: the next stop may overtake it */
            break;
        }
    }
    printf("stops %d signals %d exited %d status %d\n", stops, signals, WIFEXITED(status), WEXITSTATUS(status));
    return 0;
}
