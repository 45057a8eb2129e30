//! Limits of descriptors. Each has a test at the limit and above it.

/// Maximum nesting of miniscript expressions; each letter before a colon counts. Core is only limited by the script
/// size; no wallet comes near this.
pub const MINISCRIPT_DEPTH_MAX: usize = 250;
