//! Limits of the wire format, each with the function of Bitcoin Core it comes from. Constants only.

/// Largest length or count a CompactSize may announce: Core's `MAX_SIZE` (serialize.h). Larger is a parse error.
pub const COMPACT_SIZE_MAX: u64 = 0x0200_0000;

/// Largest buffer taken for one block, in bytes. Offsets are `u32`, and no message or record that Core reads is larger.
pub const BLOCK_BUFFER_SIZE_MAX: usize = 0x0200_0000;
