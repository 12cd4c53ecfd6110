// Everything that C compilers make odd code of: what it prints depends on all of it.
#include <setjmp.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

static volatile long sink;
#define APART __attribute__((noinline))

APART static long down(long n) { return n ? down(n - 1) + n % 3 : 0; }
APART static int odd(long n);
APART static int even(long n) { return n == 0 ? 1 : odd(n - 1); }
APART static int odd(long n) { return n == 0 ? 0 : even(n - 1); }

APART static long sum(const long *a, long n) {
    long s = 0;
    for (long i = 0; i < n; i++) s += a[i] ^ (s >> 3);
    return s;
}

APART static long chosen(long kind, long x) {
    switch (kind) {
    case 0: return x + 1;
    case 1: return x * 3;
    case 2: return x ^ 0x55;
    case 3: x -= 7; /* falls */
    case 4: return x << 1;
    case 5: return -x;
    case 6: return sum(&x, 1);
    case 9: return x / 3;
    case 10: return x % 11;
    case 11: return down(x & 7);
    default: return x;
    }
}

// A switch in a loop whose cases go round again.
APART static long automaton(const char *text) {
    long state = 0, words = 0;
again:
    switch (*text++) {
    case 'a': state++; goto again;
    case 'b': state ^= 3; goto again;
    case 'c': words += state; goto again;
    case 'd': if (state > 4) state -= 4; goto again;
    case 'e': words = -words; goto again;
    case ' ': words++; state = 0; goto again;
    case 0: return words * 100 + state;
    default: state += 2; goto again;
    }
}

// An interpreter with computed gotos.
APART static long interpret(const unsigned char *code, long n) {
    static const void *const places[] = {&&add, &&twice, &&dec, &&loop, &&swap, &&stop};
    long a = 1, b = 2;
    const unsigned char *at = code;
#define NEXT goto *places[*at++]
    NEXT;
add: a += b; NEXT;
twice: b = (b * 2) & 0xffff; NEXT;
dec: n--; NEXT;
loop: if (n > 0) at = code; NEXT;
swap: { long t = a; a = b; b = t & 0xfffff; } NEXT;
stop: return a ^ b;
}

static int by_value(const void *a, const void *b) {
    long x = *(const long *)a, y = *(const long *)b;
    return (x > y) - (x < y);
}

static jmp_buf back;
APART static void leap(int n) {
    if (n > 3) longjmp(back, n);
    sink += n;
    leap(n + 1);
}

static void handler(int number) { sink += number; }

typedef long (*function)(long, long);
static function const all[] = {chosen};

int main(int argc, char **argv) {
    long n = argc > 1 ? atol(argv[1]) : 100, a[257];
    for (long i = 0; i < 257; i++) a[i] = (i * 7919) % 1009;
    qsort(a, 257, sizeof *a, by_value);
    long total = 0;
    for (long i = 0; i < n; i++) total += all[0](i % 13, i) + chosen(i % 7, total & 255);
    printf("%ld %ld %d %ld\n", total, down(n), even(n), sum(a, 257));
    char text[64];
    for (long i = 0; i < 63; i++) text[i] = "abcde fgh"[i * i % 9];
    text[63] = 0;
    printf("%ld\n", automaton(text));
    static const unsigned char code[] = {0, 1, 4, 2, 3, 5};
    printf("%ld\n", interpret(code, n));
    volatile int times = 0;
    if (setjmp(back) < 10 && ++times < 5) leap(0);
    signal(SIGUSR1, handler);
    for (int i = 0; i < 5; i++) raise(SIGUSR1);
    fflush(stdout);
    pid_t child = fork();
    if (child == 0) _exit(7);
    int status;
    waitpid(child, &status, 0);
    char *copy = malloc(4096);
    memset(copy, 'x', 4095);
    copy[4095] = 0;
    printf("%d %ld %d %zu %s\n", times, sink, WEXITSTATUS(status), strlen(copy), strstr("in a haystack", "hay"));
    printf("%a %.17g\n", (double)n / 3, strtod("2.718281828459045", 0));
    free(copy);
    return 0;
}
