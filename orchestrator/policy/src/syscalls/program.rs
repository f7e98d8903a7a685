//! The bytes that the kernel loads.

use std::borrow::Cow;

use super::compile::{RET_ASK, RETURN};
use super::number::fault;
use crate::error::Error;

/// One instruction of classic BPF, `struct sock_filter` (linux/filter.h).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Instruction {
    /// Operation.
    pub code: u16,
    /// Instructions to skip where a condition is true.
    pub jump_true: u8,
    /// Instructions to skip where it is false.
    pub jump_false: u8,
    /// Operand.
    pub value: u32,
}

impl Instruction {
    /// Size in memory, bytes.
    pub const SIZE: usize = 8;
}

/// A program for `seccomp(SECCOMP_SET_MODE_FILTER)`: 1–4096 instructions.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Program {
    bytes: Cow<'static, [u8]>,
}

impl Program {
    /// The largest number of instructions that the kernel takes
    /// (`BPF_MAXINSNS`).
    pub const MAX: usize = 4096;

    pub(super) fn new(bytes: impl Into<Cow<'static, [u8]>>) -> Result<Self, Error> {
        let bytes = bytes.into();
        let whole = bytes.len() % Instruction::SIZE == 0;
        if !whole || bytes.is_empty() || bytes.len() > Self::MAX * Instruction::SIZE {
            return Err(fault("program", format!("{} bytes", bytes.len())));
        }
        Ok(Self { bytes })
    }

    pub(super) fn assemble(instructions: &[Instruction]) -> Result<Self, Error> {
        let mut bytes = Vec::with_capacity(instructions.len() * Instruction::SIZE);
        for i in instructions {
            bytes.extend_from_slice(&i.code.to_le_bytes());
            bytes.extend_from_slice(&[i.jump_true, i.jump_false]);
            bytes.extend_from_slice(&i.value.to_le_bytes());
        }
        Self::new(bytes)
    }

    /// An array of `struct sock_filter`, little endian, 8 bytes each: what
    /// `sock_fprog.filter` points to, with [`Program::size`] as `sock_fprog.len`.
    #[must_use]
    pub fn bytes(&self) -> &[u8] {
        &self.bytes
    }

    /// The number of instructions, 1–4096.
    #[must_use]
    pub fn size(&self) -> usize {
        self.bytes.len() / Instruction::SIZE
    }

    /// Whether some calls wait for the word of a listener: then the filter is
    /// loaded with `SECCOMP_FILTER_FLAG_NEW_LISTENER` (seccomp_unotify(2)).
    #[must_use]
    pub fn asks(&self) -> bool {
        (0..self.size())
            .filter_map(|index| self.instruction(index))
            .any(|i| i.code == RETURN && i.value == RET_ASK)
    }

    /// The instruction at an index; nothing past the end.
    #[must_use]
    pub fn instruction(&self, index: usize) -> Option<Instruction> {
        let bytes = self.bytes.get(index * Instruction::SIZE..)?;
        let [c, d, jump_true, jump_false, v, w, x, y] = *bytes.first_chunk()?;
        Some(Instruction {
            code: u16::from_le_bytes([c, d]),
            jump_true,
            jump_false,
            value: u32::from_le_bytes([v, w, x, y]),
        })
    }
}
