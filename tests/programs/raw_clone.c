/* Tasks made by the clone system call without libc's knowledge: threads on bare stacks, and a child that shares memory only. */
#include "common.h"
#include <linux/futex.h>
#include <sched.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/wait.h>

enum { STACK = 65536, TASKS = 24 };
static volatile uint64_t results[TASKS];
static volatile int alive[TASKS];

/* No libc in here: the task shares the parent's thread pointer. */
static void task(uint64_t number) {
    uint64_t x = number + 1;
    for (uint64_t i = 0; i < 60000; i++) x = churn_even(churn_odd(x)) ^ i;
    results[number] = x;
}
long clone_task(long flags, void *stack_top, volatile int *child_tid, uint64_t number, void (*run)(uint64_t));
asm(".text\nclone_task:\n push %r12\n push %r13\n mov %rcx, %r12\n mov %r8, %r13\n mov %rdx, %r10\n xor %edx, %edx\n xor %r8d, %r8d\n"
    "mov $56, %eax\n syscall\n test %rax, %rax\n jz 1f\n pop %r13\n pop %r12\n ret\n"
    "1: xor %ebp, %ebp\n mov %r12, %rdi\n call *%r13\n xor %edi, %edi\n mov $60, %eax\n syscall\n ud2\n");

int main(void) {
    uint64_t sum = 0;
    char *stacks = mmap(0, TASKS * STACK, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    MUST(stacks != MAP_FAILED);
    for (uint64_t round = 0, rounds = scaled(6); round < rounds; round++) {
        for (uint64_t i = 0; i < TASKS; i++) {
            int thread = i % 3 != 0;
            long flags = thread ? CLONE_VM | CLONE_FS | CLONE_FILES | CLONE_SIGHAND | CLONE_THREAD | CLONE_SYSVSEM | CLONE_CHILD_CLEARTID : CLONE_VM | SIGCHLD;
            alive[i] = thread;
            MUST(clone_task(flags, stacks + (i + 1) * STACK - 64, &alive[i], i, task) > 0);
        }
        sum = churn(sum, 100000);
        for (int i = 0; i < TASKS; i++)
            while (alive[i]) syscall(SYS_futex, &alive[i], FUTEX_WAIT, 1, &(struct timespec){0, 1000000}, 0, 0);
        int status, children = 0;
        while (wait(&status) > 0) {
            MUST(WIFEXITED(status) && WEXITSTATUS(status) == 0);
            children++;
        }
        MUST(errno == ECHILD && children == TASKS / 3);
        for (int i = 0; i < TASKS; i++) sum = mix(sum ^ results[i]);
    }
    printf("%016lx\n", sum);
    return 0;
}
