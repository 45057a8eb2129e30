//! Limits of this crate, each with a test at it and above it.

/// Fewer checks of a kind than this go to the reference: the lanes cannot be faster.
pub const LANE_CHECKS_MIN: usize = 3;

/// Checks of a kind that go through the lanes together; two inversions are shared by so many.
pub const PORTION_CHECKS_MAX: usize = 1_024;

/// Disagreements of a kernel with the reference that are kept and told; the others are counted.
pub const DISAGREEMENTS_MAX: usize = 16;

/// Exceptional lanes of a portion, beyond those that were not, above which the rest of the portion goes to the reference: what
/// an adversary can make a portion cost more than the reference's time.
pub const EXCEPTIONAL_LANES_MAX: usize = 32;

/// From so many Schnorr checks on one equation decides them together.
pub const BATCH_CHECKS_MIN: usize = 2_000;

/// Schnorr checks that one equation decides: more would save little, and one that is false costs them all a second look.
pub const BATCH_CHECKS_MAX: usize = 8_192;
