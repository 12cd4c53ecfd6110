/* System calls that fail with EINTR when a signal handler runs: allowed only for the program's own timers. */
#include "common.h"
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <sys/epoll.h>
#include <sys/time.h>
#include <time.h>

static volatile uint64_t alarms;
static void on_alarm(int signo) { (void)signo; alarms++; }

/* Feeds a pipe in small pieces with pauses and burns CPU in between, so that triggers fall due everywhere. */
static void *feed(void *fd) {
    uint64_t sum = 3, rounds = scaled(100);
    for (uint64_t i = 0; i < rounds; i++) {
        sum = churn(sum, 5000);
        nanosleep(&(struct timespec){0, 300000}, 0);
        MUST(write((int)(intptr_t)fd, "x", 1) == 1);
    }
    close((int)(intptr_t)fd);
    return (void *)sum;
}
static uint64_t interrupted;
static void tally(int result) {
    if (result < 0) {
        MUST(errno == EINTR);
        interrupted++;
    }
}

int main(void) {
    int pipes[2], nothing = epoll_create1(EPOLL_CLOEXEC);
    pthread_t feeder;
    MUST(pipe(pipes) == 0 && pthread_create(&feeder, 0, feed, (void *)(intptr_t)pipes[1]) == 0);
    uint64_t sum = 1, bytes = 0;
    for (;;) {
        sum = churn(sum, 8000);
        struct pollfd one = {pipes[0], POLLIN, 0};
        tally(poll(&one, 1, 1));
        tally(nanosleep(&(struct timespec){0, 50000}, 0));
        tally(usleep(20));
        tally(epoll_wait(nothing, &(struct epoll_event){0}, 1, 0));
        char byte;
        int n = read(pipes[0], &byte, 1);
        tally(n);
        if (n == 0) break;
        bytes += n > 0;
    }
    void *fed;
    MUST(pthread_join(feeder, &fed) == 0);
    printf("no timer: %lu bytes, interrupted %lu, sums %016lx %016lx\n", bytes, interrupted, sum, (uint64_t)fed);

    struct sigaction action = {.sa_handler = on_alarm};
    MUST(sigaction(SIGALRM, &action, 0) == 0);
    sigset_t block, none;
    sigemptyset(&none);
    sigemptyset(&block);
    sigaddset(&block, SIGALRM);
    MUST(sigprocmask(SIG_BLOCK, &block, 0) == 0);
    uint64_t rounds = scaled(20), eintr = 0;
    for (uint64_t i = 0; i < rounds; i++) { /* the alarm gets in only while ppoll or sigsuspend waits */
        struct itimerval once = {{0, 0}, {0, 1000}};
        MUST(setitimer(ITIMER_REAL, &once, 0) == 0);
        sum = churn(sum, 20000);
        int result = i % 2 ? sigsuspend(&none) : ppoll(0, 0, &(struct timespec){10, 0}, &none);
        MUST(result == -1 && errno == EINTR);
        eintr++;
        MUST(alarms == i + 1);
    }
    printf("own timer: %lu alarms, %lu interrupted, sum %016lx\n", alarms, eintr, sum);

    MUST(sigprocmask(SIG_UNBLOCK, &block, 0) == 0);
    action.sa_flags = SA_RESTART;
    MUST(sigaction(SIGVTALRM, &action, 0) == 0 && sigaction(SIGPROF, &action, 0) == 0);
    struct itimerval often = {{0, 2000}, {0, 2000}}, off = {{0, 0}, {0, 0}};
    uint64_t before = alarms;
    MUST(setitimer(ITIMER_VIRTUAL, &often, 0) == 0 && setitimer(ITIMER_PROF, &often, 0) == 0);
    while (alarms < before + 4) sum ^= churn(5, 1000);
    MUST(setitimer(ITIMER_VIRTUAL, &off, 0) == 0 && setitimer(ITIMER_PROF, &off, 0) == 0);
    printf("CPU timers run\n");
    return 0;
}
