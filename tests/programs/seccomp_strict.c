/* After the strict mode is on, any system call but read, write, exit and sigreturn kills: also one made on our behalf. */
#include "common.h"
#include <linux/seccomp.h>
#include <sys/prctl.h>
#include <sys/syscall.h>


int main(void) {
    uint64_t sum = churn(1, scaled(1000000)), rounds = scaled(100);
    char text[80];
    MUST(write(1, "before\n", 7) == 7);
    MUST(prctl(PR_SET_SECCOMP, SECCOMP_MODE_STRICT) == 0);
    for (uint64_t i = 0; i < rounds; i++) sum = churn(sum, 20000);
    int n = snprintf(text, sizeof text, "inside %016lx\n", sum);
    MUST(write(1, text, n) == n);
    syscall(SYS_exit, 5);
    return BROKEN;
}
