/* Reads /proc/self/maps while it works: its own mappings are there with the right permissions, and stay. */
#include "common.h"
#include <sys/mman.h>

static int global = 5;

/* Permissions of the mapping that holds the address, as maps writes them. */
static int find(const void *address, char permissions[5]) {
    FILE *maps = fopen("/proc/self/maps", "re");
    MUST(maps != 0);
    char line[4096];
    int found = 0;
    while (fgets(line, sizeof line, maps)) {
        unsigned long begin, end;
        char p[5];
        MUST(sscanf(line, "%lx-%lx %4s", &begin, &end, p) == 3 && begin < end);
        if ((uintptr_t)address >= begin && (uintptr_t)address < end) memcpy(permissions, p, 5), found++;
    }
    fclose(maps);
    return found;
}
static void expect(const char *what, const void *address, const char *permissions, int print) {
    char got[5] = "none";
    MUST(find(address, got) == 1);
    MUST(strcmp(got, permissions) == 0);
    if (print) printf("%s %s\n", what, got);
}

int main(void) {
    char local, *heap = malloc(64);
    void *mine = mmap(0, 8192, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    void *code = mmap(0, 4096, PROT_READ | PROT_EXEC, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    MUST(heap && mine != MAP_FAILED && code != MAP_FAILED);
    uint64_t sum = 1, rounds = scaled(100);
    for (uint64_t i = 0; i < rounds; i++) {
        sum = churn(sum, 20000);
        expect("text", (void *)(uintptr_t)main, "r-xp", i == 0);
        expect("data", &global, "rw-p", i == 0);
        expect("stack", &local, "rw-p", i == 0);
        expect("heap", heap, "rw-p", i == 0);
        expect("own", mine, "r--p", i == 0);
        expect("code", code, "r-xp", i == 0);
    }
    char gone[5];
    MUST(munmap(mine, 8192) == 0 && find(mine, gone) == 0);
    printf("sum %016lx\n", sum);
    return 0;
}
