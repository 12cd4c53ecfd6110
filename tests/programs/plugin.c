/* Loaded and unloaded by plugins.c; built twice with different code at the same offsets. */
#include <stdint.h>
#ifndef FACTOR
#error "FACTOR chooses the version"
#endif
static uint64_t state = FACTOR;
uint64_t plugin_step(uint64_t x) {
    for (int i = 0; i < 300; i++) x = (x ^ state) * FACTOR + i;
    return x;
}
uint64_t plugin_version(void) { return FACTOR; }
__attribute__((constructor)) static void enter(void) { state += 2; }
__attribute__((destructor)) static void leave(void) { state = 0; }
