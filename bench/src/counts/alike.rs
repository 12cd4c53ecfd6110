//! Makes programs run the same code under valgrind as on the processor: valgrind shows them a plainer processor, and
//! they choose their copying loops, their vector code and their hash seeds themselves.

use std::ffi::OsString;

use sonde_harness::trial::Subject;

/// The C library takes the plainest variant of each function, and the same limits whatever the caches are like. The
/// processor's loops (`rep movsb`) would otherwise count once for each byte that valgrind's variant copies 32 at a time.
const TUNABLES: &str = "glibc.cpu.hwcaps=-AVX512F,-AVX512VL,-AVX512BW,-AVX2,-AVX,-ERMS,-FSRM,-BMI2,-XSAVE,-XSAVEC,\
    -SSE4_2,-SSE4_1,-SSSE3,-RTM,-LZCNT,-MOVBE:glibc.cpu.x86_rep_movsb_threshold=0x7fffffff:\
    glibc.cpu.x86_rep_stosb_threshold=0x7fffffff:glibc.cpu.x86_non_temporal_threshold=0xf000000:\
    glibc.cpu.x86_data_cache_size=0x8000:glibc.cpu.x86_shared_cache_size=0x100000";

/// What both runs are told.
const ENVIRONMENT: [(&str, &str); 6] = [
    ("GLIBC_TUNABLES", TUNABLES),
    // Binding at the first call saves registers in a way that depends on the processor.
    ("LD_BIND_NOW", "1"),
    ("PERL_HASH_SEED", "0"),
    ("PERL_PERTURB_KEYS", "0"),
    ("PYTHONHASHSEED", "0"),
    ("JSIMD_FORCENONE", "1"),
];

/// The subject on a plain processor, with one thread.
pub fn alike(mut subject: Subject) -> Subject {
    let fixed = ENVIRONMENT.map(|(name, value)| (name.to_owned(), value.to_owned()));
    subject.job.environment.extend(fixed);
    for word in &mut subject.job.command {
        if word == "--parallel=2" {
            *word = OsString::from("--parallel=1");
        }
    }
    subject
}
