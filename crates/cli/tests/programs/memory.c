// Memory of every kind that a report names: stacks of threads, a mapped file, a variable, the heap.
#include <fcntl.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>

static long table[64];
static long rounds;

static void *on_its_stack(void *unused) {
    (void)unused;
    volatile long local[64];
    for (int i = 0; i < 64; i++) local[i] = i;
    for (long round = 0; round < rounds; round++)
        for (int i = 0; i < 64; i++) local[i] += round;
    return (void *)local[7];
}

int main(int argc, char **argv) {
    (void)argc;
    rounds = atol(argv[2]);
    int file = open(argv[1], O_RDONLY);
    long size = lseek(file, 0, SEEK_END);
    const unsigned char *data = mmap(0, size, PROT_READ, MAP_PRIVATE, file, 0);
    volatile long *heap = malloc(64 * sizeof *heap);
    pthread_t threads[2];
    for (int i = 0; i < 2; i++) pthread_create(&threads[i], 0, on_its_stack, 0);
    long sum = 0;
    for (long round = 0; round < rounds; round++)
        for (int i = 0; i < 64; i++) {
            sum += data[i];
            table[data[i] & 63]++;
            heap[i] = sum;
        }
    for (int i = 0; i < 2; i++) pthread_join(threads[i], 0);
    printf("%ld\n", sum);
    return 0;
}
