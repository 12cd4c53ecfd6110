/* Executes itself a number of times, by execv, from a thread, by descriptor, and with another environment. */
#include "common.h"
#include <fcntl.h>
#include <pthread.h>
#include <sys/syscall.h>

extern char **environ;
static char *arguments[4], *self;

static void *exec_in_thread(void *unused) {
    (void)unused;
    execv(self, arguments);
    return 0;
}

int main(int argc, char **argv) {
    uint64_t left = argc > 1 ? strtoull(argv[1], 0, 10) : scaled(12), sum = argc > 2 ? strtoull(argv[2], 0, 16) : 1;
    sum = churn(sum, 150000);
    printf("left %lu sum %016lx pid kept %s\n", left, sum, argc < 2 || getenv("FIRST_PID") == 0 || atoi(getenv("FIRST_PID")) == getpid() ? "yes" : "no");
    fflush(stdout);
    if (left == 0) return 3;
    char next[24], carried[24], pid[32];
    snprintf(next, sizeof next, "%lu", left - 1);
    snprintf(carried, sizeof carried, "%lx", sum);
    snprintf(pid, sizeof pid, "FIRST_PID=%d", getpid());
    self = argv[0];
    arguments[0] = argv[0], arguments[1] = next, arguments[2] = carried;
    if (left % 4 == 0) {
        char *environment[] = {pid, 0};
        execve(self, arguments, environment);
    } else if (left % 4 == 1) {
        int fd = open(self, O_RDONLY | O_CLOEXEC);
        MUST(fd >= 0);
        fexecve(fd, arguments, environ);
    } else if (left % 4 == 2) {
        pthread_t thread;
        MUST(pthread_create(&thread, 0, exec_in_thread, 0) == 0);
        for (;;) sum = churn(sum, 1000) + (pthread_join(thread, 0) == 0);
    }
    execv(self, arguments);
    return BROKEN;
}
