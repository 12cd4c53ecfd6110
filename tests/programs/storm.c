/* Signals come faster than anybody but the kernel can pass them on: a timer of 50 us,
 * or of the time given. What the program computes, in the processor's
 * registers and in memory, must be right, and it must come to its end. */
#include "common.h"
#include <signal.h>
#include <sys/time.h>

static volatile uint64_t signals;
static void handler(int signo) {
    (void)signo;
    signals++;
}

static void often(int us) {
    struct itimerval timer = {{0, us}, {0, us}};
    MUST(setitimer(ITIMER_REAL, &timer, 0) == 0);
}

int main(int argc, char **argv) {
    struct sigaction action = {.sa_handler = handler, .sa_flags = SA_RESTART};
    MUST(sigaction(SIGALRM, &action, 0) == 0);
    uint64_t quiet = 0, stormy = 0, rounds = scaled(60);
    double half = 0;
    for (uint64_t i = 0; i < rounds; i++) quiet = mix(quiet ^ churn(i, 20000));
    often(argc > 1 ? atoi(argv[1]) : 50);
    for (uint64_t i = 0; i < rounds; i++) {
        stormy = mix(stormy ^ churn(i, 20000));
        for (int k = 0; k < 1000; k++) half = half / 2 + k % 7;
    }
    often(0);
    MUST(signals > 0 && quiet == stormy);
    printf("%lu rounds, sum %016lx, %.9f\n", rounds, stormy, half);
    return 0;
}
