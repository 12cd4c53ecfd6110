/* Calls whose number is known: prints the addresses of its functions, then makes them, and as many
   more as its argument says. */
#include <setjmp.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>

static volatile long sink;
static volatile long three = 3;
static jmp_buf out;

__attribute__((noinline)) static void leaf(long n) { sink += n; }
__attribute__((noinline)) static void middle(long n) {
    for (long i = 0; i < three; i++) leaf(i + n);
    sink++;
}
__attribute__((noinline)) static void other(long n) {
    leaf(n);
    sink++;
}
__attribute__((noinline)) static long recurse(long n) {
    if (n == 0) return 0;
    long deeper = recurse(n - 1);
    leaf(n);
    return deeper + sink;
}
__attribute__((noinline)) static void thrower(long n) {
    if (n == 0) longjmp(out, 1);
    thrower(n - 1);
    sink++;
}
__attribute__((noinline)) static void handler(int signal) { leaf(signal); }
__attribute__((noinline)) static int compare(const void *a, const void *b) {
    return *(const char *)a - *(const char *)b;
}
__attribute__((noinline)) static void work(void) {
    for (long i = 0; i < 1000; i++) middle(i);
    for (long i = 0; i < 500; i++) other(i);
    for (long i = 0; i < 20; i++) sink += recurse(10);
    for (long i = 0; i < 7; i++) {
        if (setjmp(out) == 0) thrower(5);
        leaf(i);
    }
    for (long i = 0; i < 4; i++) raise(SIGUSR1);
    char letters[] = "badc";
    qsort(letters, 4, 1, compare);
    for (long i = 0; i < 30; i++) sink += rand();
}

int main(int argc, char **argv) {
    signal(SIGUSR1, handler);
    printf("leaf %p middle %p other %p recurse %p thrower %p handler %p work %p main %p\n", (void *)leaf,
           (void *)middle, (void *)other, (void *)recurse, (void *)thrower, (void *)handler, (void *)work,
           (void *)main);
    fflush(stdout);
    work();
    for (long more = argc > 1 ? atol(argv[1]) : 0; more > 0; more--) middle(more);
    return 0;
}
