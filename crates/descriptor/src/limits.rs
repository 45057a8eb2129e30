//! Limits of descriptors. Each has a test at the limit and above it.

/// Maximum nesting of miniscript expressions; each letter before a colon counts. Core is only limited by the script
/// size; no wallet comes near this.
pub const MINISCRIPT_DEPTH_MAX: usize = 250;

/// Maximum parts of a threshold in a script. The stack has room for 1,000 elements, so one with more parts can be spent
/// only if some need none. In Core, a leaf script may have 80,000; its time grows with their square.
pub const THRESHOLD_PARTS_MAX: usize = 1_000;

/// Maximum steps from an aggregate key of MuSig2 to a key derived from it. The depth of an extended key has one byte.
pub const AGGREGATE_STEPS_MAX: usize = 255;
