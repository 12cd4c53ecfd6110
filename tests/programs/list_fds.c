/* Lists its own open descriptors, early, after work, and which numbers new ones get. */
#include "common.h"
#include <dirent.h>
#include <fcntl.h>

static void descriptors(void) {
    DIR *folder = opendir("/proc/self/fd");
    MUST(folder != 0);
    int found[64], n = 0;
    for (struct dirent *entry; (entry = readdir(folder));)
        if (entry->d_name[0] != '.' && atoi(entry->d_name) != dirfd(folder) && n < 64) found[n++] = atoi(entry->d_name);
    closedir(folder);
    for (int i = 1; i < n; i++)
        for (int k = i; k > 0 && found[k - 1] > found[k]; k--) {
            int t = found[k];
            found[k] = found[k - 1], found[k - 1] = t;
        }
    for (int i = 0; i < n; i++) printf("fd %d flags %x\n", found[i], fcntl(found[i], F_GETFL) & O_ACCMODE);
}
int main(void) {
    descriptors();
    uint64_t sum = churn(1, scaled(2000000));
    descriptors();
    for (int i = 0; i < 5; i++) printf("next %d\n", open("/dev/null", O_RDONLY | O_CLOEXEC));
    sum = churn(sum, scaled(2000000));
    descriptors();
    printf("sum %016lx\n", sum);
    return 0;
}
