//! MuHash3072: a set hash with insertions and removals in any order (Core's `MuHash3072`, crypto/muhash.h).
//!
//! Input: elements (byte strings) to insert or remove. Output: 32 bytes that depend only on the resulting multiset.
//! Each element is mapped to a number below 2^3072 (SHA-256, then the ChaCha20 key stream); an insertion multiplies the
//! numerator by it, a removal the denominator, modulo the prime 2^3072 - 1103717. Many elements at once (`insert_many`)
//! are hashed and multiplied side by side if the CPU has a kernel for it. Cost: one product of 3,072-bit numbers per
//! element (`docs/benchmarks/hash.md`), one inversion (about 3,090 products) per `finalize`; 768 bytes. Callers must
//! encode all elements of a set in the same way.

use std::hint::black_box;

use chacha20::ChaCha20;
use chacha20::cipher::{KeyIvInit, StreamCipher};

use crate::sha256::{MuHashKernel, kernels, sha256};

#[cfg(target_arch = "x86_64")]
mod avx2;
#[cfg(target_arch = "x86_64")]
mod chacha;
mod elements;
#[cfg(target_arch = "x86_64")]
mod ifma512;
#[cfg(target_arch = "x86_64")]
mod karatsuba;
#[cfg(target_arch = "x86_64")]
mod lanes;
mod many;
mod num3072;

pub use elements::Elements;
use num3072::Num3072;

/// The running product of a set, kept as a fraction so that only `finalize` computes an inverse.
#[derive(Clone, Debug)]
pub struct MuHash3072 {
    numerator: Num3072,
    denominator: Num3072,
}

impl Default for MuHash3072 {
    fn default() -> Self {
        Self::new()
    }
}

impl MuHash3072 {
    /// Size of the serialisation in bytes.
    pub const BYTES: usize = 2 * Num3072::BYTES;

    /// The empty set.
    #[must_use]
    pub const fn new() -> Self {
        Self { numerator: Num3072::ONE, denominator: Num3072::ONE }
    }

    /// Adds one element; an element added twice counts twice.
    pub fn insert(&mut self, element: &[u8]) -> &mut Self {
        self.numerator.multiply(&number_of(element));
        self
    }

    /// Removes one element, which may also be inserted later.
    pub fn remove(&mut self, element: &[u8]) -> &mut Self {
        self.denominator.multiply(&number_of(element));
        self
    }

    /// Adds every element of a batch: the same result as [`insert`](MuHash3072::insert) of each, in a fraction of the
    /// time.
    pub fn insert_many(&mut self, elements: &Elements) -> &mut Self {
        self.insert_many_with(kernels().muhash, elements)
    }

    /// Like [`insert_many`](MuHash3072::insert_many), with a kernel chosen by the caller, for tests and benchmarks.
    pub fn insert_many_with(&mut self, kernel: MuHashKernel, elements: &Elements) -> &mut Self {
        multiply_elements(kernel, &mut self.numerator, elements);
        self
    }

    /// Removes every element of a batch, each of which may also be inserted later.
    pub fn remove_many(&mut self, elements: &Elements) -> &mut Self {
        self.remove_many_with(kernels().muhash, elements)
    }

    /// Like [`remove_many`](MuHash3072::remove_many), with a kernel chosen by the caller, for tests and benchmarks.
    pub fn remove_many_with(&mut self, kernel: MuHashKernel, elements: &Elements) -> &mut Self {
        multiply_elements(kernel, &mut self.denominator, elements);
        self
    }

    /// Only maps every element to its number, the first part of [`insert_many`](MuHash3072::insert_many), for
    /// benchmarks.
    pub fn hash_many_with(kernel: MuHashKernel, elements: &Elements) {
        match kernel {
            MuHashKernel::Plain => elements.iter().for_each(|element| _ = black_box(number_of(element))),
            #[cfg(target_arch = "x86_64")]
            MuHashKernel::Avx2(avx2) => lanes::hash_elements(avx2, elements),
            #[cfg(target_arch = "x86_64")]
            MuHashKernel::Ifma512(ifma512) => lanes::hash_elements(ifma512, elements),
        }
    }

    /// Adds every element of another set, which may have been computed on another thread.
    pub fn combine(&mut self, other: &Self) -> &mut Self {
        self.numerator.multiply(&other.numerator);
        self.denominator.multiply(&other.denominator);
        self
    }

    /// Removes every element of `other`.
    pub fn divide(&mut self, other: &Self) -> &mut Self {
        self.numerator.multiply(&other.denominator);
        self.denominator.multiply(&other.numerator);
        self
    }

    /// Returns the hash of the set.
    #[must_use]
    pub fn finalize(&self) -> [u8; 32] {
        let mut quotient = self.denominator.inverse();
        quotient.multiply(&self.numerator);
        sha256(&quotient.to_bytes())
    }

    /// Numerator and denominator, little-endian, as Core writes them into its coin statistics.
    #[must_use]
    pub fn to_bytes(&self) -> [u8; Self::BYTES] {
        let mut out = [0; Self::BYTES];
        let (numerator, denominator) = out.split_at_mut(Num3072::BYTES);
        numerator.copy_from_slice(&self.numerator.to_bytes());
        denominator.copy_from_slice(&self.denominator.to_bytes());
        out
    }

    /// The inverse of `to_bytes`; accepts any bytes, including numbers above the modulus.
    #[must_use]
    pub fn from_bytes(bytes: &[u8; Self::BYTES]) -> Self {
        let halves = bytes.as_chunks::<{ Num3072::BYTES }>().0;
        Self { numerator: Num3072::from_bytes(&halves[0]), denominator: Num3072::from_bytes(&halves[1]) }
    }
}

/// Multiplies `product` by the number of every element.
fn multiply_elements(kernel: MuHashKernel, product: &mut Num3072, elements: &Elements) {
    match kernel {
        MuHashKernel::Plain => elements.iter().for_each(|element| product.multiply(&number_of(element))),
        #[cfg(target_arch = "x86_64")]
        MuHashKernel::Avx2(avx2) => lanes::multiply_elements(avx2, product, elements),
        #[cfg(target_arch = "x86_64")]
        MuHashKernel::Ifma512(ifma512) => lanes::multiply_elements(ifma512, product, elements),
    }
}

/// Maps an element to a number: the ChaCha20 key stream (nonce and counter zero) with its SHA-256 as the key.
fn number_of(element: &[u8]) -> Num3072 {
    number_of_digest(&sha256(element))
}

fn number_of_digest(digest: &[u8; 32]) -> Num3072 {
    let mut stream = [0; Num3072::BYTES];
    ChaCha20::new(digest.into(), &[0; 12].into()).apply_keystream(&mut stream);
    Num3072::from_bytes(&stream)
}

#[cfg(test)]
mod tests;
