/* Ends in the way its argument says, after some work and unflushed output: exit N, _exit N, signal N, abort, trap, ... */
#include "common.h"
#include <pthread.h>
#include <signal.h>
#include <sys/resource.h>
#include <sys/syscall.h>

static const char *how;
static int number;

static void *work_forever(void *seed) {
    volatile uint64_t sum = (uintptr_t)seed;
    while (sum != 1) {
        sum = churn(sum, 1000) | 2;
        pthread_testcancel();
    }
    return 0;
}
static void *end_here(void *unused) {
    (void)unused;
    churn(1, scaled(200000));
    if (strcmp(how, "thread-exit") == 0) exit(number);
    if (strcmp(how, "thread-kill") == 0) raise(number);
    return 0;
}
static void last_words(void) { printf("at exit %016lx\n", churn(3, scaled(200000))); }

static int end(void) {
    if (strcmp(how, "exit") == 0) exit(number);
    if (strcmp(how, "_exit") == 0) fflush(stdout), _exit(number);
    if (strcmp(how, "raw-exit") == 0) fflush(stdout), syscall(SYS_exit, number); /* ends only this thread */
    if (strcmp(how, "return") == 0) return number;
    fflush(stdout);
    if (strcmp(how, "signal") == 0) kill(getpid(), number);
    if (strcmp(how, "abort") == 0) abort();
    if (strcmp(how, "trap") == 0) asm volatile("int3");
    if (strcmp(how, "illegal") == 0) asm volatile("ud2");
    if (strcmp(how, "null") == 0) *(volatile int *)(uintptr_t)number = 1;
    if (strcmp(how, "divide") == 0) asm volatile("div %0" ::"r"((uint64_t)number) : "rax", "rdx", "cc");
    if (strcmp(how, "pipe") == 0) {
        int ends[2];
        MUST(pipe(ends) == 0 && close(ends[0]) == 0);
        MUST(write(ends[1], "x", 1) != 1);
    }
    if (strncmp(how, "thread", 6) == 0) {
        pthread_t threads[2];
        MUST(pthread_create(&threads[0], 0, work_forever, 0) == 0 && pthread_create(&threads[1], 0, end_here, 0) == 0);
        if (strcmp(how, "thread-leader") == 0) { /* main goes first, another thread decides the status */
            pthread_cancel(threads[0]);
            pthread_exit(0);
        }
        for (;;) pause();
    }
    return BROKEN;
}

int main(int argc, char **argv) {
    MUST(argc == 3);
    how = argv[1], number = atoi(argv[2]);
    struct rlimit none = {0, 0};
    MUST(setrlimit(RLIMIT_CORE, &none) == 0);
    MUST(atexit(last_words) == 0);
    printf("%s %d %016lx\n", how, number, churn(2, scaled(2000000)));
    return end();
}
