/* Threads that wait for signals instead of handling them: sigwait, signalfd, sigtimedwait between pieces of work. They were born
 * with all signals blocked, and must see those that the program sends and no other, until the very end. */
#include "common.h"
#include <pthread.h>
#include <signal.h>
#include <sys/signalfd.h>
#include <time.h>

enum { SENT = 20 };

static sigset_t all;
static volatile int by_wait, by_file;

static void *waits(void *unused) {
    for (int sig; sigwait(&all, &sig) == 0;) {
        MUST(sig == SIGUSR1);
        by_wait++;
    }
    return unused;
}

static void *reads(void *unused) {
    int file = signalfd(-1, &all, SFD_CLOEXEC);
    struct signalfd_siginfo got;
    while (read(file, &got, sizeof got) == sizeof got) {
        MUST(got.ssi_signo == SIGUSR2);
        by_file++;
    }
    return unused;
}

static void *works(void *sum) {
    struct timespec none = {0, 0};
    sigset_t pending;
    for (uint64_t i = 0; i < scaled(40); i++) {
        *(uint64_t *)sum = churn(*(uint64_t *)sum, 60000);
        MUST(sigpending(&pending) == 0 && !sigismember(&pending, SIGURG));
        MUST(sigtimedwait(&all, NULL, &none) == -1 && errno == EAGAIN);
    }
    return NULL;
}

int main(void) {
    sigfillset(&all);
    MUST(pthread_sigmask(SIG_BLOCK, &all, NULL) == 0);
    pthread_t waiter, reader, worker[2];
    uint64_t sums[3] = {1, 2, 3};
    MUST(pthread_create(&waiter, NULL, waits, NULL) == 0);
    MUST(pthread_create(&reader, NULL, reads, NULL) == 0);
    for (int i = 0; i < 2; i++) MUST(pthread_create(&worker[i], NULL, works, &sums[i]) == 0);
    for (int i = 1; i <= SENT; i++) {
        sums[2] = churn(sums[2], scaled(20000));
        MUST(pthread_kill(waiter, SIGUSR1) == 0 && pthread_kill(reader, SIGUSR2) == 0);
        while (by_wait != i || by_file != i) usleep(100);
    }
    for (int i = 0; i < 2; i++) MUST(pthread_join(worker[i], NULL) == 0);
    printf("by sigwait %d by signalfd %d sums %016lx %016lx\n", by_wait, by_file, sums[0] ^ sums[1], sums[2]);
    return 0;
}
