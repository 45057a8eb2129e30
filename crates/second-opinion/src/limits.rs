//! Limits of the second opinion. Constants only.

/// Bytes of blocks at the tip, with the coins they spend, that are being verified or wait for it; one block is always
/// accepted. Some thirty full blocks.
pub const TIP_BYTES_MAX: usize = 64 << 20;

/// The same for the sample during the sync: less, since a block that is not sampled loses nothing.
pub const SAMPLE_BYTES_MAX: usize = 16 << 20;
