/* Recovery from SIGSEGV and SIGFPE by siglongjmp, from a plain and from an alternate stack. */
#include "common.h"
#include <setjmp.h>
#include <signal.h>
#include <sys/mman.h>

static sigjmp_buf back;
static volatile uint64_t caught[65];

static void handler(int signo) {
    caught[signo]++;
    siglongjmp(back, signo);
}
static NOINLINE uint64_t poke(volatile uint64_t *page, uint64_t i, uint64_t depth) {
    if (depth) return poke(page, i, depth - 1) + depth;
    uint64_t local = churn(i, 200);
    if (i % 3 == 0) return page[i % 512];
    if (i % 3 == 1) page[i % 512] = local;
    return local / (i % 3 - 2);
}

int main(void) {
    uint64_t *page = mmap(0, 4096, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    MUST(page != MAP_FAILED);
    static char stack[32768];
    stack_t alternate = {.ss_sp = stack, .ss_size = sizeof stack};
    MUST(sigaltstack(&alternate, 0) == 0);
    struct sigaction action = {.sa_handler = handler};
    volatile uint64_t sum = 0;
    uint64_t rounds = scaled(3000);
    for (volatile uint64_t i = 0; i < rounds; i++) {
        action.sa_flags = i & 1 ? SA_ONSTACK : 0;
        MUST(sigaction(SIGSEGV, &action, 0) == 0 && sigaction(SIGFPE, &action, 0) == 0);
        int signo = sigsetjmp(back, 1);
        if (signo == 0) {
            sum += poke(page, i, i % 20);
            MUST(!"a fault was expected");
        }
        sum = mix(sum + signo) + churn(i, 1000) % 7;
        sigset_t mask;
        MUST(sigprocmask(SIG_BLOCK, 0, &mask) == 0 && !sigismember(&mask, signo));
    }
    printf("segv %lu fpe %lu sum %016lx\n", caught[SIGSEGV], caught[SIGFPE], sum);
    return 0;
}
