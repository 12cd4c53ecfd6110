/* Every way to start a child: fork, vfork, vfork + exec, posix_spawn, popen, system, fork from a thread. */
#include "common.h"
#include <pthread.h>
#include <spawn.h>
#include <sys/wait.h>

extern char **environ;

static int status_of(pid_t pid) {
    int status;
    MUST(pid > 0 && waitpid(pid, &status, 0) == pid);
    return WIFEXITED(status) ? WEXITSTATUS(status) : 1000 + WTERMSIG(status);
}
static int forked(uint64_t seed) {
    pid_t pid = fork();
    if (pid == 0) _exit(churn(seed, 30000) & 0x3f);
    return status_of(pid);
}
static int nested(uint64_t seed) {
    pid_t pid = fork();
    if (pid == 0) {
        int inner = forked(seed);
        churn(seed, 20000);
        exit(inner ^ 1);
    }
    return status_of(pid);
}
static int vforked(uint64_t seed) {
    volatile uint64_t shared = seed;
    pid_t pid = vfork();
    if (pid == 0) {
        shared = shared * 3 + 1;
        _exit(shared & 0x3f);
    }
    MUST(shared == seed * 3 + 1);
    return status_of(pid);
}
static int vfork_exec(char *self, uint64_t seed) {
    char number[24];
    snprintf(number, sizeof number, "%lu", seed);
    char *argv[] = {self, "child", number, 0};
    pid_t pid = vfork();
    if (pid == 0) {
        execv(self, argv);
        _exit(127);
    }
    return status_of(pid);
}
static int spawned(char *self, uint64_t seed) {
    char number[24];
    snprintf(number, sizeof number, "%lu", seed);
    char *argv[] = {self, "child", number, 0};
    pid_t pid;
    MUST(posix_spawn(&pid, self, 0, 0, argv, environ) == 0);
    return status_of(pid);
}
static uint64_t popened(uint64_t seed) {
    char line[200];
    snprintf(line, sizeof line, "i=0; while [ $i -lt 200 ]; do i=$((i+1)); done; echo $((%lu*7))", seed);
    FILE *out = popen(line, "r");
    unsigned long answer = 0;
    MUST(out && fscanf(out, "%lu", &answer) == 1 && pclose(out) == 0);
    return answer;
}
static void *fork_in_thread(void *seed) { return (void *)(intptr_t)forked((uintptr_t)seed); }

int main(int argc, char **argv) {
    if (argc > 2) return churn(strtoull(argv[2], 0, 10), 30000) & 0x3f;
    uint64_t sum = 0, rounds = scaled(12);
    for (uint64_t i = 0; i < rounds; i++) {
        sum = mix(sum + churn(i, 20000));
        int a = forked(i), b = nested(i), c = vforked(i), d = vfork_exec(argv[0], i), e = spawned(argv[0], i);
        MUST(d == a && e == a && b == (a ^ 1));
        uint64_t p = popened(i);
        int s = system("exit 7");
        pthread_t thread;
        void *t;
        MUST(pthread_create(&thread, 0, fork_in_thread, (void *)(uintptr_t)i) == 0 && pthread_join(thread, &t) == 0);
        MUST((intptr_t)t == a);
        printf("%lu: fork %d vfork %d popen %lu system %d\n", i, a, c, p, WEXITSTATUS(s));
        fflush(stdout);
    }
    printf("sum %016lx\n", sum);
    return 0;
}
