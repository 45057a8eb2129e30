//! Numbers modulo 2^3072 - 1103717, the largest 3072-bit safe prime.
//!
//! Input and output: 384 bytes, little-endian. Invariant: 48 limbs of 64 bits; `multiply` leaves the value below the
//! modulus, `from_bytes` may exceed it. Not constant time. Cost: 2,304 limb products and two short folds per
//! multiplication. Must never: hold anything secret.

/// 2^3072 minus the modulus.
const PRIME_DIFF: u64 = 1_103_717;
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

    /// `self = self * other`, reduced below the modulus.
    pub(super) fn multiply(&mut self, other: &Self) {
        let mut wide = [0_u64; 2 * LIMBS];
        for (i, &a) in self.limbs.iter().enumerate() {
            wide[i + LIMBS] = add_product(&mut wide[i..i + LIMBS], &other.limbs, a);
        }
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
