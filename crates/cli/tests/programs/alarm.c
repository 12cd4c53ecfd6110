/* Works in one function for two seconds of CPU time, whatever the machine, and gets a signal every millisecond, whose handler takes
   next to no time. */
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/time.h>
#include <time.h>

static volatile unsigned long ticks;

__attribute__((noinline)) void handler(int signal) { ticks += signal; }

__attribute__((noinline)) unsigned long spin(unsigned long rounds) {
    volatile unsigned long sum = 0;
    for (unsigned long i = 0; i < rounds; i++)
        sum += i;
    return sum;
}

int main(void) {
    struct sigaction action;
    memset(&action, 0, sizeof action);
    action.sa_handler = handler;
    sigaction(SIGALRM, &action, 0);
    struct itimerval every = {{0, 1000}, {0, 1000}};
    setitimer(ITIMER_REAL, &every, 0);
    unsigned long sum = 0;
    while (clock() < 2 * CLOCKS_PER_SEC)
        sum += spin(20000000);
    printf("%lu\n", sum);
    return ticks == 0;
}
