//! The few instructions that instrumentation consists of, encoded by hand.
//!
//! None of them but two (`dec` and `cmp`) touches the flags. Hand-written because these are a dozen fixed forms on the hot path of
//! translation; the general encoder of iced-x86 is used where an instruction of the program has to be rewritten.

use alloc::vec::Vec;

/// A general register by its hardware number, 0 = rax .. 15 = r15.
pub type Gpr = u8;

/// rcx, the only register `jrcxz` can test.
pub const RCX: Gpr = 1;
/// The scratch register of the copy.
pub const TEMP: Gpr = 14;
/// The log pointer of the copy.
pub const LOG: Gpr = 15;

/// A memory operand `[base + index * scale + disp]` with an optional fs prefix.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Mem {
    /// Base register.
    pub base: Option<Gpr>,
    /// Index register and scale (1, 2, 4, 8).
    pub index: Option<(Gpr, u8)>,
    /// Displacement.
    pub disp: i32,
    /// Whether the fs base is added.
    pub fs: bool,
}

/// Code being written. Positions are offsets into `bytes`.
#[derive(Default)]
pub struct Code {
    /// The bytes so far.
    pub bytes: Vec<u8>,
}

impl Code {
    /// The current position.
    pub fn here(&self) -> usize {
        self.bytes.len()
    }

    /// Appends raw bytes.
    pub fn raw(&mut self, bytes: &[u8]) {
        self.bytes.extend_from_slice(bytes);
    }

    fn imm32(&mut self, v: u32) {
        self.raw(&v.to_le_bytes());
    }

    /// ModRM, SIB and displacement for `reg` and a memory operand.
    fn modrm(&mut self, reg: Gpr, m: &Mem) {
        let reg = (reg & 7) << 3;
        match (m.base, m.index) {
            (None, index) => {
                let (i, s) = index.unwrap_or((4, 1));
                self.raw(&[reg | 4, sib(s, i, 5)]);
                self.imm32(m.disp as u32);
            }
            (Some(b), index) => {
                let need_sib = index.is_some() || b & 7 == 4;
                let (mode, len) = match m.disp {
                    0 if b & 7 != 5 => (0u8, 0),
                    -128..=127 => (0x40, 1),
                    _ => (0x80, 4),
                };
                self.bytes.push(mode | reg | if need_sib { 4 } else { b & 7 });
                if need_sib {
                    let (i, s) = index.unwrap_or((4, 1));
                    self.bytes.push(sib(s, i, b));
                }
                self.raw(&m.disp.to_le_bytes()[..len]);
            }
        }
    }

    /// REX for `reg` and the registers of `m`.
    fn rex(wide: bool, reg: Gpr, m: &Mem) -> u8 {
        let b = m.base.unwrap_or(0) >> 3;
        let x = m.index.map_or(0, |(i, _)| i >> 3);
        0x40 | u8::from(wide) << 3 | (reg >> 3) << 2 | x << 1 | b
    }

    fn op_mem(&mut self, wide: bool, opcode: &[u8], reg: Gpr, m: &Mem) {
        if m.fs {
            self.bytes.push(0x64);
        }
        self.bytes.push(Self::rex(wide, reg, m));
        self.raw(opcode);
        self.modrm(reg, m);
    }

    /// `mov [r15 + 8 * word], reg`
    pub fn log_gpr(&mut self, word: u16, reg: Gpr) {
        self.op_mem(true, &[0x89], reg, &log_word(word));
    }

    /// `mov dword [r15], id`
    pub fn log_header(&mut self, id: u32) {
        self.raw(&[0x41, 0xc7, 0x07]);
        self.imm32(id);
    }

    /// `lea r15, [r15 + 8 * words]`
    pub fn log_advance(&mut self, words: u16) {
        self.op_mem(true, &[0x8d], LOG, &log_word(words));
    }

    /// Stores the low `bytes` (4, 8, 16) of an xmm register 0..16 into the log with a legacy SSE store.
    pub fn log_xmm(&mut self, word: u16, xmm: u8, bytes: u8) {
        match bytes {
            4 => self.bytes.push(0xf3),
            8 => self.bytes.push(0xf2),
            _ => {}
        }
        self.op_mem(false, &[0x0f, 0x11], xmm, &log_word(word));
    }

    /// Stores an xmm (16) or ymm (32 bytes) register 0..16 into the log with a VEX store.
    pub fn log_vex(&mut self, word: u16, reg: u8, bytes: u8) {
        let r = if reg < 8 { 0x80 } else { 0 };
        self.raw(&[0xc4, r | 0x40 | 0x01, if bytes == 32 { 0x7c } else { 0x78 }, 0x11]);
        self.modrm(reg, &log_word(word));
    }

    /// `lea dst, m`
    pub fn lea(&mut self, dst: Gpr, m: &Mem) {
        self.op_mem(true, &[0x8d], dst, m);
    }

    /// Loads `size` bytes (1, 2, 4, 8) from `m`, zero-extended, into `dst`.
    pub fn load(&mut self, dst: Gpr, m: &Mem, size: u8) {
        match size {
            1 => self.op_mem(false, &[0x0f, 0xb6], dst, m),
            2 => self.op_mem(false, &[0x0f, 0xb7], dst, m),
            4 => self.op_mem(false, &[0x8b], dst, m),
            _ => self.op_mem(true, &[0x8b], dst, m),
        }
    }

    /// `mov dst, imm64` (the short form when it fits)
    pub fn set(&mut self, dst: Gpr, v: u64) {
        if let Ok(v) = u32::try_from(v) {
            if dst >= 8 {
                self.bytes.push(0x41);
            }
            self.bytes.push(0xb8 | dst & 7);
            self.imm32(v);
        } else {
            self.raw(&[0x48 | dst >> 3, 0xb8 | dst & 7]);
            self.raw(&v.to_le_bytes());
        }
    }

    fn gs_op(&mut self, opcode: u8, reg: Gpr, offset: u32) {
        self.raw(&[0x65, 0x48 | (reg >> 3) << 2, opcode, (reg & 7) << 3 | 4, 0x25]);
        self.imm32(offset);
    }

    /// `mov reg, gs:[offset]`
    pub fn gs_load(&mut self, reg: Gpr, offset: u32) {
        self.gs_op(0x8b, reg, offset);
    }

    /// `mov gs:[offset], reg`
    pub fn gs_store(&mut self, offset: u32, reg: Gpr) {
        self.gs_op(0x89, reg, offset);
    }

    /// `jmp gs:[offset]`
    pub fn gs_jump(&mut self, offset: u32) {
        self.raw(&[0x65, 0xff, 0x24, 0x25]);
        self.imm32(offset);
    }

    /// `jmp [table + rcx * 8]`, the table lying below 2 GiB
    pub fn jump_table_rcx(&mut self, table: u32) {
        self.raw(&[0xff, 0x24, 0xcd]);
        self.imm32(table);
    }

    /// `movzx ecx, r14w`
    pub fn low16_of_temp_to_rcx(&mut self) {
        self.raw(&[0x41, 0x0f, 0xb7, 0xce]);
    }

    /// The low half of a register, zero-extended, to r14.
    pub fn low_half_to_temp(&mut self, of: Gpr) {
        self.raw(&[0x41 | (of >> 3) << 2, 0x89, 0xc6 | (of & 7) << 3]);
    }

    /// `mov r14d, gs:[offset]`
    pub fn gs_load_low_half(&mut self, offset: u32) {
        self.raw(&[0x65, 0x44, 0x8b, 0x34, 0x25]);
        self.imm32(offset);
    }

    /// `mov r14d, [table + r14 * 4]`, the table beginning below 2 GiB
    pub fn number_of_temp(&mut self, table: u32) {
        self.raw(&[0x46, 0x8b, 0x34, 0xb5]);
        self.imm32(table);
    }

    /// `jmp [table + r14 * 8]`, the table lying below 2 GiB
    pub fn jump_by_temp(&mut self, table: u32) {
        self.raw(&[0x42, 0xff, 0x24, 0xf5]);
        self.imm32(table);
    }

    /// `cmp dword gs:[offset], value`, which changes flags
    pub fn gs_compare(&mut self, offset: u32, value: u32) {
        let short = i8::try_from(value as i32);
        self.raw(&[0x65, if short.is_ok() { 0x83 } else { 0x81 }, 0x3c, 0x25]);
        self.imm32(offset);
        match short {
            Ok(short) => self.bytes.push(short as u8),
            Err(_) => self.imm32(value),
        }
    }

    /// `cmp dword m, value`, which changes flags
    pub fn compare(&mut self, m: &Mem, value: u32) {
        let rex = Self::rex(false, 7, m);
        if rex != 0x40 {
            self.bytes.push(rex);
        }
        self.bytes.push(0x81);
        self.modrm(7, m);
        self.imm32(value);
    }

    /// `jcc` to an address less than 2 GiB away; `base` is the address of position 0.
    pub fn jcc_to(&mut self, cc: u8, base: u64, address: u64) {
        let at = self.jcc(cc);
        let rel = address.wrapping_sub(base.wrapping_add(at as u64 + 4)) as u32;
        self.bytes[at..at + 4].copy_from_slice(&rel.to_le_bytes());
    }

    /// `push reg`
    pub fn push(&mut self, reg: Gpr) {
        if reg >= 8 {
            self.bytes.push(0x41);
        }
        self.bytes.push(0x50 | reg & 7);
    }

    /// `pop reg`
    pub fn pop(&mut self, reg: Gpr) {
        if reg >= 8 {
            self.bytes.push(0x41);
        }
        self.bytes.push(0x58 | reg & 7);
    }

    /// Fills up so that four bytes behind `opcode` more lie within eight aligned ones: one store then changes them whole for
    /// other threads that run them, on any processor. `base` is the address of position 0.
    pub fn align_for_patch(&mut self, base: u64, opcode: usize) {
        match (base as usize + self.here() + opcode) % 8 {
            5 => self.raw(&[0x0f, 0x1f, 0x00]),
            6 => self.raw(&[0x66, 0x90]),
            7 => self.raw(&[0x90]),
            _ => {}
        }
    }

    /// `jmp rel32` that can be patched while other threads run it. Returns the position of the displacement.
    pub fn patchable_jump(&mut self, base: u64) -> usize {
        self.align_for_patch(base, 1);
        self.jmp()
    }

    /// `jcc rel32` for condition code `cc`; returns the position of the displacement.
    pub fn jcc(&mut self, cc: u8) -> usize {
        self.raw(&[0x0f, 0x80 | cc & 15]);
        self.imm32(0);
        self.here() - 4
    }

    /// `jmp rel32`; returns the position of the displacement.
    pub fn jmp(&mut self) -> usize {
        self.bytes.push(0xe9);
        self.imm32(0);
        self.here() - 4
    }

    /// `jmp rel8`; returns the position of the displacement.
    pub fn jmp8(&mut self) -> usize {
        self.raw(&[0xeb, 0]);
        self.here() - 1
    }

    /// `jz rel8`; returns the position of the displacement.
    pub fn jz(&mut self) -> usize {
        self.raw(&[0x74, 0]);
        self.here() - 1
    }

    /// `dec qword gs:[offset]`, which changes flags
    pub fn gs_dec(&mut self, offset: u32) {
        self.raw(&[0x65, 0x48, 0xff, 0x0c, 0x25]);
        self.imm32(offset);
    }

    /// `push imm32`, sign-extended
    pub fn push_imm(&mut self, v: i32) {
        self.bytes.push(0x68);
        self.raw(&v.to_le_bytes());
    }

    /// `jrcxz rel8`; returns the position of the displacement.
    pub fn jrcxz(&mut self) -> usize {
        self.raw(&[0xe3, 0]);
        self.here() - 1
    }

    /// Makes the rel32 at `at` lead to position `to`.
    pub fn bind32(&mut self, at: usize, to: usize) {
        let rel = (to as i64 - (at as i64 + 4)) as i32;
        self.bytes[at..at + 4].copy_from_slice(&rel.to_le_bytes());
    }

    /// Makes the rel8 at `at` lead to position `to` (at most 127 bytes on).
    pub fn bind8(&mut self, at: usize, to: usize) {
        self.bytes[at] = (to as i64 - (at as i64 + 1)) as u8;
    }
}

fn sib(scale: u8, index: Gpr, base: Gpr) -> u8 {
    (scale.trailing_zeros() as u8) << 6 | (index & 7) << 3 | base & 7
}

fn log_word(word: u16) -> Mem {
    Mem { base: Some(LOG), index: None, disp: i32::from(word) * 8, fs: false }
}
