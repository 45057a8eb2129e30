//! Numbers modulo 2^3072 - 1103717, the largest 3072-bit safe prime.
//!
//! Input and output: 384 bytes, little-endian. Invariant: 48 limbs of 64 bits; `multiply` leaves the value below the
//! modulus, `from_bytes` may exceed it. Not constant time. Cost: 972 limb products (Karatsuba's method, three levels)
//! and two short folds per multiplication. Must never: hold anything secret.

/// 2^3072 minus the modulus.
pub(super) const PRIME_DIFF: u64 = 1_103_717;
const LIMBS: usize = 48;

/// A number modulo 2^3072 - 1103717; see the module documentation.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Num3072 {
    limbs: [u64; LIMBS],
}

impl Num3072 {
    pub(super) const BYTES: usize = 8 * LIMBS;

    pub(super) const ONE: Self = {
        let mut limbs = [0; LIMBS];
        limbs[0] = 1;
        Self { limbs }
    };

    pub(super) fn from_bytes(bytes: &[u8; Self::BYTES]) -> Self {
        let mut limbs = [0; LIMBS];
        for (limb, chunk) in limbs.iter_mut().zip(bytes.as_chunks::<8>().0) {
            *limb = u64::from_le_bytes(*chunk);
        }
        Self { limbs }
    }

    pub(super) fn to_bytes(&self) -> [u8; Self::BYTES] {
        let mut out = [0; Self::BYTES];
        for (chunk, limb) in out.as_chunks_mut::<8>().0.iter_mut().zip(&self.limbs) {
            *chunk = limb.to_le_bytes();
        }
        out
    }

    /// The sum of `limbs[k]` times 2^(bits * k), reduced below the modulus.
    ///
    /// The limbs may be a little above 2^bits, and `bits` at most 60; the sum must be below 2^6080.
    #[cfg(target_arch = "x86_64")]
    pub(super) fn from_limbs(limbs: &[u64], bits: u32) -> Self {
        let mut wide = [0; 2 * LIMBS];
        let mut words = wide.iter_mut();
        // What has not been stored: `rest_bits` bits, or one more.
        let (mut rest, mut rest_bits) = (0, 0);
        for limb in limbs {
            let (low, high) = limb.carrying_mul_add(1 << rest_bits, rest, 0);
            rest_bits += bits;
            if rest_bits >= 64 {
                words.next().into_iter().for_each(|word| *word = low);
                rest = high;
                rest_bits -= 64;
            } else {
                debug_assert!(high == 0, "at most 60 bits and a carry");
                rest = low;
            }
        }
        words.next().into_iter().for_each(|word| *word = rest);
        let mut out = Self::ONE;
        out.set_wide(&mut wide);
        out
    }

    /// `self = self * other`, reduced below the modulus.
    pub(super) fn multiply(&mut self, other: &Self) {
        let mut wide = [0; 2 * LIMBS];
        product_48(&self.limbs, &other.limbs, &mut wide);
        self.set_wide(&mut wide);
    }

    /// Sets `self` to a number of twice its length, reduced below the modulus.
    fn set_wide(&mut self, wide: &mut [u64; 2 * LIMBS]) {
        let (low, high) = wide.split_at_mut(LIMBS);
        // 2^3072 = PRIME_DIFF modulo p, so PRIME_DIFF times the high half is added; the carry out is below 2^21.
        let carry = add_product(low, high, PRIME_DIFF);
        debug_assert!(carry >> 21 == 0, "the high half is below 2^3072");
        self.limbs.copy_from_slice(low);
        // carry * PRIME_DIFF is below 2^42: if the addition overflows, the result is below 2^42 and the second addition
        // cannot overflow.
        if self.add_small(carry * PRIME_DIFF) {
            let again = self.add_small(PRIME_DIFF);
            debug_assert!(!again, "a sum that overflowed is small");
        }
        self.reduce();
    }

    /// The modular inverse (zero for zero), by Fermat's little theorem: x^(p - 2).
    ///
    /// p - 2 = 2^3072 - 1103719 is 3,051 one bits followed by the 21 low bits of 2^21 - 1103719.
    pub(super) fn inverse(&self) -> Self {
        const LOW_BITS: u32 = 21;
        const ONES: u32 = 3072 - LOW_BITS;
        const LOW: u64 = (1 << LOW_BITS) - (PRIME_DIFF + 2);
        // `power` is self^(2^ones - 1); `ones` is built up from the top bit of ONES down.
        let mut power = self.clone();
        let mut ones = 1;
        for bit in (0..ONES.ilog2()).rev() {
            let mut shifted = power.clone();
            shifted.square_times(ones);
            power.multiply(&shifted);
            ones *= 2;
            if ONES >> bit & 1 == 1 {
                power.square_times(1);
                power.multiply(self);
                ones += 1;
            }
        }
        debug_assert!(ones == ONES, "the chain of doublings follows the bits of ONES");
        for bit in (0..LOW_BITS).rev() {
            power.square_times(1);
            if LOW >> bit & 1 == 1 {
                power.multiply(self);
            }
        }
        power
    }

    fn square_times(&mut self, count: u32) {
        for _ in 0..count {
            let same = self.clone();
            self.multiply(&same);
        }
    }

    /// Subtracts the modulus if the value is not below it; once is enough for a value below 2^3072.
    fn reduce(&mut self) {
        let is_over =
            self.limbs[0] >= PRIME_DIFF.wrapping_neg() && self.limbs[1..].iter().all(|&limb| limb == u64::MAX);
        if is_over {
            let carried = self.add_small(PRIME_DIFF);
            debug_assert!(carried, "adding 2^3072 - p to a value of p or more passes 2^3072");
        }
    }

    /// Adds modulo 2^3072 and returns whether the addition overflowed.
    fn add_small(&mut self, small: u64) -> bool {
        let mut carry = small;
        for limb in &mut self.limbs {
            let (sum, overflow) = limb.overflowing_add(carry);
            *limb = sum;
            if !overflow {
                return false;
            }
            carry = 1;
        }
        true
    }
}

/// The product of numbers of twice the length of `$half`, which multiplies `$h` limbs (Karatsuba's method).
///
/// With a = a0 + a1 x and b = b0 + b1 x, the middle part a0 b1 + a1 b0 is a0 b0 + a1 b1 + (a0 - a1)(b1 - b0).
macro_rules! karatsuba {
    ($name:ident = $half:ident($h:literal)) => {
        fn $name(a: &[u64; 2 * $h], b: &[u64; 2 * $h], out: &mut [u64; 4 * $h]) {
            let (a, b) = (a.as_chunks::<$h>().0, b.as_chunks::<$h>().0);
            let halves = out.as_chunks_mut::<{ 2 * $h }>().0;
            $half(&a[0], &b[0], &mut halves[0]);
            $half(&a[1], &b[1], &mut halves[1]);
            let mut middle = halves[0];
            let mut top = u64::from(add_to(&mut middle, &halves[1]));
            let (a_difference, a_is_negative) = difference(&a[0], &a[1]);
            let (b_difference, b_is_negative) = difference(&b[1], &b[0]);
            let mut product = [0; 2 * $h];
            $half(&a_difference, &b_difference, &mut product);
            // The middle part is below 2^(64 * 2h + 1), so `top` ends as 0 or 1.
            if a_is_negative == b_is_negative {
                top += u64::from(add_to(&mut middle, &product));
            } else {
                top = top.wrapping_sub(u64::from(subtract_from(&mut middle, &product)));
            }
            debug_assert!(top <= 1, "the middle part is a sum of two products");
            let (low, high) = out.split_at_mut(3 * $h);
            let mut carry = top + u64::from(add_to(&mut low[$h..], &middle));
            for limb in high {
                let (sum, overflow) = limb.overflowing_add(carry);
                *limb = sum;
                carry = u64::from(overflow);
            }
        }
    };
}

karatsuba!(product_48 = product_24(24));
karatsuba!(product_24 = product_12(12));
karatsuba!(product_12 = product_6(6));

/// The product of numbers of six limbs, row by row.
fn product_6(a: &[u64; 6], b: &[u64; 6], out: &mut [u64; 12]) {
    *out = [0; 12];
    for (i, &a) in a.iter().enumerate() {
        out[i + 6] = add_product(&mut out[i..i + 6], b, a);
    }
}

/// The distance of `x` and `y`, and whether `y` is the larger.
fn difference<const N: usize>(x: &[u64; N], y: &[u64; N]) -> ([u64; N], bool) {
    let mut out = *x;
    let is_negative = subtract_from(&mut out, y);
    if is_negative {
        let mut carry = true;
        for limb in &mut out {
            (*limb, carry) = (!*limb).carrying_add(0, carry);
        }
    }
    (out, is_negative)
}

/// `sum += other`, returning the carry out of the highest limb.
fn add_to(sum: &mut [u64], other: &[u64]) -> bool {
    let mut carry = false;
    for (limb, &other) in sum.iter_mut().zip(other) {
        (*limb, carry) = limb.carrying_add(other, carry);
    }
    carry
}

/// `from -= other`, returning the borrow out of the highest limb.
fn subtract_from(from: &mut [u64], other: &[u64]) -> bool {
    let mut borrow = false;
    for (limb, &other) in from.iter_mut().zip(other) {
        (*limb, borrow) = limb.borrowing_sub(other, borrow);
    }
    borrow
}

/// `sum += factors * by`, returning the carry out of the highest limb.
fn add_product(sum: &mut [u64], factors: &[u64], by: u64) -> u64 {
    let mut carry = 0;
    for (limb, &factor) in sum.iter_mut().zip(factors) {
        (*limb, carry) = factor.carrying_mul_add(by, *limb, carry);
    }
    carry
}

#[cfg(test)]
mod tests {
    use super::*;

    fn modulus_plus(small: u64) -> Num3072 {
        let mut limbs = [u64::MAX; LIMBS];
        limbs[0] = PRIME_DIFF.wrapping_neg() + small;
        Num3072 { limbs }
    }

    fn small(value: u64) -> Num3072 {
        let mut out = Num3072::ONE;
        out.limbs[0] = value;
        out
    }

    #[test]
    fn products_are_reduced() {
        for value in [0, 1, 2, PRIME_DIFF - 1] {
            let mut number = modulus_plus(value);
            number.multiply(&Num3072::ONE);
            assert_eq!(number, small(value));
        }
        // (2^3072 - 1)^2 = (PRIME_DIFF - 1)^2
        let mut number = modulus_plus(PRIME_DIFF - 1);
        number.multiply(&modulus_plus(PRIME_DIFF - 1));
        assert_eq!(number, small((PRIME_DIFF - 1) * (PRIME_DIFF - 1)));
        // (p - 1)^2 = 1
        let mut minus_one = modulus_plus(0);
        minus_one.limbs[0] -= 1;
        let mut number = minus_one.clone();
        number.multiply(&minus_one);
        assert_eq!(number, Num3072::ONE);
    }

    /// Karatsuba's method against the rows of the schoolbook, on blocks of six limbs that are zero, full, one or
    /// random: both signs of every difference, and the longest carries.
    #[test]
    fn products_equal_the_schoolbook() {
        let mut seed = 1_u64;
        let mut random = || {
            seed = seed.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            seed ^ seed >> 29
        };
        let mut numbers = vec![[0; LIMBS], [u64::MAX; LIMBS]];
        for _ in 0..100 {
            let mut number = [0; LIMBS];
            for block in number.as_chunks_mut::<6>().0 {
                match random() % 4 {
                    0 => {}
                    1 => block.fill(u64::MAX),
                    2 => block[0] = 1,
                    _ => block.fill_with(&mut random),
                }
            }
            numbers.push(number);
        }
        for a in &numbers {
            for b in &numbers {
                let mut expected = [0; 2 * LIMBS];
                for (i, &a) in a.iter().enumerate() {
                    expected[i + LIMBS] = add_product(&mut expected[i..i + LIMBS], b, a);
                }
                let mut product = [u64::MAX; 2 * LIMBS];
                product_48(a, b, &mut product);
                assert_eq!(product, expected);
            }
        }
    }

    #[test]
    fn inverses_multiply_to_one() {
        let mut number = small(3);
        for round in 0..4_u64 {
            number.limbs[47] ^= u64::MAX - round;
            number.limbs[11] = number.limbs[11].wrapping_mul(0x9e37_79b9_7f4a_7c15).wrapping_add(round);
            let mut product = number.inverse();
            product.multiply(&number);
            assert_eq!(product, Num3072::ONE);
        }
        assert_eq!(Num3072::ONE.inverse(), Num3072::ONE);
    }
}
