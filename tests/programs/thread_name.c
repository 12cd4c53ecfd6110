/* Names of the program and its threads, set with prctl and seen in /proc. */
#include "common.h"
#include <dirent.h>
#include <pthread.h>
#include <sys/prctl.h>

static pthread_barrier_t named, seen;

static void *worker(void *number) {
    char name[16], got[16];
    snprintf(name, sizeof name, "worker %ld", (long)(intptr_t)number);
    MUST(prctl(PR_SET_NAME, name) == 0);
    uint64_t sum = churn((uintptr_t)number, scaled(1500000));
    pthread_barrier_wait(&named);
    pthread_barrier_wait(&seen);
    MUST(prctl(PR_GET_NAME, got) == 0 && strcmp(got, name) == 0);
    return (void *)sum;
}
static int by_text(const void *a, const void *b) { return strcmp(a, b); }

int main(void) {
    enum { THREADS = 4 };
    pthread_t threads[THREADS];
    MUST(prctl(PR_SET_NAME, "chief") == 0);
    MUST(pthread_barrier_init(&named, 0, THREADS + 1) == 0 && pthread_barrier_init(&seen, 0, THREADS + 1) == 0);
    for (intptr_t i = 0; i < THREADS; i++) MUST(pthread_create(&threads[i], 0, worker, (void *)i) == 0);
    pthread_barrier_wait(&named);
    char names[32][16];
    int n = 0;
    DIR *tasks = opendir("/proc/self/task");
    MUST(tasks != 0);
    for (struct dirent *entry; (entry = readdir(tasks)) && n < 32;) {
        if (entry->d_name[0] == '.') continue;
        char path[300];
        snprintf(path, sizeof path, "/proc/self/task/%s/comm", entry->d_name);
        FILE *file = fopen(path, "r");
        MUST(file && fgets(names[n++], 16, file));
        fclose(file);
    }
    closedir(tasks);
    pthread_barrier_wait(&seen);
    qsort(names, n, 16, by_text);
    for (int i = 0; i < n; i++) fputs(names[i], stdout);
    for (int i = 0; i < THREADS; i++) {
        void *sum;
        MUST(pthread_join(threads[i], &sum) == 0);
        printf("%016lx\n", (uint64_t)sum);
    }
    return 0;
}
