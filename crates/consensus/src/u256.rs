//! Unsigned 256-bit integers with the operations that targets and chain work need. Core's `arith_uint256` without
//! implicit wrapping: every operation that can overflow shows it in its name or its result.

use std::fmt;

/// Four limbs, least significant first.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Default)]
pub struct U256([u64; 4]);

impl U256 {
    pub const ZERO: U256 = U256([0; 4]);
    pub const ONE: U256 = U256([1, 0, 0, 0]);
    pub const MAX: U256 = U256([u64::MAX; 4]);

    pub fn from_u64(value: u64) -> U256 {
        U256([value, 0, 0, 0])
    }

    pub fn from_le_bytes(bytes: &[u8; 32]) -> U256 {
        let mut limbs = [0; 4];
        for (limb, chunk) in limbs.iter_mut().zip(bytes.as_chunks::<8>().0) {
            *limb = u64::from_le_bytes(*chunk);
        }
        U256(limbs)
    }

    pub fn to_le_bytes(self) -> [u8; 32] {
        let mut bytes = [0; 32];
        for (chunk, limb) in bytes.as_chunks_mut::<8>().0.iter_mut().zip(self.0) {
            *chunk = limb.to_le_bytes();
        }
        bytes
    }

    /// Position of the highest set bit, counted from 1; 0 for zero.
    pub fn bit_count(self) -> u32 {
        (0..4u32)
            .rev()
            .find(|&i| self.0[i as usize] != 0)
            .map_or(0, |i| 64 * i + 64 - self.0[i as usize].leading_zeros())
    }

    pub fn low_u64(self) -> u64 {
        self.0[0]
    }

    pub fn checked_add(self, other: U256) -> Option<U256> {
        let mut out = [0; 4];
        let mut carry = false;
        for ((out, a), b) in out.iter_mut().zip(self.0).zip(other.0) {
            (*out, carry) = a.carrying_add_pair(b, carry);
        }
        (!carry).then_some(U256(out))
    }

    pub fn checked_sub(self, other: U256) -> Option<U256> {
        (self >= other).then(|| self.wrapping_sub(other))
    }

    fn wrapping_sub(self, other: U256) -> U256 {
        let mut out = [0; 4];
        let mut borrow = false;
        for ((out, a), b) in out.iter_mut().zip(self.0).zip(other.0) {
            let (difference, under) = a.overflowing_sub(b);
            let (difference, under_again) = difference.overflowing_sub(u64::from(borrow));
            *out = difference;
            borrow = under || under_again;
        }
        U256(out)
    }

    /// The low 256 bits of the product, like Core's `operator*=`.
    pub fn wrapping_mul_u32(self, factor: u32) -> U256 {
        let mut out = [0; 4];
        let mut carry = 0u128;
        for (out, limb) in out.iter_mut().zip(self.0) {
            let wide = u128::from(limb) * u128::from(factor) + carry;
            *out = low_half(wide);
            carry = wide >> 64;
        }
        U256(out)
    }

    /// The quotient by long division. Returns `None` if `divisor` is zero.
    pub fn checked_div(self, divisor: U256) -> Option<U256> {
        if divisor == U256::ZERO {
            return None;
        }
        let mut quotient = U256::ZERO;
        let mut rest = U256::ZERO;
        for bit in (0..self.bit_count()).rev() {
            // The bit shifted out has the value 2^256, so the divisor fits in any case.
            let over = rest.0[3] >> 63 == 1;
            rest = rest.shifted_left(1);
            rest.0[0] |= self.0[(bit / 64) as usize] >> (bit % 64) & 1;
            if over || rest >= divisor {
                rest = rest.wrapping_sub(divisor);
                quotient.0[(bit / 64) as usize] |= 1 << (bit % 64);
            }
        }
        Some(quotient)
    }

    /// Discards the bits shifted out beyond the 256th.
    pub fn shifted_left(self, bits: u32) -> U256 {
        let mut out = [0; 4];
        for i in 0..4u32 {
            let from = i.checked_sub(bits / 64);
            let limb = from.map_or(0, |j| self.0[j as usize]);
            let below = from.and_then(|j| j.checked_sub(1)).map_or(0, |j| self.0[j as usize]);
            out[i as usize] =
                if bits.is_multiple_of(64) { limb } else { limb << (bits % 64) | below >> (64 - bits % 64) };
        }
        U256(out)
    }

    pub fn shifted_right(self, bits: u32) -> U256 {
        let limb = |i: u32| self.0.get(i as usize).copied().unwrap_or(0);
        let mut out = [0; 4];
        for i in 0..4u32 {
            let from = i + bits / 64;
            out[i as usize] = if bits.is_multiple_of(64) {
                limb(from)
            } else {
                limb(from) >> (bits % 64) | limb(from + 1) << (64 - bits % 64)
            };
        }
        U256(out)
    }

    pub fn complement(self) -> U256 {
        U256(self.0.map(|limb| !limb))
    }
}

#[allow(clippy::cast_possible_truncation, reason = "the low half is what is asked for")]
fn low_half(wide: u128) -> u64 {
    wide as u64
}

trait CarryingAdd: Sized {
    fn carrying_add_pair(self, other: Self, carry: bool) -> (Self, bool);
}

impl CarryingAdd for u64 {
    fn carrying_add_pair(self, other: u64, carry: bool) -> (u64, bool) {
        let (sum, over) = self.overflowing_add(other);
        let (sum, over_again) = sum.overflowing_add(u64::from(carry));
        (sum, over || over_again)
    }
}

impl PartialOrd for U256 {
    fn partial_cmp(&self, other: &U256) -> Option<std::cmp::Ordering> {
        Some(self.cmp(other))
    }
}

impl Ord for U256 {
    fn cmp(&self, other: &U256) -> std::cmp::Ordering {
        self.0.iter().rev().cmp(other.0.iter().rev())
    }
}

impl fmt::Display for U256 {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.iter().rev().try_for_each(|limb| write!(f, "{limb:016x}"))
    }
}

impl fmt::Debug for U256 {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{self}")
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn small(value: u128) -> U256 {
        let mut bytes = [0; 32];
        bytes[..16].copy_from_slice(&value.to_le_bytes());
        U256::from_le_bytes(&bytes)
    }

    proptest! {
        /// Below 2^128 all results equal those of `u128`.
        #[test]
        fn equals_u128_where_both_apply(a: u128, b: u128, factor: u32, shift in 0u32..128) {
            prop_assert_eq!(small(a).cmp(&small(b)), a.cmp(&b));
            prop_assert_eq!(small(a).checked_div(small(b)), a.checked_div(b).map(small));
            prop_assert_eq!(small(a).checked_sub(small(b)), a.checked_sub(b).map(small));
            prop_assert_eq!(small(a).shifted_right(shift), small(a >> shift));
            prop_assert_eq!(small(a >> 64).wrapping_mul_u32(factor), small((a >> 64) * u128::from(factor)));
            prop_assert_eq!(small(a).bit_count(), 128 - a.leading_zeros());
            if let Some(sum) = a.checked_add(b) {
                prop_assert_eq!(small(a).checked_add(small(b)), Some(small(sum)));
            }
        }

        /// Division reverses multiplication, and shifts equal multiplications, in the upper half too.
        #[test]
        fn laws_in_the_upper_half(bytes: [u8; 32], factor in 1u32.., shift in 0u32..256) {
            let value = U256::from_le_bytes(&bytes).shifted_right(32);
            prop_assert_eq!(value.wrapping_mul_u32(factor).checked_div(U256::from_u64(u64::from(factor))), Some(value));
            prop_assert_eq!(U256::ONE.shifted_left(shift).bit_count(), shift + 1);
            let value = U256::from_le_bytes(&bytes);
            prop_assert_eq!(value.shifted_left(shift).shifted_right(shift), value.shifted_left(shift).checked_div(U256::ONE.shifted_left(shift)).unwrap());
            prop_assert_eq!(U256::from_le_bytes(&value.to_le_bytes()), value);
            prop_assert_eq!(value.checked_add(value.complement()), Some(U256::MAX));
        }
    }

    #[test]
    fn edges() {
        assert_eq!(U256::MAX.checked_add(U256::ONE), None);
        assert_eq!(U256::ZERO.checked_sub(U256::ONE), None);
        assert_eq!(U256::ONE.checked_div(U256::ZERO), None);
        assert_eq!(U256::MAX.checked_div(U256::MAX), Some(U256::ONE));
        assert_eq!(U256::ONE.shifted_left(256), U256::ZERO);
    }
}
