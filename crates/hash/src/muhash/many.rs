//! The hashes of many sets with one inversion: Montgomery's trick, three multiplications for each set.

use super::{MuHash3072, Num3072};
use crate::sha256::sha256;

impl MuHash3072 {
    /// The hash of each set, as [`MuHash3072::finalize`] returns it. Cost: one inversion, and four multiplications a
    /// set.
    #[must_use]
    pub fn finalize_many(sets: &[Self]) -> Vec<[u8; 32]> {
        // before[i] is the product of the denominators below i.
        let mut before = Vec::with_capacity(sets.len());
        let mut product = Num3072::ONE;
        for set in sets {
            before.push(product.clone());
            product.multiply(&set.denominator);
        }
        // No element is a multiple of the modulus but by a chance of 2^-3071, so the product has an inverse.
        let mut inverse = product.inverse();
        let mut hashes = vec![[0; 32]; sets.len()];
        for ((set, before), hash) in sets.iter().zip(&before).zip(&mut hashes).rev() {
            let mut quotient = inverse.clone();
            quotient.multiply(before);
            quotient.multiply(&set.numerator);
            *hash = sha256(&quotient.to_bytes());
            inverse.multiply(&set.denominator);
        }
        hashes
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_hash_is_that_of_its_set() {
        let mut sets = vec![MuHash3072::new()];
        for number in 0..40_u8 {
            let mut set = sets[sets.len() - 1].clone();
            set.insert(&[number, 1]);
            if number % 3 > 0 {
                set.remove(&[number, 2]);
            }
            sets.push(set);
        }
        for count in [0, 1, 2, sets.len()] {
            let each: Vec<[u8; 32]> = sets[..count].iter().map(MuHash3072::finalize).collect();
            assert_eq!(MuHash3072::finalize_many(&sets[..count]), each);
        }
    }
}
