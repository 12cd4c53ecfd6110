/* Closes every descriptor it was not given, as daemons do, checks which numbers new ones get, then closes those too. */
#include "common.h"
#include <fcntl.h>
#include <sys/resource.h>
#include <sys/syscall.h>

int main(void) {
    uint64_t sum = churn(1, scaled(1000000));
    struct rlimit limit;
    MUST(getrlimit(RLIMIT_NOFILE, &limit) == 0);
    int last = limit.rlim_cur < 4096 ? (int)limit.rlim_cur : 4096;
    for (int fd = 3; fd < last; fd++) close(fd);
    syscall(SYS_close_range, 3, ~0u, 0);
    sum = churn(sum, scaled(1000000));
    for (int want = 3; want < 40; want++) {
        int fd = open("/dev/null", O_RDONLY | O_CLOEXEC);
        MUST(fd == want);
        sum = churn(sum, scaled(10000));
    }
    syscall(SYS_close_range, 3, ~0u, 0);
    int copy = fcntl(1, F_DUPFD, 100);
    MUST(copy == 100);
    close(0), close(1), close(2);
    sum = churn(sum, scaled(1000000));
    for (int want = 0; want < 8; want++) MUST(open("/dev/null", O_RDWR) == want);
    sum = churn(sum, scaled(200000));
    MUST(dprintf(copy, "closed them all, sum %016lx\n", sum) > 0);
    return 0;
}
