//! Many elements at once: the interface of a kernel with N lanes, and the loop that feeds it.
//!
//! Input: elements. Output: the product of their numbers. How it works: SHA-256 of a chunk of elements; then, for each
//! group of N digests, their key streams word by word and one multiplication of N running products; at the end the
//! product of the lanes. Elements that do not fill the lanes are multiplied one at a time, or, if there are many, with
//! the other lanes multiplied by one. Cost: no heap, 25 KiB of stack. Must never: return a result that depends on the
//! number of lanes.

use std::hint::black_box;

use super::num3072::Num3072;
use super::{Elements, number_of_digest};
use crate::sha256::{Message, sha256_many};

/// Number of 32-bit words of a number.
pub(super) const WORDS: usize = Num3072::BYTES / 4;

/// Number of elements hashed by one call.
const CHUNK: usize = 128;

/// N numbers: row w holds word w of every number, the lowest first.
#[derive(Clone, Debug)]
#[repr(align(64))]
pub(super) struct Columns<const N: usize>(pub(super) [[u32; N]; WORDS]);

/// A kernel that multiplies N numbers in lockstep.
pub(super) trait Lanes<const N: usize>: Copy {
    /// One running product per lane, in the kernel's own layout.
    type Products;

    /// Up to this number of elements, one at a time is faster.
    const FEW: usize;

    /// Products of no numbers.
    fn ones(self) -> Self::Products;

    /// The first 384 bytes of the ChaCha20 key stream of each key.
    fn key_streams(self, keys: &[[u8; 32]; N], out: &mut Columns<N>);

    /// Multiplies each product by the factor of its lane, any number below 2^3072.
    fn multiply(self, products: &mut Self::Products, factors: &Columns<N>);

    /// The products, below the modulus.
    fn numbers(self, products: &Self::Products) -> [Num3072; N];
}

/// Multiplies `product` by the number of every element.
pub(super) fn multiply_elements<const N: usize, L: Lanes<N>>(kernel: L, product: &mut Num3072, elements: &Elements) {
    let mut lanes = kernel.ones();
    // The lanes are multiplied only if one group is full, as this takes as long as N elements one at a time.
    let few = if elements.len() < N { N } else { L::FEW };
    each_group(
        kernel,
        elements,
        few,
        |factors| kernel.multiply(&mut lanes, factors),
        |digest| product.multiply(&number_of_digest(digest)),
    );
    if elements.len() >= N {
        kernel.numbers(&lanes).iter().for_each(|lane| product.multiply(lane));
    }
}

/// Computes the number of every element and does nothing with it.
pub(super) fn hash_elements<const N: usize, L: Lanes<N>>(kernel: L, elements: &Elements) {
    each_group(kernel, elements, 0, |factors| _ = black_box(factors), |_| ());
}

/// Calls `group` with the numbers of every N elements, `single` with the digests of the last ones if they are at most
/// `few`.
fn each_group<const N: usize>(
    kernel: impl Lanes<N>,
    elements: &Elements,
    few: usize,
    mut group: impl FnMut(&Columns<N>),
    mut single: impl FnMut(&[u8; 32]),
) {
    const { assert!(CHUNK.is_multiple_of(N), "only the last group of the last chunk may be incomplete") }
    let mut digests = [[0; 32]; CHUNK];
    let mut columns = Columns([[0; N]; WORDS]);
    for first in (0..elements.len()).step_by(CHUNK) {
        let digests = &mut digests[..CHUNK.min(elements.len() - first)];
        hash_chunk(elements, first, digests);
        let (full, rest) = digests.as_chunks::<N>();
        for keys in full {
            kernel.key_streams(keys, &mut columns);
            group(&columns);
        }
        if rest.len() > few {
            let mut keys = [[0; 32]; N];
            keys[..rest.len()].copy_from_slice(rest);
            kernel.key_streams(&keys, &mut columns);
            set_one(&mut columns, rest.len());
            group(&columns);
        } else {
            rest.iter().for_each(&mut single);
        }
    }
}

/// Sets `digests` to the SHA-256 of the elements from `first` on, at most a chunk.
fn hash_chunk(elements: &Elements, first: usize, digests: &mut [[u8; 32]]) {
    let mut messages = [Message::default(); CHUNK];
    let messages = &mut messages[..digests.len()];
    for (i, message) in messages.iter_mut().enumerate() {
        *message = Message::from(elements.get(first + i));
    }
    sha256_many(messages, digests);
}

/// Sets the numbers of the lanes from `first` on to one.
fn set_one<const N: usize>(columns: &mut Columns<N>, first: usize) {
    for (word, row) in columns.0.iter_mut().enumerate() {
        row[first..].fill(u32::from(word == 0));
    }
}
