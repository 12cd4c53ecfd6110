/* dlopen and dlclose in a loop: two versions of a library under one name, so that code at one address changes. */
#include "common.h"
#include <dlfcn.h>
#include <fcntl.h>
#include <libgen.h>
#include <sys/sendfile.h>
#include <sys/stat.h>

static void copy(const char *from, const char *to) {
    int in = open(from, O_RDONLY | O_CLOEXEC), out = open(to, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0700);
    struct stat info;
    MUST(in >= 0 && out >= 0 && fstat(in, &info) == 0 && sendfile(out, in, 0, info.st_size) == info.st_size);
    MUST(close(in) == 0 && close(out) == 0);
}

int main(int argc, char **argv) {
    (void)argc;
    char folder[4096], place[] = "/tmp/sonde-plugins-XXXXXX", path[64], version[4200];
    snprintf(folder, sizeof folder, "%s", argv[0]);
    char *beside = dirname(folder);
    MUST(mkdtemp(place) != 0);
    snprintf(path, sizeof path, "%s/plugin.so", place);
    uint64_t sum = 0, rounds = scaled(60);
    for (uint64_t i = 0; i < rounds; i++) {
        snprintf(version, sizeof version, "%s/plugin_%s.so", beside, i % 2 ? "b" : "a");
        copy(version, path);
        void *library = dlopen(path, i % 3 ? RTLD_NOW : RTLD_LAZY);
        MUST(library != 0);
        uint64_t (*step)(uint64_t) = dlsym(library, "plugin_step"), (*id)(void) = dlsym(library, "plugin_version");
        MUST(id() == (i % 2 ? 11 : 7));
        for (int k = 0; k < 1000; k++) sum = step(sum + k);
        MUST(dlclose(library) == 0 && unlink(path) == 0);
        sum = churn(sum, 3000);
    }
    MUST(rmdir(place) == 0);
    printf("%016lx\n", sum);
    return 0;
}
