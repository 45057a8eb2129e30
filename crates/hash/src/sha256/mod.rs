//! SHA-256 (FIPS 180-4) of one message at a time; `batch` hashes many messages at once.
//!
//! Input: byte slices. Output: 32-byte digests, or midstates. Invariant: `Sha256` holds at most 63 unprocessed bytes;
//! the rest of the message is in its eight words. Cost: one compression per 64 bytes plus one for the padding; 112
//! bytes of state, no heap. Must never: allocate, or query CPU features outside `detect`.

#[cfg(target_arch = "aarch64")]
mod armv8;
#[cfg(target_arch = "x86_64")]
pub(crate) mod avx2;
#[cfg(target_arch = "x86_64")]
pub(crate) mod avx512;
mod batch;
mod detect;
mod lanes;
#[cfg(target_arch = "aarch64")]
pub(crate) mod neon;
mod plain;
#[cfg(any(target_arch = "x86_64", target_arch = "aarch64"))]
mod rounds;
#[cfg(target_arch = "x86_64")]
mod shani;

pub(crate) use plain::sha256 as plain_const;

pub use batch::{Message, sha256_many, sha256_many_with, sha256d_64, sha256d_64_with, sha256d_many, sha256d_many_with};
#[cfg(target_arch = "aarch64")]
pub(crate) use detect::Neon;
#[cfg(target_arch = "x86_64")]
pub(crate) use detect::{Avx2, Avx512, Ifma512};
pub use detect::{BatchKernel, Kernels, MuHashKernel, Ripemd160Kernel, StreamKernel, kernels};

/// The eight chaining words.
pub(crate) type State = [u32; 8];

/// SHA-256 of one message.
#[must_use]
pub fn sha256(bytes: &[u8]) -> [u8; 32] {
    Sha256::new().update(bytes).finalize()
}

/// SHA-256 of the SHA-256 (`CHash256`): block hashes, txids.
#[must_use]
pub fn sha256d(bytes: &[u8]) -> [u8; 32] {
    Sha256::new().update(bytes).finalize_double()
}

/// An incremental SHA-256 engine; clone it to hash a common prefix only once.
#[derive(Clone, Debug)]
pub struct Sha256 {
    state: State,
    /// The first `length % 64` bytes are input not yet compressed; the rest is unspecified.
    buffer: [u8; 64],
    length: u64,
    kernel: Option<StreamKernel>,
}

/// The chaining words after a whole number of blocks; can be a constant.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Midstate {
    state: State,
    length: u64,
}

impl Midstate {
    /// The state after `blocks` from the start of a message; evaluated at compile time in a const context.
    #[must_use]
    pub const fn of_blocks(blocks: &[[u8; 64]]) -> Self {
        let mut state = IV;
        let mut count = 0;
        while count < blocks.len() {
            state = plain::compress_words(state, plain::words(&blocks[count]));
            count += 1;
        }
        Self { state, length: 64 * count as u64 }
    }

    /// Returns an engine that continues from this midstate.
    #[must_use]
    pub const fn engine(&self) -> Sha256 {
        Sha256 { state: self.state, buffer: [0; 64], length: self.length, kernel: None }
    }
}

impl Default for Sha256 {
    fn default() -> Self {
        Self::new()
    }
}

impl Sha256 {
    /// The engine at the start of a message.
    #[must_use]
    pub const fn new() -> Self {
        Midstate { state: IV, length: 0 }.engine()
    }

    /// Like [`new`](Sha256::new), with a kernel chosen by the caller, for tests and benchmarks.
    #[must_use]
    pub const fn with_kernel(kernel: StreamKernel) -> Self {
        Self { kernel: Some(kernel), ..Self::new() }
    }

    /// Appends bytes to the message.
    #[inline]
    pub fn update(&mut self, bytes: &[u8]) -> &mut Self {
        let filled = self.filled();
        self.length += bytes.len() as u64;
        let room = 64 - filled;
        if bytes.len() < room {
            self.buffer[filled..filled + bytes.len()].copy_from_slice(bytes);
            return self;
        }
        let mut rest = bytes;
        if filled > 0 {
            let (head, tail) = bytes.split_at(room);
            self.buffer[filled..].copy_from_slice(head);
            self.kernel().compress(&mut self.state, std::slice::from_ref(&self.buffer));
            rest = tail;
        }
        let (blocks, tail) = rest.as_chunks::<64>();
        if !blocks.is_empty() {
            self.kernel().compress(&mut self.state, blocks);
        }
        self.buffer[..tail.len()].copy_from_slice(tail);
        self
    }

    /// Returns the digest of the message so far; the engine itself is unchanged.
    #[must_use]
    pub fn finalize(&self) -> [u8; 32] {
        digest_bytes(&self.last_state())
    }

    /// Returns the SHA-256 of the digest; the engine itself is unchanged.
    #[must_use]
    pub fn finalize_double(&self) -> [u8; 32] {
        let block = digest_block(&self.last_state());
        let mut state = IV;
        self.kernel().compress(&mut state, std::slice::from_ref(&block));
        digest_bytes(&state)
    }

    /// The words after the padding.
    fn last_state(&self) -> State {
        let filled = self.filled();
        let mut last = [[0; 64]; 2];
        last[0][..filled].copy_from_slice(&self.buffer[..filled]);
        last[0][filled] = 0x80;
        let blocks = if filled < 56 { 1 } else { 2 };
        last[blocks - 1][56..].copy_from_slice(&(self.length << 3).to_be_bytes());
        let mut state = self.state;
        self.kernel().compress(&mut state, &last[..blocks]);
        state
    }

    const fn filled(&self) -> usize {
        (self.length & 63) as usize
    }

    fn kernel(&self) -> StreamKernel {
        match self.kernel {
            Some(kernel) => kernel,
            None => kernels().stream,
        }
    }
}

/// The words as bytes, big-endian.
pub(crate) fn digest_bytes(state: &State) -> [u8; 32] {
    let mut out = [0; 32];
    for (bytes, word) in out.as_chunks_mut::<4>().0.iter_mut().zip(state) {
        *bytes = word.to_be_bytes();
    }
    out
}

/// The single padded block of a 32-byte message, here a digest to be hashed again.
pub(crate) fn digest_block(state: &State) -> [u8; 64] {
    let mut block = [0; 64];
    block[..32].copy_from_slice(&digest_bytes(state));
    block[32] = 0x80;
    block[62] = 0x01; // 256 bits
    block
}

/// Initial words: the fractions of the square roots of the first eight primes.
pub(crate) const IV: State =
    [0x6a09_e667, 0xbb67_ae85, 0x3c6e_f372, 0xa54f_f53a, 0x510e_527f, 0x9b05_688c, 0x1f83_d9ab, 0x5be0_cd19];

/// Round constants: the fractions of the cube roots of the first 64 primes.
#[rustfmt::skip]
pub(crate) const K: [u32; 64] = [
    0x428a_2f98, 0x7137_4491, 0xb5c0_fbcf, 0xe9b5_dba5, 0x3956_c25b, 0x59f1_11f1, 0x923f_82a4, 0xab1c_5ed5,
    0xd807_aa98, 0x1283_5b01, 0x2431_85be, 0x550c_7dc3, 0x72be_5d74, 0x80de_b1fe, 0x9bdc_06a7, 0xc19b_f174,
    0xe49b_69c1, 0xefbe_4786, 0x0fc1_9dc6, 0x240c_a1cc, 0x2de9_2c6f, 0x4a74_84aa, 0x5cb0_a9dc, 0x76f9_88da,
    0x983e_5152, 0xa831_c66d, 0xb003_27c8, 0xbf59_7fc7, 0xc6e0_0bf3, 0xd5a7_9147, 0x06ca_6351, 0x1429_2967,
    0x27b7_0a85, 0x2e1b_2138, 0x4d2c_6dfc, 0x5338_0d13, 0x650a_7354, 0x766a_0abb, 0x81c2_c92e, 0x9272_2c85,
    0xa2bf_e8a1, 0xa81a_664b, 0xc24b_8b70, 0xc76c_51a3, 0xd192_e819, 0xd699_0624, 0xf40e_3585, 0x106a_a070,
    0x19a4_c116, 0x1e37_6c08, 0x2748_774c, 0x34b0_bcb5, 0x391c_0cb3, 0x4ed8_aa4a, 0x5b9c_ca4f, 0x682e_6ff3,
    0x748f_82ee, 0x78a5_636f, 0x84c8_7814, 0x8cc7_0208, 0x90be_fffa, 0xa450_6ceb, 0xbef9_a3f7, 0xc671_78f2,
];

/// `K` plus the message schedule of the block that pads a 64-byte message.
pub(crate) const PAIR_PADDING_KW: [u32; 64] = plain::schedule_plus_k(plain::words(&lanes::PAIR_PADDING));

#[cfg(test)]
mod tests;
