/* Prints the signal handlers, masks, pending signals and alternate stack that it finds, in main and in a thread. */
#include "common.h"
#include <pthread.h>
#include <signal.h>
#include <sys/syscall.h>

static void signals(void) {
    sigset_t mask;
    MUST(sigprocmask(SIG_BLOCK, 0, &mask) == 0);
    for (int s = 1; s <= 64; s++) {
        struct { void *handler; unsigned long flags; void *restorer; unsigned long mask; } now = {0};
        MUST(syscall(SYS_rt_sigaction, s, 0, &now, 8) == 0);
        if (now.handler || now.flags || now.mask || sigismember(&mask, s) == 1)
            printf("signal %d handler %s flags %lx mask %lx blocked %d\n", s, now.handler == SIG_IGN ? "ignore" : now.handler ? "set" : "default", now.flags, now.mask, sigismember(&mask, s));
    }
    stack_t alternate;
    MUST(sigaltstack(0, &alternate) == 0);
    printf("alternate stack %s\n", alternate.ss_flags & SS_DISABLE ? "none" : "set");
    MUST(sigpending(&mask) == 0);
    for (int s = 1; s <= 64; s++) MUST(sigismember(&mask, s) != 1);
}
static void status(void) {
    static const char *const fields[] = {"SigPnd:", "ShdPnd:", "SigBlk:", "SigIgn:", "SigCgt:"};
    FILE *file = fopen("/proc/self/status", "r");
    char line[512];
    MUST(file != 0);
    while (fgets(line, sizeof line, file))
        for (size_t i = 0; i < sizeof fields / sizeof *fields; i++)
            if (strncmp(line, fields[i], strlen(fields[i])) == 0) fputs(line, stdout);
    fclose(file);
}
static void *in_thread(void *unused) {
    (void)unused;
    churn(2, scaled(1000000));
    signals();
    return 0;
}

int main(void) {
    signals();
    uint64_t sum = churn(1, scaled(2000000));
    signals();
    status();
    pthread_t thread;
    MUST(pthread_create(&thread, 0, in_thread, 0) == 0 && pthread_join(thread, 0) == 0);
    printf("sum %016lx\n", sum);
    return 0;
}
