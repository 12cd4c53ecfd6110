//! A program with very many functions, made at test time: fills code caches and tables, so that memory bounds are tested.

use std::fmt::Write;

/// C source with `functions` functions, each called several times from a table in scattered order. With the argument
/// `memory` it also prints its own peak of resident memory in kB, which the tests compare between native and observed.
pub fn source(functions: u32) -> String {
    let mut text = String::from("#include \"common.h\"\nstatic uint64_t words[4096];\n");
    for i in 0..functions {
        let (shift, slot, test) = (i % 31 + 1, i.wrapping_mul(2_654_435_761) % 4096, i % 13);
        writeln!(
            text,
            "static NOINLINE uint64_t f{i}(uint64_t x) {{ x ^= words[{slot}] >> {shift}; if (x % 13 == {test}) words[{slot}] += x; else x = x * {} + {i}; for (int k = 0; k < {}; k++) x += x >> 3; return x; }}",
            i | 1,
            i % 3 + 1
        )
        .expect("writing to a string cannot fail");
    }
    text.push_str("static uint64_t (*const table[])(uint64_t) = {");
    for i in 0..functions {
        write!(text, "f{i},").expect("writing to a string cannot fail");
    }
    text.push_str(MAIN);
    text
}

const MAIN: &str = r#"};
enum { COUNT = sizeof table / sizeof *table };

static void print_peak(void) {
    char line[256];
    FILE *status = fopen("/proc/self/status", "r");
    MUST(status != 0);
    while (fgets(line, sizeof line, status))
        if (strncmp(line, "VmHWM:", 6) == 0) fputs(line, stdout);
    fclose(status);
}

int main(int argc, char **argv) {
    uint64_t x = 1, at = 0, passes = scaled(8);
    for (uint64_t pass = 0; pass < passes; pass++)
        for (uint64_t i = 0; i < COUNT; i++) {
            at = (at + 7919 + pass) % COUNT;
            x = table[at](x) + table[i](x);
        }
    printf("%016lx\n", x);
    if (argc > 1 && strcmp(argv[1], "memory") == 0) print_peak();
    return 0;
}
"#;
