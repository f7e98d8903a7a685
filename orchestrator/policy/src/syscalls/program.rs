//! The bytes that the kernel loads.

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

/// A program for `seccomp(SECCOMP_SET_MODE_FILTER)`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Program {
    instructions: Vec<Instruction>,
}

impl Program {
    /// The largest number of instructions that the kernel takes
    /// (`BPF_MAXINSNS`).
    pub const MAX: usize = 4096;

    pub(super) fn new(instructions: Vec<Instruction>) -> Self {
        Self { instructions }
    }

    /// The instructions, in order.
    #[must_use]
    pub fn instructions(&self) -> &[Instruction] {
        &self.instructions
    }

    /// An array of `struct sock_filter`, little endian, 8 bytes each: what
    /// `sock_fprog.filter` points to, with [`Program::instructions`]`.len()` as
    /// `sock_fprog.len`.
    #[must_use]
    pub fn bytes(&self) -> Vec<u8> {
        let mut bytes = Vec::with_capacity(self.instructions.len() * Instruction::SIZE);
        for i in &self.instructions {
            bytes.extend_from_slice(&i.code.to_le_bytes());
            bytes.extend_from_slice(&[i.jump_true, i.jump_false]);
            bytes.extend_from_slice(&i.value.to_le_bytes());
        }
        bytes
    }
}
