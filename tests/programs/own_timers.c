/* A program with CPU-time timers of its own (a profiler, a watchdog), blocking waits for signals, and clocks. */
#include "common.h"
#include <signal.h>
#include <sys/signalfd.h>
#include <sys/time.h>
#include <time.h>

static volatile uint64_t fired, foreign;
static void handler(int signo, siginfo_t *info, void *context) {
    (void)signo, (void)context;
    if (info->si_code == SI_TIMER && info->si_value.sival_int == 4711) fired++;
    else foreign++;
}

int main(void) {
    struct sigaction action = {.sa_sigaction = handler, .sa_flags = SA_SIGINFO | SA_RESTART};
    MUST(sigaction(SIGRTMIN + 1, &action, 0) == 0);
    struct sigevent event = {.sigev_notify = SIGEV_SIGNAL, .sigev_signo = SIGRTMIN + 1, .sigev_value.sival_int = 4711};
    timer_t timer;
    MUST(timer_create(CLOCK_THREAD_CPUTIME_ID, &event, &timer) == 0);
    struct itimerspec often = {{0, 4000000}, {0, 4000000}}, left;
    MUST(timer_settime(timer, 0, &often, 0) == 0);
    uint64_t sum = 0;
    while (fired < 3) sum ^= churn(5, 1000);
    MUST(timer_gettime(timer, &left) == 0 && left.it_interval.tv_nsec == 4000000 && timer_delete(timer) == 0);
    uint64_t total = fired;
    sum = churn(7, scaled(1000000));
    MUST(fired <= total + 1 && foreign == 0);

    sigset_t waited;
    sigemptyset(&waited);
    sigaddset(&waited, SIGUSR1);
    MUST(sigprocmask(SIG_BLOCK, &waited, 0) == 0);
    int fd = signalfd(-1, &waited, SFD_CLOEXEC), got, signalled = 0;
    for (uint64_t i = 0, rounds = scaled(100); i < rounds; i++) {
        sum = churn(sum, 5000);
        kill(getpid(), SIGUSR1);
        struct signalfd_siginfo info;
        if (i % 2) MUST(sigwait(&waited, &got) == 0 && got == SIGUSR1);
        else MUST(read(fd, &info, sizeof info) == sizeof info && info.ssi_signo == SIGUSR1);
        signalled++;
    }
    struct timespec before, now; /* clocks go forward, through the vdso */
    MUST(clock_gettime(CLOCK_MONOTONIC, &before) == 0);
    for (uint64_t i = 0, rounds = scaled(200000); i < rounds; i++) {
        MUST(clock_gettime(CLOCK_MONOTONIC, &now) == 0);
        MUST(now.tv_sec > before.tv_sec || (now.tv_sec == before.tv_sec && now.tv_nsec >= before.tv_nsec));
        before = now;
    }
    struct timeval day;
    MUST(gettimeofday(&day, 0) == 0 && time(0) - day.tv_sec <= 1);
    printf("timers fired, foreign %lu, signals %d, sum %016lx\n", foreign, signalled, sum);
    return 0;
}
