/* A sandbox with a filter: a few system calls pass, getppid fails with a chosen error, everything else kills the process. */
#include "common.h"
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <stddef.h>
#include <sys/prctl.h>
#include <sys/syscall.h>

#define PASS(number) BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, number, 0, 1), BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW)

int main(void) {
    struct sock_filter filter[] = {
        BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
        PASS(SYS_write), PASS(SYS_exit_group), PASS(SYS_rt_sigreturn), PASS(SYS_clock_gettime),
        BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_getppid, 0, 1),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | 77),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_KILL_PROCESS)};
    struct sock_fprog program = {sizeof filter / sizeof *filter, filter};
    uint64_t sum = churn(1, scaled(1000000)), rounds = scaled(100);
    MUST(prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == 0);
    MUST(prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program) == 0);
    for (uint64_t i = 0; i < rounds; i++) {
        sum = churn(sum, 20000);
        MUST(syscall(SYS_getppid) == -1 && errno == 77);
    }
    char text[80];
    int n = snprintf(text, sizeof text, "inside %016lx\n", sum);
    MUST(write(1, text, n) == n);
    _exit(6);
}
