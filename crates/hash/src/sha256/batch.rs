//! SHA-256 and double SHA-256 of many messages: the txids of a whole block, the levels of a merkle tree, the elements
//! of a set hash.
//!
//! Input: messages in up to three parts (a txid omits the witness), or 64-byte pairs. Output: one digest per message,
//! in order. Cost: (length + 8) / 64 + 2 compressions per double hash, one fewer per single one; no heap. Must never:
//! return a result that depends on the kernel.

use super::{BatchKernel, Sha256, StreamKernel, kernels, lanes};

/// A message as the concatenation of up to three slices.
#[derive(Clone, Copy, Debug, Default)]
pub struct Message<'a> {
    parts: [&'a [u8]; 3],
}

/// Sets `out[i]` to the SHA-256 of `messages[i]`.
///
/// # Panics
/// If the two slices differ in length.
pub fn sha256_many(messages: &[Message<'_>], out: &mut [[u8; 32]]) {
    sha256_many_with(kernels().many, messages, out);
}

/// Like [`sha256_many`], with a kernel chosen by the caller, for tests and benchmarks.
///
/// # Panics
/// If the two slices differ in length.
pub fn sha256_many_with(kernel: BatchKernel, messages: &[Message<'_>], out: &mut [[u8; 32]]) {
    assert_eq!(messages.len(), out.len(), "one digest per message");
    match kernel {
        BatchKernel::Stream(stream) => {
            for (message, digest) in messages.iter().zip(out) {
                *digest = engine_of(stream, message).finalize();
            }
        }
        #[cfg(target_arch = "x86_64")]
        BatchKernel::ShaNi2(sha_ni) => lanes::sha256_many(sha_ni, StreamKernel::ShaNi(sha_ni), messages, out),
        #[cfg(target_arch = "x86_64")]
        BatchKernel::Avx2(avx2, tail) => lanes::sha256_many(avx2, tail, messages, out),
        #[cfg(target_arch = "x86_64")]
        BatchKernel::Avx512(avx512, tail) => lanes::sha256_many(avx512, tail, messages, out),
        #[cfg(target_arch = "aarch64")]
        BatchKernel::Neon(neon, tail) => lanes::sha256_many(neon, tail, messages, out),
        #[cfg(target_arch = "aarch64")]
        BatchKernel::ArmSha2Twice(sha2) => lanes::sha256_many(sha2, StreamKernel::ArmSha2(sha2), messages, out),
    }
}

/// Sets `out[i]` to the double SHA-256 of `messages[i]`.
///
/// # Panics
/// If the two slices differ in length.
pub fn sha256d_many(messages: &[Message<'_>], out: &mut [[u8; 32]]) {
    sha256d_many_with(kernels().many, messages, out);
}

/// Like [`sha256d_many`], with a kernel chosen by the caller, for tests and benchmarks.
///
/// # Panics
/// If the two slices differ in length.
pub fn sha256d_many_with(kernel: BatchKernel, messages: &[Message<'_>], out: &mut [[u8; 32]]) {
    assert_eq!(messages.len(), out.len(), "one digest per message");
    match kernel {
        BatchKernel::Stream(stream) => {
            for (message, digest) in messages.iter().zip(out) {
                *digest = engine_of(stream, message).finalize_double();
            }
        }
        #[cfg(target_arch = "x86_64")]
        BatchKernel::ShaNi2(sha_ni) => lanes::sha256d_many(sha_ni, StreamKernel::ShaNi(sha_ni), messages, out),
        #[cfg(target_arch = "x86_64")]
        BatchKernel::Avx2(avx2, tail) => lanes::sha256d_many(avx2, tail, messages, out),
        #[cfg(target_arch = "x86_64")]
        BatchKernel::Avx512(avx512, tail) => lanes::sha256d_many(avx512, tail, messages, out),
        #[cfg(target_arch = "aarch64")]
        BatchKernel::Neon(neon, tail) => lanes::sha256d_many(neon, tail, messages, out),
        #[cfg(target_arch = "aarch64")]
        BatchKernel::ArmSha2Twice(sha2) => lanes::sha256d_many(sha2, StreamKernel::ArmSha2(sha2), messages, out),
    }
}

/// An engine that has processed the whole message.
fn engine_of(kernel: StreamKernel, message: &Message<'_>) -> Sha256 {
    let mut engine = Sha256::with_kernel(kernel);
    for part in message.parts {
        engine.update(part);
    }
    engine
}

/// Sets `out[i]` to the double SHA-256 of `pairs[i]`: one level of a merkle tree (`SHA256D64`).
///
/// # Panics
/// If the two slices differ in length.
pub fn sha256d_64(pairs: &[[u8; 64]], out: &mut [[u8; 32]]) {
    sha256d_64_with(kernels().pairs, pairs, out);
}

/// Like [`sha256d_64`], with a kernel chosen by the caller, for tests and benchmarks.
///
/// # Panics
/// If the two slices differ in length.
pub fn sha256d_64_with(kernel: BatchKernel, pairs: &[[u8; 64]], out: &mut [[u8; 32]]) {
    assert_eq!(pairs.len(), out.len(), "one digest per pair");
    match kernel {
        BatchKernel::Stream(stream) => sha256d_64_stream(stream, pairs, out),
        #[cfg(target_arch = "x86_64")]
        BatchKernel::ShaNi2(sha_ni) => lanes::sha256d_64(sha_ni, StreamKernel::ShaNi(sha_ni), pairs, out),
        #[cfg(target_arch = "x86_64")]
        BatchKernel::Avx2(avx2, tail) => lanes::sha256d_64(avx2, tail, pairs, out),
        #[cfg(target_arch = "x86_64")]
        BatchKernel::Avx512(avx512, tail) => lanes::sha256d_64(avx512, tail, pairs, out),
        #[cfg(target_arch = "aarch64")]
        BatchKernel::Neon(neon, tail) => lanes::sha256d_64(neon, tail, pairs, out),
        #[cfg(target_arch = "aarch64")]
        BatchKernel::ArmSha2Twice(sha2) => lanes::sha256d_64(sha2, StreamKernel::ArmSha2(sha2), pairs, out),
    }
}

/// Hashes the pairs sequentially.
pub(crate) fn sha256d_64_stream(kernel: StreamKernel, pairs: &[[u8; 64]], out: &mut [[u8; 32]]) {
    for (pair, digest) in pairs.iter().zip(out) {
        *digest = Sha256::with_kernel(kernel).update(pair).finalize_double();
    }
}

impl<'a> Message<'a> {
    /// The concatenation of the parts, any of which may be empty.
    #[must_use]
    pub const fn new(parts: [&'a [u8]; 3]) -> Self {
        Self { parts }
    }

    /// The parts, as passed to [`new`](Message::new).
    #[must_use]
    pub const fn parts(&self) -> &[&'a [u8]; 3] {
        &self.parts
    }

    /// Length of the message in bytes.
    #[must_use]
    pub const fn len(&self) -> usize {
        self.parts[0].len() + self.parts[1].len() + self.parts[2].len()
    }

    /// Whether the message has no bytes.
    #[must_use]
    pub const fn is_empty(&self) -> bool {
        self.len() == 0
    }
}

impl<'a> From<&'a [u8]> for Message<'a> {
    fn from(bytes: &'a [u8]) -> Self {
        Self { parts: [bytes, &[], &[]] }
    }
}
