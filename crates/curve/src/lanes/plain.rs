//! One lane in portable Rust; every addition is checked for overflow if the build enables overflow checks.
//!
//! Input and output as in [`Lanes`]. It builds the generator's table, and tests compare the instruction sets with it.
//! Cost: about that of libsecp256k1 without its precomputation. Must never: differ from an instruction set in any lane.

use super::{LIMB, Lanes};

/// The parts of [`Lanes`] that are the same for all kernels of one lane: everything but how numbers are added,
/// subtracted and multiplied.
macro_rules! one_lane {
    () => {
        const WIDTH: usize = 1;
        type Vector = u64;
        type Factor = u64;
        type Mask = bool;

        #[inline(always)]
        fn splat(self, word: u64) -> u64 {
            word
        }

        #[inline(always)]
        fn load(self, words: &[u64; $crate::lanes::WIDTH_MAX]) -> u64 {
            words[0]
        }

        #[inline(always)]
        fn store(self, vector: u64) -> [u64; $crate::lanes::WIDTH_MAX] {
            [vector, 0, 0, 0, 0, 0, 0, 0]
        }

        #[inline(always)]
        fn mask(self, bits: u8) -> bool {
            bits & 1 != 0
        }

        #[inline(always)]
        fn bits(self, mask: bool) -> u8 {
            u8::from(mask)
        }

        #[inline(always)]
        fn and(self, a: u64, b: u64) -> u64 {
            a & b
        }

        #[inline(always)]
        fn or(self, a: u64, b: u64) -> u64 {
            a | b
        }

        #[inline(always)]
        fn xor(self, a: u64, b: u64) -> u64 {
            a ^ b
        }

        #[inline(always)]
        fn shl(self, a: u64, count: u32) -> u64 {
            a << count
        }

        #[inline(always)]
        fn shr(self, a: u64, count: u32) -> u64 {
            a >> count
        }

        #[inline(always)]
        fn equal(self, a: u64, b: u64) -> bool {
            a == b
        }

        #[inline(always)]
        fn select(self, mask: bool, a: u64, b: u64) -> u64 {
            if mask { a } else { b }
        }

        #[inline(always)]
        fn differ(self, a: bool, b: bool) -> bool {
            a != b
        }

        #[inline(always)]
        fn factor(self, a: u64) -> u64 {
            a & $crate::lanes::LIMB
        }

        #[inline(always)]
        fn pick(self, entries: &$crate::lanes::Entries<Self>, index: u64) -> [u64; 5] {
            entries[$crate::lanes::plain::low_bits(index)]
        }

        #[inline(always)]
        fn lines(self, table: &[$crate::lanes::Line; 4096], index: u64) -> [u64; 8] {
            $crate::lanes::line(table, index).0
        }

        #[inline(always)]
        fn is_below(self, a: u64, bits: u32) -> bool {
            bits >= 64 || a >> bits == 0
        }
    };
}
pub(super) use one_lane;

/// The portable kernel, which needs no CPU features.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Plain;

impl Lanes for Plain {
    const NAME: &'static str = "plain";
    const IS_AFFINE: bool = true;
    one_lane!();

    #[inline]
    fn run<R>(self, work: impl FnOnce() -> R) -> R {
        work()
    }

    #[inline(always)]
    fn add(self, a: u64, b: u64) -> u64 {
        a + b
    }

    #[inline(always)]
    fn sub(self, a: u64, b: u64) -> u64 {
        a - b
    }

    #[inline(always)]
    fn multiply(self, low: u64, high: u64, a: u64, b: u64) -> (u64, u64) {
        let product = u128::from(a) * u128::from(b);
        let (below, above) = split(product);
        (low + below, high + above)
    }
}

/// Splits a product of two limbs into two halves, both below 2^52.
#[inline(always)]
#[allow(clippy::cast_possible_truncation, reason = "each half is cut to 52 bits")]
fn split(product: u128) -> (u64, u64) {
    ((product as u64) & LIMB, (product >> 52) as u64)
}

/// The mask keeps an index inside its table regardless of what the formulas computed.
#[inline(always)]
#[allow(clippy::cast_possible_truncation, reason = "masked to 4 bits")]
pub(super) fn low_bits(index: u64) -> usize {
    (index & 15) as usize
}
