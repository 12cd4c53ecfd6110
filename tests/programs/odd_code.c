/* Drives odd_code_asm.S: one digest per function, so that a difference has a name. */
#include "common.h"

#define EACH(M) M(red_zone) M(push_ret) M(ret_immediate) M(call_pop) M(return_elsewhere) M(return_twice) M(through_stack) \
    M(stack_pointer) M(coroutine) M(overlapping) M(prefixes) M(far_loop)
#define DECLARE(name) uint64_t name(uint64_t);
#define ENTRY(name) {#name, name},
EACH(DECLARE)
static const struct { const char *name; uint64_t (*run)(uint64_t); } functions[] = {EACH(ENTRY)};

int main(void) {
    uint64_t rounds = scaled(250000);
    for (size_t f = 0; f < sizeof functions / sizeof *functions; f++) {
        uint64_t sum = 1;
        for (uint64_t i = 0; i < rounds; i++) sum = mix(sum ^ functions[f].run(i));
        printf("%s %016lx %lu\n", functions[f].name, sum, functions[f].run(1000));
        fflush(stdout); /* a crash in the next one must not hide this */
    }
    return 0;
}
