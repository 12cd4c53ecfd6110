/* Prints what a program inherits and can see of itself: arguments, environment, limits, names, group, tracer. */
#include "common.h"
#include <fcntl.h>
#include <sched.h>
#include <sys/auxv.h>
#include <sys/personality.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/stat.h>

extern char **environ;

static void limits(void) {
    for (int i = 0; i < RLIM_NLIMITS; i++) {
        struct rlimit limit;
        MUST(getrlimit(i, &limit) == 0);
        printf("limit %d %lu %lu\n", i, limit.rlim_cur, limit.rlim_max);
    }
}
static void status(void) {
    static const char *const fields[] = {"Name:", "Umask:", "Threads:", "NoNewPrivs:", "Seccomp:"};
    FILE *file = fopen("/proc/self/status", "r");
    char line[512];
    MUST(file != 0);
    while (fgets(line, sizeof line, file))
        for (size_t i = 0; i < sizeof fields / sizeof *fields; i++)
            if (strncmp(line, fields[i], strlen(fields[i])) == 0) fputs(line, stdout);
    fclose(file);
}
static void whole_file(const char *path) {
    char text[4096];
    int fd = open(path, O_RDONLY | O_CLOEXEC), n = read(fd, text, sizeof text);
    MUST(fd >= 0 && n >= 0 && close(fd) == 0);
    for (int i = 0; i < n; i++) putchar(text[i] ? text[i] : '|');
    putchar('\n');
}

int main(int argc, char **argv) {
    uint64_t sum = churn(1, scaled(1000000));
    for (int i = 0; i < argc; i++) printf("argument %d %s\n", i, argv[i]);
    for (char **e = environ; *e; e++) printf("%s\n", *e);
    whole_file("/proc/self/cmdline");
    whole_file("/proc/self/environ");
    whole_file("/proc/self/comm");
    char path[4096] = {0};
    MUST(readlink("/proc/self/exe", path, sizeof path - 1) > 0);
    printf("exe %s\nexecfn %s\n", path, (const char *)getauxval(AT_EXECFN));
    printf("page %lu secure %lu entry %d\n", getauxval(AT_PAGESZ), getauxval(AT_SECURE), getauxval(AT_ENTRY) != 0);
    printf("personality %x dumpable %d no_new_privs %d keepcaps %d\n", personality(~0ul), prctl(PR_GET_DUMPABLE), prctl(PR_GET_NO_NEW_PRIVS, 0, 0, 0, 0), prctl(PR_GET_KEEPCAPS));
    int death = -1;
    MUST(prctl(PR_GET_PDEATHSIG, &death) == 0);
    cpu_set_t cpus;
    MUST(sched_getaffinity(0, sizeof cpus, &cpus) == 0);
    printf("parent death signal %d cpus %d nice %d policy %d\n", death, CPU_COUNT(&cpus), getpriority(PRIO_PROCESS, 0), sched_getscheduler(0));
    mode_t mask = umask(022);
    umask(mask);
    printf("umask %o\n", mask);
    limits();
    status();
    sum = churn(sum, scaled(1000000));
    printf("sum %016lx\n", sum);
    return 0;
}
