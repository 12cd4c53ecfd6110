/* Faults whose handler prints where they happened and with which registers and flags, then goes on by advancing RIP.
 * Memory around the forbidden page is zero, so that partly executed string instructions compare equal until they fault. */
#include "common.h"
#include <signal.h>
#include <sys/mman.h>
#include <ucontext.h>

struct fault { const char *name; void (*run)(void *bad); char *at, *next; };
extern const struct fault faults[];
extern uint64_t fault_rsp;
extern char fault_bytes[];

static char *forbidden;
static const struct fault *current;
static char first[64][1024]; /* what each fault looked like in the first round: all later ones must be the same */
static int faulted;

/* Addresses are printed relative to what they belong to. */
static int describe(char *into, size_t size, uint64_t value) {
    if (value - (uintptr_t)forbidden + 4096 < 3 * 4096) return snprintf(into, size, "bad%+ld", (long)(value - (uintptr_t)forbidden));
    if (value - (uintptr_t)current->at + 128 < 256) return snprintf(into, size, "pc%+ld", (long)(value - (uintptr_t)current->at));
    if (value - fault_rsp + 128 < 256) return snprintf(into, size, "sp%+ld", (long)(value - fault_rsp));
    if (value - (uintptr_t)fault_bytes < 256) return snprintf(into, size, "bytes%+ld", (long)(value - (uintptr_t)fault_bytes));
    return snprintf(into, size, "%lx", value);
}
static void handler(int signo, siginfo_t *info, void *context) {
    static const struct { const char *name; int index; } shown[] = {
        {"pc", REG_RIP}, {"ax", REG_RAX}, {"bx", REG_RBX}, {"cx", REG_RCX}, {"dx", REG_RDX}, {"si", REG_RSI}, {"di", REG_RDI},
        {"bp", REG_RBP}, {"sp", REG_RSP}, {"8", REG_R8}, {"9", REG_R9}, {"10", REG_R10}, {"11", REG_R11}, {"12", REG_R12},
        {"13", REG_R13}, {"14", REG_R14}, {"15", REG_R15}, {"trap", REG_TRAPNO}, {"err", REG_ERR}};
    greg_t *registers = ((ucontext_t *)context)->uc_mcontext.gregs;
    char line[1024];
    int n = snprintf(line, sizeof line, "%s: signal %d code %d flags %lx", current->name, signo, info->si_code, (long)registers[REG_EFL] & 0xcd5);
    if (signo == SIGSEGV || signo == SIGBUS) {
        n += snprintf(line + n, sizeof line - n, " addr ");
        n += describe(line + n, sizeof line - n, (uintptr_t)info->si_addr);
    }
    for (size_t i = 0; i < sizeof shown / sizeof *shown; i++) {
        n += snprintf(line + n, sizeof line - n, " %s ", shown[i].name);
        n += describe(line + n, sizeof line - n, registers[shown[i].index]);
    }
    n += snprintf(line + n, sizeof line - n, "\n");
    if (strcmp(line, first[current - faults]) != 0) {
        strcpy(first[current - faults], line);
        MUST(write(1, line, n) == n);
    }
    registers[REG_RIP] = (uintptr_t)current->next;
    registers[REG_RSP] = fault_rsp;
    faulted++;
}

int main(void) {
    char *pages = mmap(0, 3 * 4096, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    MUST(pages != MAP_FAILED);
    forbidden = pages + 4096;
    static char stack[65536];
    stack_t alternate = {.ss_sp = stack, .ss_size = sizeof stack};
    MUST(mprotect(forbidden, 4096, PROT_NONE) == 0 && sigaltstack(&alternate, 0) == 0);
    struct sigaction action = {.sa_sigaction = handler, .sa_flags = SA_SIGINFO | SA_ONSTACK};
    static const int signals[] = {SIGSEGV, SIGBUS, SIGFPE, SIGILL, SIGTRAP};
    for (int i = 0; i < 5; i++) MUST(sigaction(signals[i], &action, 0) == 0);
    uint64_t sum = 0, rounds = scaled(250);
    for (uint64_t round = 0; round < rounds; round++) {
        for (current = faults; current->name; current++) {
            int before = faulted;
            sum = churn(sum, 500 + round * 7);
            /* rep_stos_down and the like change memory up to the fault: back to the same start */
            memset(pages, 0, 4096), memset(pages + 2 * 4096, 0, 4096);
            current->run(forbidden);
            MUST(faulted == before + 1);
        }
    }
    printf("faults %d sum %016lx\n", faulted, sum);
    return 0;
}
