/* longjmp out of deep recursion, and one setjmp whose second return comes after a long computation. */
#include "common.h"
#include <setjmp.h>

static jmp_buf here, far_back;
static volatile int stop = -1;

static NOINLINE uint64_t dive(uint64_t x, int depth) {
    if (depth == 0) longjmp(here, (int)(churn(x, 100) % 1000) + 1);
    uint64_t below = depth == stop ? 0 : dive(x + depth, depth - 1);
    return below * 3 + x;
}

int main(void) {
    volatile uint64_t sum = 0, visits = 0;
    uint64_t rounds = scaled(1500);
    int again = setjmp(far_back);
    visits++;
    for (volatile uint64_t i = 0; i < rounds; i++) {
        int value = setjmp(here);
        if (value == 0) dive(i, 5 + i % 60);
        sum = mix(sum + value) + churn(sum, 500);
    }
    sum = churn(sum, scaled(300000));
    if (again < 3) longjmp(far_back, again + 1);
    printf("visits %lu last %d sum %016lx\n", visits, again, sum);
    return 0;
}
