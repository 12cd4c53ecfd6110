/* Counts made-up program counters and load values with both interfaces.
 *
 *   cargo build --release -p sonde-rap-c
 *   cc crates/rap-c/examples/rap.c -I crates/rap-c/include -L target/release -lsonde_rap_c -o rap
 *   LD_LIBRARY_PATH=target/release ./rap
 */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

#include "sonde_rap.h"

enum { CODE, VALUES, PROFILES };

static void check(sonde_rap_status status, const char *what)
{
    if (status != SONDE_RAP_STATUS_OK) {
        fprintf(stderr, "%s: error %d: %s\n", what, (int)status, sonde_rap_last_error());
        exit(1);
    }
}

/* The three calls of the paper. */
static void count_with_profiles(void)
{
    check(rap_init(PROFILES), "rap_init");
    for (uint64_t i = 0; i < 1000; i++) {
        check(rap_add_points(0x401000 + i % 4 * 4, 10, CODE), "rap_add_points");
        check(rap_add_points(i % 10 < 6 ? 0 : i, 1, VALUES), "rap_add_points");
    }
    check(rap_finalize("rap-profiles.txt"), "rap_finalize");
}

static void print_hot(const char *title, sonde_rap_handle tree)
{
    sonde_rap_info info;
    sonde_rap_hot_range hot[10]; /* at most 1 / threshold */
    size_t count;
    check(sonde_rap_get_info(tree, &info), "sonde_rap_get_info");
    check(sonde_rap_hot(tree, 0.1, hot, 10, &count), "sonde_rap_hot");
    printf("%s: %" PRIu64 " events, error at most %g %%\n", title, info.events, info.eps_effective * 100);
    for (size_t i = 0; i < count; i++) {
        double all = (double)info.events / 100;
        printf("%*s%#" PRIx64 "..%#" PRIx64 "  own %.1f %%  total %.1f %%\n", 2 + 2 * (int)hot[i].depth, "",
               hot[i].lo.part[0], hot[i].hi.part[0], hot[i].own / all, hot[i].total / all);
    }
}

/* A tree of pairs: code address and data address. */
static void count_pairs(void)
{
    sonde_rap_config config;
    sonde_rap_handle tree;
    uint64_t lower, upper;
    check(sonde_rap_config_default(&config), "sonde_rap_config_default");
    config.key_type = SONDE_RAP_KEY_U64X2;
    check(sonde_rap_new(&config, &tree), "sonde_rap_new");
    for (uint64_t i = 0; i < 300; i++) {
        sonde_rap_key pair = {{0x401000 + i % 3, 0x7fff0000 + i % 2 * 8, 0}};
        check(sonde_rap_add_key(tree, &pair, 1), "sonde_rap_add_key");
    }
    sonde_rap_key lo = {{0x401000, 0, 0}}, hi = {{0x401001, UINT64_MAX, 0}};
    check(sonde_rap_bounds(tree, &lo, &hi, &lower, &upper), "sonde_rap_bounds");
    printf("pairs: %" PRIu64 " to %" PRIu64 " events of code 0x401000..0x401001\n", lower, upper);
    check(sonde_rap_free(tree), "sonde_rap_free");
    printf("freed twice: %s\n", sonde_rap_free(tree) == SONDE_RAP_STATUS_BAD_HANDLE ? "refused" : "accepted");
}

int main(void)
{
    sonde_rap_handle code, values;
    printf("before rap_init: %s\n", rap_add_points(1, 1, CODE) == SONDE_RAP_STATUS_NOT_INITIALIZED ? "refused" : "accepted");
    count_with_profiles();
    check(rap_profile(CODE, &code), "rap_profile");
    check(rap_profile(VALUES, &values), "rap_profile");
    print_hot("code", code);
    print_hot("values", values);
    check(rap_release(), "rap_release");
    count_pairs();
    return 0;
}
