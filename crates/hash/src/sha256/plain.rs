//! The SHA-256 compression function in portable Rust, against which every other kernel is tested.
//!
//! Input: a state of eight words, one 64-byte block. Output: the state after the block (FIPS 180-4, section 6.2.2).
//! `const`, so that tag midstates are computed at compile time. Cost: about 400 cycles per block. Must never: depend on
//! CPU features.

use super::{IV, K, State};

/// Compresses one block, given as message words that were already read as big-endian.
#[inline]
pub(crate) const fn compress_words(state: State, block: [u32; 16]) -> State {
    let mut w = block;
    let mut s = state;
    let mut first = 0;
    while first < 64 {
        // Sixteen unrolled rounds: the ring index becomes a constant and the words stay in registers.
        macro_rules! rounds {
            ($($i:literal)*) => {$(
                s = step(s, K[first + $i].wrapping_add(w[$i]));
                w[$i] = schedule(&w, 16 + $i);
            )*};
        }
        rounds!(0 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15);
        first += 16;
    }
    let mut i = 0;
    while i < 8 {
        s[i] = s[i].wrapping_add(state[i]);
        i += 1;
    }
    s
}

/// SHA-256 of a whole message, for constants.
pub(crate) const fn sha256(bytes: &[u8]) -> [u8; 32] {
    let mut state = IV;
    let mut block = [0; 64];
    let mut i = 0;
    while i < bytes.len() {
        block[i & 63] = bytes[i];
        if i & 63 == 63 {
            state = compress_words(state, words(&block));
            block = [0; 64];
        }
        i += 1;
    }
    block[i & 63] = 0x80;
    if i & 63 >= 56 {
        state = compress_words(state, words(&block));
        block = [0; 64];
    }
    let (_, size) = block.split_at_mut(56);
    size.copy_from_slice(&(bytes.len() as u64 * 8).to_be_bytes());
    state = compress_words(state, words(&block));
    let mut out = [0; 32];
    i = 0;
    while i < 32 {
        out[i] = state[i / 4].to_be_bytes()[i & 3];
        i += 1;
    }
    out
}

/// Compresses the blocks in order.
pub(crate) fn compress(state: &mut State, blocks: &[[u8; 64]]) {
    for block in blocks {
        *state = compress_words(*state, words(block));
    }
}

/// The big-endian words of a block.
pub(crate) const fn words(block: &[u8; 64]) -> [u32; 16] {
    let mut out = [0; 16];
    let mut i = 0;
    while i < 16 {
        out[i] = u32::from_be_bytes([block[4 * i], block[4 * i + 1], block[4 * i + 2], block[4 * i + 3]]);
        i += 1;
    }
    out
}

/// The whole message schedule of a block, each word with its round constant added.
pub(crate) const fn schedule_plus_k(mut w: [u32; 16]) -> [u32; 64] {
    let mut out = [0; 64];
    let mut round = 0;
    while round < 64 {
        if round >= 16 {
            w[round & 15] = schedule(&w, round);
        }
        out[round] = K[round].wrapping_add(w[round & 15]);
        round += 1;
    }
    out
}

/// Word `round` of the message schedule; `w` is the ring of the sixteen words before it.
#[inline]
const fn schedule(w: &[u32; 16], round: usize) -> u32 {
    let (x, y) = (w[(round + 1) & 15], w[(round + 14) & 15]);
    let sigma0 = x.rotate_right(7) ^ x.rotate_right(18) ^ (x >> 3);
    let sigma1 = y.rotate_right(17) ^ y.rotate_right(19) ^ (y >> 10);
    w[round & 15].wrapping_add(sigma0).wrapping_add(w[(round + 9) & 15]).wrapping_add(sigma1)
}

/// One round; `kw` is the round constant plus the schedule word.
#[inline]
const fn step([a, b, c, d, e, f, g, h]: State, kw: u32) -> State {
    let sum1 = e.rotate_right(6) ^ e.rotate_right(11) ^ e.rotate_right(25);
    let t1 = h.wrapping_add(sum1).wrapping_add(g ^ (e & (f ^ g))).wrapping_add(kw);
    let sum0 = a.rotate_right(2) ^ a.rotate_right(13) ^ a.rotate_right(22);
    let t2 = sum0.wrapping_add((a & b) | (c & (a | b)));
    [t1.wrapping_add(t2), a, b, c, d.wrapping_add(t1), e, f, g]
}
