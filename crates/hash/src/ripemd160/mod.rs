//! HASH160 of many messages at once: the keys and scripts whose hashes the outputs of many blocks commit to.
//!
//! Input: messages. Output: RIPEMD-160 of the SHA-256 of each, in order. How it works: the batch kernel of SHA-256
//! hashes a chunk of messages; then a RIPEMD-160 kernel hashes N digests in lockstep, each of which is one block with
//! its padding. Cost: one compression of RIPEMD-160 besides those of SHA-256 (`docs/benchmarks/hash.md`); no heap, 4
//! KiB of stack. Must never: return a result that depends on the kernel.

#[cfg(target_arch = "x86_64")]
mod avx2;
#[cfg(target_arch = "x86_64")]
mod avx512;
#[cfg(target_arch = "aarch64")]
mod neon;
#[cfg(any(target_arch = "x86_64", target_arch = "aarch64"))]
mod rounds;

use crate::legacy::ripemd160;
use crate::sha256::{Message, Ripemd160Kernel, kernels, sha256_many};

/// Number of messages hashed by one call of SHA-256.
const CHUNK: usize = 64;

/// Sets `out[i]` to the HASH160 of `messages[i]`.
///
/// # Panics
/// If the two slices differ in length.
pub fn hash160_many(messages: &[Message<'_>], out: &mut [[u8; 20]]) {
    hash160_many_with(kernels().ripemd160, messages, out);
}

/// Like [`hash160_many`], with a RIPEMD-160 kernel chosen by the caller, for tests and benchmarks.
///
/// # Panics
/// If the two slices differ in length.
pub fn hash160_many_with(kernel: Ripemd160Kernel, messages: &[Message<'_>], out: &mut [[u8; 20]]) {
    assert_eq!(messages.len(), out.len(), "one digest per message");
    let mut digests = [[0; 32]; CHUNK];
    for (messages, out) in messages.chunks(CHUNK).zip(out.chunks_mut(CHUNK)) {
        let digests = &mut digests[..messages.len()];
        sha256_many(messages, digests);
        ripemd160_many_with(kernel, digests, out);
    }
}

/// Sets `out[i]` to the RIPEMD-160 of `digests[i]`, with a kernel chosen by the caller.
///
/// # Panics
/// If the two slices differ in length.
pub fn ripemd160_many_with(kernel: Ripemd160Kernel, digests: &[[u8; 32]], out: &mut [[u8; 20]]) {
    assert_eq!(digests.len(), out.len(), "one hash per digest");
    match kernel {
        Ripemd160Kernel::Plain => each(digests, out),
        #[cfg(target_arch = "x86_64")]
        Ripemd160Kernel::Avx2(avx2) => in_lanes(avx2, digests, out),
        #[cfg(target_arch = "x86_64")]
        Ripemd160Kernel::Avx512(avx512) => in_lanes(avx512, digests, out),
        #[cfg(target_arch = "aarch64")]
        Ripemd160Kernel::Neon(neon) => in_lanes(neon, digests, out),
    }
}

/// A kernel that hashes N digests in lockstep.
#[cfg(any(target_arch = "x86_64", target_arch = "aarch64"))]
trait Lanes<const N: usize>: Copy {
    /// RIPEMD-160 of each digest.
    fn hash(self, digests: &[[u8; 32]; N], out: &mut [[u8; 20]; N]);
}

/// Hashes the digests in groups of N. A single one that is left is hashed alone: the lanes take about as long as one
/// digest of the plain code.
#[cfg(any(target_arch = "x86_64", target_arch = "aarch64"))]
fn in_lanes<const N: usize>(kernel: impl Lanes<N>, digests: &[[u8; 32]], out: &mut [[u8; 20]]) {
    let (full, few) = digests.as_chunks::<N>();
    let (full_out, few_out) = out.as_chunks_mut::<N>();
    for (digests, out) in full.iter().zip(full_out) {
        kernel.hash(digests, out);
    }
    if few.len() <= 1 {
        return each(few, few_out);
    }
    let (mut digests, mut out) = ([[0; 32]; N], [[0; 20]; N]);
    digests[..few.len()].copy_from_slice(few);
    kernel.hash(&digests, &mut out);
    few_out.copy_from_slice(&out[..few.len()]);
}

/// Hashes the digests one at a time.
fn each(digests: &[[u8; 32]], out: &mut [[u8; 20]]) {
    for (digest, out) in digests.iter().zip(out) {
        *out = ripemd160(digest);
    }
}

/// Writes the words of lane i as `out[i]`; row w holds word w of every lane.
#[cfg(any(target_arch = "x86_64", target_arch = "aarch64"))]
fn store_words<const N: usize>(rows: &[[u32; N]; 5], out: &mut [[u8; 20]; N]) {
    for (lane, hash) in out.iter_mut().enumerate() {
        for (bytes, row) in hash.as_chunks_mut::<4>().0.iter_mut().zip(rows) {
            *bytes = row[lane].to_le_bytes();
        }
    }
}
