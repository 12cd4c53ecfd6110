/* System calls that do only a part when something interrupts them: nothing does here, so each has to do all of it. */
#include "common.h"
#include <fcntl.h>
#include <pthread.h>
#include <sys/mman.h>
#include <sys/random.h>
#include <sys/sendfile.h>
#include <sys/socket.h>
#include <sys/uio.h>

enum { SIZE = 300000 };
static char block[SIZE], other[SIZE];
static uint64_t calls, partial;

static void tally(ssize_t done) {
    calls++;
    partial += done != SIZE;
}

/* Reads all there is, slowly enough for writers to wait and quickly enough for them to work, too. */
static void *drain(void *fd) {
    static __thread char some[9000];
    uint64_t sum = 0, bytes = 0;
    for (ssize_t n; (n = read((int)(intptr_t)fd, some, sizeof some)) > 0; bytes += n)
        for (ssize_t i = 0; i < n; i++) sum = sum * 31 + (unsigned char)some[i];
    return (void *)(sum ^ bytes);
}

static uint64_t into(int ends[2], int socket) {
    pthread_t reader;
    void *sum;
    MUST(pthread_create(&reader, 0, drain, (void *)(intptr_t)ends[0]) == 0);
    int file = open("/proc/self/exe", O_RDONLY);
    struct iovec parts[3] = {{block, 70001}, {other, 99999}, {block + 70001, SIZE - 170000}};
    struct msghdr message = {.msg_iov = parts, .msg_iovlen = 3};
    for (uint64_t i = 0, rounds = scaled(12); i < rounds; i++) {
        tally(write(ends[1], block, SIZE));
        tally(writev(ends[1], parts, 3));
        if (socket) {
            tally(send(ends[1], other, SIZE, 0));
            tally(sendmsg(ends[1], &message, 0));
        }
        /* Into a pipe it may do less by itself. */
        for (off_t from = 0; from < 10000;) MUST(sendfile(ends[1], file, &from, 10000 - from) > 0);
    }
    close(file);
    close(ends[1]);
    MUST(pthread_join(reader, &sum) == 0);
    close(ends[0]);
    return (uint64_t)sum;
}

/* The other side of MSG_WAITALL. */
static void *feed(void *fd) {
    for (uint64_t i = 0, rounds = scaled(30); i < rounds; i++)
        for (size_t at = 0, n = 20000; at < SIZE; at += n) MUST(write((int)(intptr_t)fd, block + at, n) == (ssize_t)n);
    return 0;
}

int main(void) {
    for (size_t i = 0; i < SIZE; i++) block[i] = (char)(i * 7), other[i] = (char)(i * 11);
    int ends[2], zero = open("/dev/zero", O_RDONLY);
    for (uint64_t i = 0, rounds = scaled(400); i < rounds; i++) {
        other[i % SIZE] ^= 1;
        tally(read(zero, other, SIZE));
        struct iovec two[2] = {{other, SIZE - 5}, {other + SIZE - 5, 5}};
        tally(readv(zero, two, 2));
        if (i % 8 == 0) tally(getrandom(other, SIZE, 0));
    }
    memset(other, 3, SIZE);
    int from = memfd_create("from", 0), to = memfd_create("to", 0);
    for (int i = 0; i < 30; i++) MUST(write(from, block, SIZE) == SIZE);
    for (uint64_t i = 0, rounds = scaled(20); i < rounds; i++) {
        off_t at = 0, copied = 0;
        lseek(to, 0, SEEK_SET);
        tally(sendfile(to, from, &at, 30 * SIZE) / 30);
        at = 0;
        tally(copy_file_range(from, &at, to, &copied, 30 * SIZE, 0) / 30);
    }
    MUST(pipe(ends) == 0);
    uint64_t piped = into(ends, 0);
    MUST(socketpair(AF_UNIX, SOCK_STREAM, 0, ends) == 0);
    uint64_t sent = into(ends, 1);
    MUST(socketpair(AF_UNIX, SOCK_STREAM, 0, ends) == 0);
    pthread_t feeder;
    MUST(pthread_create(&feeder, 0, feed, (void *)(intptr_t)ends[1]) == 0);
    for (uint64_t i = 0, rounds = scaled(30); i < rounds; i++) tally(recv(ends[0], other, SIZE, MSG_WAITALL));
    MUST(pthread_join(feeder, 0) == 0 && memcmp(block, other, SIZE) == 0);
    printf("%lu calls, %lu partial, sums %016lx %016lx\n", calls, partial, piped, sent);
    return 0;
}
