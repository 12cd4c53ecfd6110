// Catches very many exceptions in one activation of a function, then calls another one.
#include <cstdio>

volatile long sink;
__attribute__((noinline)) void thrower(int n) {
    if (n >= 0) throw n;
}
__attribute__((noinline)) void catches(int rounds) {
    for (int i = 0; i < rounds; i++) {
        try {
            thrower(i);
        } catch (int n) {
            sink += n;
        }
    }
}
__attribute__((noinline)) void after() {
    for (int i = 0; i < 1000; i++) sink += i;
}
int main() {
    // More frames are left than a shadow stack keeps.
    catches(8000);
    after();
    std::printf("main %p after %p catches %p\n", (void *)main, (void *)after, (void *)catches);
    return 0;
}
