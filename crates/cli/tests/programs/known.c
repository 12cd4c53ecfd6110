/* A function whose every load and store is known by construction; exact.rs compares the trace with it. Prints where
   its code and its data lie. */
#include <stdint.h>
#include <stdio.h>

uint64_t data[64];
void known(uint64_t *data, uint32_t count);
extern char known_end[];

__asm__(".globl known, known_end\n"
        ".type known, @function\n"
        "known:\n"
        "    xor %ecx, %ecx\n"
        "1:  imul $7, %ecx, %eax\n"
        "    and $31, %eax\n"
        "    mov (%rdi,%rax,8), %rdx\n"      /* load 8 */
        "    lea 3(%rdx,%rcx), %r8\n"
        "    mov %r8, (%rdi,%rax,8)\n"       /* store 8 */
        "    movzbl 1(%rdi,%rax,8), %r9d\n"  /* load 1 */
        "    mov %ecx, 256(%rdi)\n"          /* store 4 */
        "    push %rdx\n"                    /* store 8 */
        "    pop %r10\n"                     /* load 8 */
        "    add %rdx, 264(%rdi)\n"          /* load 8, store 8 */
        "    movdqu (%rdi,%rax,8), %xmm0\n"  /* load 16 */
        "    inc %ecx\n"
        "    cmp %esi, %ecx\n"
        "    jb 1b\n"
        "    ret\n"                          /* load 8 */
        "known_end:\n");

int main(void) {
    printf("%p %p %p\n", (void *)known, (void *)known_end, (void *)data);
    fflush(stdout);
    known(data, 5000);
    uint64_t sum = 0;
    for (int i = 0; i < 64; i++) sum = sum * 31 + data[i];
    printf("%016lx\n", sum);
    return 0;
}
