//! Limits of this crate, each with a test at it and above it.

/// Minimum number of checks of a kind for the lanes. Fewer go to the reference, because the lanes cannot be faster.
pub const LANE_CHECKS_MIN: usize = 3;

/// Maximum number of checks of a kind that go through the lanes together and share two inversions.
pub const PORTION_CHECKS_MAX: usize = 1_024;

/// Maximum number of disagreements of a kernel with the reference that are kept and reported; the others are only
/// counted.
pub const DISAGREEMENTS_MAX: usize = 16;

/// Maximum excess of exceptional lanes of a portion over the other lanes. Above it, the rest of the portion goes to the
/// reference. It bounds the extra cost that an adversary can cause, compared with the reference's time.
pub const EXCEPTIONAL_LANES_MAX: usize = 32;

/// Minimum number of Schnorr checks that one equation decides together, for kernels whose own minimum was not measured.
pub const BATCH_CHECKS_MIN: usize = 600;

/// Maximum number of Schnorr checks that one equation decides. More would save little, and one false check means that
/// all of them are verified again.
pub const BATCH_CHECKS_MAX: usize = 8_192;

/// Maximum memory of one thread that is kept between batches. A batch that needs more, as an equation of about 6,000
/// checks does by computation, returns it.
pub const BATCH_MEMORY_BYTES: usize = 8 << 20;

/// Maximum number of large batches of Schnorr checks that are decided one by one after an equation that did not hold.
/// Without it, a false check in every batch would cost an equation each time.
pub const BATCHES_ALONE_MAX: u32 = 15;
