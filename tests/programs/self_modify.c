/* A function in the program's own text that rewrites instructions of its own: ahead of itself in the same block, in a
 * loop body while it runs, and a neighbour on the same page. */
#include "common.h"
#include <sys/mman.h>

extern char text_begin[], text_end[];
uint64_t ahead(uint32_t value), in_loop(uint64_t rounds), neighbour(uint64_t x);
extern uint32_t neighbour_value;
asm(".pushsection .text\n .balign 4096\n"
    "text_begin:\n"
    /* the store changes the immediate of the mov right behind it */
    "ahead: mov %edi, ahead_mov+1(%rip)\n jmp ahead_mov\n"
    "ahead_mov: mov $0x11111111, %eax\n ret\n"
    /* every round rewrites the addend of the next */
    "in_loop: xor %eax, %eax\n mov %rdi, %rcx\n"
    "1:\n loop_add: add $1, %eax\n lea 3(%rcx), %edx\n and $0x7f, %edx\n mov %dl, loop_add+2(%rip)\n dec %rcx\n jnz 1b\n ret\n"
    "neighbour: mov %rdi, %rax\n .byte 0x48, 0x05\nneighbour_value: .long 7\n ret\n"
    ".balign 4096\n text_end:\n .popsection\n");

static uint64_t loop_expected(uint64_t rounds, uint32_t *addend) {
    uint32_t sum = 0;
    for (; rounds; rounds--) {
        sum += *addend;
        *addend = (rounds + 3) & 0x7f;
    }
    return sum;
}

int main(void) {
    MUST(mprotect(text_begin, text_end - text_begin, PROT_READ | PROT_WRITE | PROT_EXEC) == 0);
    uint64_t sum = 0, rounds = scaled(2000);
    uint32_t addend = 1;
    for (uint64_t i = 0; i < rounds; i++) {
        MUST(ahead(i * 3) == i * 3);
        uint64_t want = loop_expected(40 + i % 9, &addend), got = in_loop(40 + i % 9);
        MUST(got == want);
        *(volatile uint32_t *)&neighbour_value = i;
        sum = mix(sum + got + neighbour(i)) + churn(i, 2000);
        MUST(neighbour(i) == 2 * i);
    }
    printf("%016lx\n", sum);
    return 0;
}
