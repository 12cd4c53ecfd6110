// Whose checks are known: each part runs as often as its argument says.
#include <stdlib.h>
#include <unistd.h>

static volatile long sink;
#define APART __attribute__((noinline, noipa))

APART static long leaf(long n) { return n + sink; }
APART static long down(long n) { return n ? down(n - 1) + 1 : 0; }
APART static void loop(long n) { for (long i = 0; i < n; i++) sink = leaf(i); }
APART static void boring(long n) { for (long i = 0; i < n; i++) sink = i; }
APART static long pointed(long n) { sink = n; return leaf(n) + leaf(n + 1); }
static long (*volatile pointer)(long) = pointed;
APART static void through(long n) { for (long i = 0; i < n; i++) sink = pointer(i); }

int main(int argc, char **argv) {
    long n = argc > 2 ? atol(argv[2]) : 0;
    switch (argv[1][0]) {
    case 'd': down(n); break;
    case 'l': loop(n); break;
    case 'b': boring(n); break;
    case 't': through(n); break;
    }
    return 0;
}
