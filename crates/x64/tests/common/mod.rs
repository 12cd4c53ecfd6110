//! What the tests of copies share.

use sonde_x64::emit::Layout;

/// Places that a copy refers to, each another one.
pub fn layout() -> Layout {
    Layout {
        app_r14: 16,
        app_r15: 24,
        save_rcx: 64,
        spill: [72, 80, 88],
        checks: 96,
        resolve: 104,
        end_direct: 112,
        end_indirect: 120,
        leave: 136,
        table: 0x2000_0000,
        whole: None,
    }
}
