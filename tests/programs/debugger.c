/* A small debugger: traces a child of its own with ptrace, counts its stops and steps through a few of its instructions. */
#include "common.h"
#include <signal.h>
#include <sys/ptrace.h>
#include <sys/user.h>
#include <sys/wait.h>

static NOINLINE void child(void) {
    MUST(ptrace(PTRACE_TRACEME, 0, 0, 0) == 0);
    raise(SIGSTOP);
    for (int i = 0; i < 20; i++) {
        churn(i, 60000);
        asm volatile("int3");
    }
    _exit(17);
}

int main(void) {
    uint64_t sum = churn(1, scaled(1000000));
    pid_t pid = fork();
    if (pid == 0) child();
    int status, breakpoints = 0, steps = 0, stops = 0;
    MUST(pid > 0);
    for (int next = PTRACE_CONT;;) {
        MUST(waitpid(pid, &status, 0) == pid);
        if (!WIFSTOPPED(status)) break;
        struct user_regs_struct registers;
        MUST(ptrace(PTRACE_GETREGS, pid, 0, &registers) == 0);
        if (WSTOPSIG(status) == SIGSTOP) {
            stops++;
            for (int i = 0; i < 50; i++) {
                MUST(ptrace(PTRACE_SINGLESTEP, pid, 0, 0) == 0 && waitpid(pid, &status, 0) == pid);
                MUST(WIFSTOPPED(status) && WSTOPSIG(status) == SIGTRAP);
                steps++;
            }
        } else if (WSTOPSIG(status) == SIGTRAP) {
            long before = ptrace(PTRACE_PEEKTEXT, pid, registers.rip - 1, 0);
            MUST((before & 0xff) == 0xcc);
            breakpoints++;
        }
        sum = churn(sum, 5000);
        MUST(ptrace(next, pid, 0, 0) == 0);
    }
    printf("stops %d steps %d breakpoints %d status %d sum %016lx\n", stops, steps, breakpoints, WEXITSTATUS(status), sum);
    return 0;
}
