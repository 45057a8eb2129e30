//! Many independent checks in parallel in SIMD lanes.
//!
//! Input: checks that [`prepare`] accepted. Output: for each, whether it holds, or that the formulas met an exceptional
//! case and the reference must decide. Formulas are written once, over [`Lanes`]; an instruction set implements only
//! that trait. Invariants: one check per lane, no lane reads the values of another (only `batch` combines checks); a
//! kernel's verdict is that of libsecp256k1. Cost: `docs/benchmarks/lanes.md`. Must never: guess. Derivations:
//! `docs/derivations/`.
#![allow(clippy::needless_range_loop, reason = "one index walks the limbs of several values and columns")]

mod affine;
#[cfg(target_arch = "x86_64")]
mod avx2;
mod batch;
mod buckets;
mod decide;
mod engine;
mod failures;
mod field;
mod generator;
#[cfg(target_arch = "x86_64")]
mod ifma512;
mod inverse;
mod known;
mod lift;
mod memory;
#[cfg(target_arch = "aarch64")]
mod neon;
mod plain;
mod point;
mod prepare;
mod scalar;
mod sign;
#[cfg(test)]
mod tests;
mod word;
#[cfg(target_arch = "x86_64")]
mod ymm;

pub use engine::{LaneEngine, Tally};

use crate::limits::BATCH_CHECKS_MIN;
use field::{PackedLanes, ProductLanes};
use std::fmt::Debug;

/// Lanes of the widest vector of any instruction set.
pub(crate) const WIDTH_MAX: usize = 8;

/// The low 52 bits of a word: one limb.
pub(crate) const LIMB: u64 = (1 << 52) - 1;

/// Sixteen values of five limbs, from which every lane picks one.
pub(crate) type Entries<L> = [[<L as Lanes>::Vector; 5]; 16];

/// One cache line of the generator's table: x and y of a point, four words each, least significant first.
#[derive(Clone, Copy, Debug, Default)]
#[repr(C, align(64))]
pub(crate) struct Line(pub(crate) [u64; 8]);

/// An instruction set: vectors of 64-bit words and a multiplier of 52-bit limbs.
///
/// A value of the implementing type is the proof that the CPU has the instructions, so every method is safe. Methods
/// are inlined into the closure passed to [`Lanes::run`], and become single instructions only there.
pub(crate) trait Lanes: Copy + Debug + Send + Sync + 'static {
    /// The name shown in settings and reports.
    const NAME: &'static str;
    /// Whether the low part of a product may be negative; it is then at least -2^51, and the high part is larger by
    /// one.
    const IS_SIGNED: bool = false;
    /// The constants that [`Lanes::multiply_loose`] adds to `low` and `high` besides the product, modulo 2^64.
    const LOW_EXCESS: u64 = 0;
    const HIGH_EXCESS: u64 = 0;
    /// Whether groups of lanes add points in affine coordinates with one inversion for many of them (`affine`).
    const IS_AFFINE: bool = false;
    /// The field arithmetic of lanes that pack a value into four words; `None` if values are limbs of 52 bits.
    const PACKED: Option<PackedLanes<Self>> = None;
    /// Its multiplication in the field; `None` if it is made of [`Lanes::multiply_loose`].
    const PRODUCTS: Option<ProductLanes<Self>> = None;
    /// Whether two groups compute side by side after their affine additions, because one alone leaves the multiplier
    /// idle.
    const HAS_TWO_ABREAST: bool = false;
    /// Most groups that add points in affine coordinates together: more share an inversion, fewer stay in the cache.
    const GROUPS_TOGETHER_MAX: usize = 10;
    /// How many useful lanes save at least the time, compared with the reference, that a wasted lane costs.
    const USEFUL_PER_WASTED: usize = 1;
    /// Minimum number of Schnorr checks for which one equation is faster (`docs/benchmarks/lanes-schnorr-batch.md`).
    const BATCH_CHECKS_MIN: usize = BATCH_CHECKS_MIN;
    /// Lanes in a vector.
    const WIDTH: usize;
    /// One word for each lane.
    type Vector: Copy + Debug + Send + Sync;
    /// One limb in the form that the multiplier accepts; bits above 52 are dropped in the conversion.
    type Factor: Copy + Debug + Send + Sync;
    /// One boolean for each lane.
    type Mask: Copy + Debug + Send + Sync;

    /// Runs `work` compiled for this instruction set.
    fn run<R>(self, work: impl FnOnce() -> R) -> R;

    /// Runs a part of a computation: inlined if it fits into the registers, called if assertions make it long or
    /// sixteen registers are too few for it.
    #[inline(always)]
    fn piece<R>(self, work: impl FnOnce() -> R) -> R {
        if cfg!(debug_assertions) || Self::IS_SIGNED { self.run(work) } else { work() }
    }

    fn splat(self, word: u64) -> Self::Vector;
    /// The first `WIDTH` words.
    fn load(self, words: &[u64; WIDTH_MAX]) -> Self::Vector;
    /// The words, followed by zeros.
    fn store(self, vector: Self::Vector) -> [u64; WIDTH_MAX];
    /// Bit i is lane i.
    fn mask(self, bits: u8) -> Self::Mask;
    fn bits(self, mask: Self::Mask) -> u8;

    fn add(self, a: Self::Vector, b: Self::Vector) -> Self::Vector;
    fn sub(self, a: Self::Vector, b: Self::Vector) -> Self::Vector;
    fn and(self, a: Self::Vector, b: Self::Vector) -> Self::Vector;
    fn or(self, a: Self::Vector, b: Self::Vector) -> Self::Vector;
    fn xor(self, a: Self::Vector, b: Self::Vector) -> Self::Vector;
    fn shl(self, a: Self::Vector, count: u32) -> Self::Vector;
    fn shr(self, a: Self::Vector, count: u32) -> Self::Vector;

    fn equal(self, a: Self::Vector, b: Self::Vector) -> Self::Mask;
    /// `a` where the mask is set, `b` elsewhere.
    fn select(self, mask: Self::Mask, a: Self::Vector, b: Self::Vector) -> Self::Vector;
    fn differ(self, a: Self::Mask, b: Self::Mask) -> Self::Mask;

    /// The low 52 bits, ready to be multiplied.
    fn factor(self, a: Self::Vector) -> Self::Factor;
    /// Adds the low 52 bits of `a * b` to `low` and the bits above them to `high`.
    fn multiply(
        self,
        low: Self::Vector,
        high: Self::Vector,
        a: Self::Factor,
        b: Self::Factor,
    ) -> (Self::Vector, Self::Vector);

    /// Like [`Lanes::multiply`], but leaves constants in the sums. The caller counts the products and subtracts the
    /// constants once.
    #[inline(always)]
    fn multiply_loose(
        self,
        low: Self::Vector,
        high: Self::Vector,
        a: Self::Factor,
        b: Self::Factor,
    ) -> (Self::Vector, Self::Vector) {
        self.multiply(low, high, a, b)
    }

    /// Lane i of entry `index[i] % 16`.
    fn pick(self, entries: &Entries<Self>, index: Self::Vector) -> [Self::Vector; 5];
    /// Word w of the result holds word w of line `index[i] % 4096` in lane i.
    fn lines(self, table: &[Line; 4096], index: Self::Vector) -> [Self::Vector; 8];

    /// Word w of the result holds word w of row i in lane i.
    #[inline(always)]
    fn rows(self, rows: [&Line; WIDTH_MAX]) -> [Self::Vector; 8] {
        let mut words = [[0; WIDTH_MAX]; 8];
        for lane in 0..Self::WIDTH {
            for i in 0..8 {
                words[i][lane] = rows[lane].0[i];
            }
        }
        let [a, b, c, d, e, f, g, h] = &words;
        [self.load(a), self.load(b), self.load(c), self.load(d), self.load(e), self.load(f), self.load(g), self.load(h)]
    }
    /// The reverse of [`Lanes::rows`], for up to `WIDTH` rows.
    #[inline(always)]
    fn store_rows(self, words: [Self::Vector; 8], rows: &mut [Line]) {
        for i in 0..8 {
            for (row, word) in rows.iter_mut().zip(self.store(words[i])).take(Self::WIDTH) {
                row.0[i] = word;
            }
        }
    }

    /// Whether no lane has a bit at or above `bits`; for assertions.
    fn is_below(self, a: Self::Vector, bits: u32) -> bool;
}

/// Returns the line of an index. The mask keeps the index inside the table regardless of what a lane computed.
#[inline(always)]
#[allow(clippy::cast_possible_truncation, reason = "masked to 12 bits")]
fn line(table: &[Line; 4096], index: u64) -> &Line {
    &table[(index & 4095) as usize]
}
