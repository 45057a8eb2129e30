//! Many independent checks side by side in SIMD lanes.
//!
//! Input: checks that [`prepare`] could read. Output: for each, whether it holds, or that the formulas met an exceptional
//! case and the reference must decide. Formulas are written once, over [`Lanes`]; an instruction set implements that trait
//! and nothing else. Invariants: one check per lane, no lane reads another's values (`batch` alone
//! joins many checks); what a kernel decides is what libsecp256k1 decides. Cost: `docs/benchmarks/lanes.md`. Must never: guess. Derivations: `docs/derivations/`.
#![allow(clippy::needless_range_loop, reason = "one index walks the limbs of several values and columns")]

#[cfg(target_arch = "x86_64")]
mod avx2;
mod batch;
mod buckets;
mod decide;
mod engine;
mod field;
mod generator;
#[cfg(target_arch = "x86_64")]
mod ifma512;
mod lift;
mod plain;
mod point;
mod prepare;
mod scalar;
#[cfg(test)]
mod tests;
#[cfg(target_arch = "x86_64")]
mod ymm;

pub use engine::{LaneEngine, Tally};

use std::fmt::Debug;

/// The widest vector of any instruction set.
pub(crate) const WIDTH_MAX: usize = 8;

/// The low 52 bits of a word: one limb.
pub(crate) const LIMB: u64 = (1 << 52) - 1;

/// Sixteen values of five limbs, from which every lane picks its own.
pub(crate) type Entries<L> = [[<L as Lanes>::Vector; 5]; 16];

/// One cache line of the generator's table: x and y of a point, four words each, the lowest first.
#[derive(Clone, Copy, Debug, Default)]
#[repr(C, align(64))]
pub(crate) struct Line(pub(crate) [u64; 8]);

/// An instruction set: vectors of 64-bit words and a multiplier of 52-bit limbs.
///
/// A value of the implementing type is the proof that the CPU has the instructions, so every method is safe. Methods are
/// inlined into the closure given to [`Lanes::run`], and only there do they become single instructions.
pub(crate) trait Lanes: Copy + Debug + Send + Sync + 'static {
    /// The name that settings and reports show.
    const NAME: &'static str;
    /// Whether the low part of a product may be negative; it then is at least -2^51, and the high part one more.
    const IS_SIGNED: bool = false;
    /// What [`Lanes::multiply_loose`] adds to `low` and `high` beyond the product, modulo 2^64.
    const LOW_EXCESS: u64 = 0;
    const HIGH_EXCESS: u64 = 0;
    /// Lanes in a vector.
    const WIDTH: usize;
    /// One word for each lane.
    type Vector: Copy + Debug + Send + Sync;
    /// One limb as the multiplier takes it; bits above 52 are dropped on the way.
    type Factor: Copy + Debug + Send + Sync;
    /// One truth for each lane.
    type Mask: Copy + Debug + Send + Sync;

    /// Runs `work` compiled for this instruction set.
    fn run<R>(self, work: impl FnOnce() -> R) -> R;

    /// A piece that is inlined where registers hold it, and called where assertions make it long or where sixteen registers
    /// do not hold it.
    #[inline(always)]
    fn piece<R>(self, work: impl FnOnce() -> R) -> R {
        if cfg!(debug_assertions) || Self::IS_SIGNED { self.run(work) } else { work() }
    }

    fn splat(self, word: u64) -> Self::Vector;
    /// The first `WIDTH` words.
    fn load(self, words: &[u64; WIDTH_MAX]) -> Self::Vector;
    /// The words, then zeros.
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

    /// [`Lanes::multiply`], which leaves constants in the sums that whoever counts products takes out at once.
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
    /// The reverse, for as many rows as there are, `WIDTH` at most.
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

/// The line of an index. The mask keeps it inside the table whatever a lane computed.
#[inline(always)]
#[allow(clippy::cast_possible_truncation, reason = "masked to 12 bits")]
fn line(table: &[Line; 4096], index: u64) -> &Line {
    &table[(index & 4095) as usize]
}
