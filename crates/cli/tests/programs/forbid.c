// Forbids system calls to itself as a container does, then runs a program: forbid ERRNO CALL... -- PROGRAM ARGUMENT...
#include <errno.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>
int main(int argc, char **argv) {
    int error = argc > 1 ? atoi(argv[1]) : 0, at = 2;
    struct sock_filter f[64] = {BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr))};
    unsigned short n = 1;
    for (; at < argc && strcmp(argv[at], "--"); at++) {
        unsigned nr = !strcmp(argv[at], "ptrace") ? SYS_ptrace : !strcmp(argv[at], "perf") ? SYS_perf_event_open : (unsigned)atoi(argv[at]);
        f[n++] = (struct sock_filter)BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, nr, 0, 1);
        f[n++] = (struct sock_filter)BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | error);
    }
    f[n++] = (struct sock_filter)BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW);
    struct sock_fprog p = {n, f};
    if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) || prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &p)) { perror("seccomp"); return 98; }
    execvp(argv[at + 1], argv + at + 1);
    perror("exec");
    return 97;
}
