//! Many messages at once: the interface of a kernel with N lanes, and the scheduler that keeps the lanes full.
//!
//! Input: messages of any lengths. Output: their digests, in order. How it works: each lane processes one message; when
//! the message is finished, its digest is extracted and the next message starts in that lane, so unequal lengths cost
//! nothing until the messages run out. The stream kernel then finishes the messages that remain in a few lanes. The
//! second hash is a separate pass over the digests, each of which is one block. Invariant: a lane is either idle or
//! owns exactly one message. Cost: no heap, N blocks of scratch. Must never: depend on the order in which lanes finish.

use super::batch::Message;
use super::{IV, State, StreamKernel, digest_bytes};

/// The block after a 64-byte message: the padding, then the length of 512 bits.
pub(crate) const PAIR_PADDING: [u8; 64] = padding(0, 512);
/// The block of a 32-byte message with its padding and length; the caller overwrites the first half with the message.
pub(crate) const DIGEST_PADDING: [u8; 64] = padding(32, 256);

const fn padding(start: usize, bits: u16) -> [u8; 64] {
    let mut block = [0; 64];
    block[start] = 0x80;
    [block[62], block[63]] = bits.to_be_bytes();
    block
}

/// A kernel that works on N messages in lockstep.
pub(crate) trait Lanes<const N: usize>: Copy {
    /// The chaining words of all lanes in the kernel's own layout.
    type States;

    /// Up to this number of messages, the stream kernel is faster.
    const FEW: usize;

    /// The states with every lane at the start of a message.
    fn fresh() -> Self::States;

    /// The words of one lane.
    fn state(states: &Self::States, lane: usize) -> State;

    /// Sets the words of one lane.
    fn set_state(states: &mut Self::States, lane: usize, state: &State);

    /// Compresses one more block in every lane.
    fn absorb(self, states: &mut Self::States, blocks: [&[u8; 64]; N]);

    /// Double SHA-256 of N 64-byte messages.
    fn pairs(self, pairs: &[[u8; 64]; N], out: &mut [[u8; 32]; N]);

    /// SHA-256 of each digest, in place.
    fn again(self, digests: &mut [[u8; 32]; N]);
}

/// A kernel whose SHA instructions work on two interleaved streams.
pub(crate) trait TwoStreams: Copy {
    /// Compresses one more block of each stream.
    fn compress_two(self, states: &mut [State; 2], blocks: [&[u8; 64]; 2]);
}

impl<T: TwoStreams> Lanes<2> for T {
    type States = [State; 2];
    /// A single message is faster in the single-stream loop.
    const FEW: usize = 1;

    fn fresh() -> Self::States {
        [IV; 2]
    }

    fn state(states: &Self::States, lane: usize) -> State {
        states[lane]
    }

    fn set_state(states: &mut Self::States, lane: usize, state: &State) {
        states[lane] = *state;
    }

    #[inline]
    fn absorb(self, states: &mut Self::States, blocks: [&[u8; 64]; 2]) {
        self.compress_two(states, blocks);
    }

    #[inline]
    fn pairs(self, pairs: &[[u8; 64]; 2], out: &mut [[u8; 32]; 2]) {
        let mut states = [IV; 2];
        self.compress_two(&mut states, pairs.each_ref());
        self.compress_two(&mut states, [&PAIR_PADDING; 2]);
        *out = states.map(|state| digest_bytes(&state));
        self.again(out);
    }

    #[inline]
    fn again(self, digests: &mut [[u8; 32]; 2]) {
        let mut blocks = [DIGEST_PADDING; 2];
        for (block, digest) in blocks.iter_mut().zip(digests.iter()) {
            block[..32].copy_from_slice(digest);
        }
        let mut states = [IV; 2];
        self.compress_two(&mut states, blocks.each_ref());
        *digests = states.map(|state| digest_bytes(&state));
    }
}

/// Double SHA-256 of 64-byte messages.
pub(crate) fn sha256d_64<const N: usize, L: Lanes<N>>(
    kernel: L,
    tail: StreamKernel,
    pairs: &[[u8; 64]],
    out: &mut [[u8; 32]],
) {
    let (full_pairs, few_pairs) = pairs.as_chunks::<N>();
    let (full_out, few_out) = out.as_chunks_mut::<N>();
    for (pairs, out) in full_pairs.iter().zip(full_out) {
        kernel.pairs(pairs, out);
    }
    if few_pairs.len() > L::FEW {
        let mut pairs = [[0; 64]; N];
        let mut out = [[0; 32]; N];
        pairs[..few_pairs.len()].copy_from_slice(few_pairs);
        kernel.pairs(&pairs, &mut out);
        few_out.copy_from_slice(&out[..few_out.len()]);
    } else {
        super::batch::sha256d_64_stream(tail, few_pairs, few_out);
    }
}

/// Double SHA-256 of messages of any lengths; `out` is as long as `messages`.
pub(crate) fn sha256d_many<const N: usize, L: Lanes<N>>(
    kernel: L,
    tail: StreamKernel,
    messages: &[Message<'_>],
    out: &mut [[u8; 32]],
) {
    sha256_many(kernel, tail, messages, out);
    let (full, few) = out.as_chunks_mut::<N>();
    for digests in full {
        kernel.again(digests);
    }
    if few.len() > L::FEW {
        let mut digests = [[0; 32]; N];
        digests[..few.len()].copy_from_slice(few);
        kernel.again(&mut digests);
        few.copy_from_slice(&digests[..few.len()]);
    } else {
        for digest in few {
            *digest = super::Sha256::with_kernel(tail).update(digest).finalize();
        }
    }
}

/// SHA-256 of messages of any lengths; `out` is as long as `messages`.
pub(crate) fn sha256_many<const N: usize, L: Lanes<N>>(
    kernel: L,
    tail: StreamKernel,
    messages: &[Message<'_>],
    out: &mut [[u8; 32]],
) {
    let mut queue = messages.iter().enumerate();
    let mut states = L::fresh();
    let mut scratch = [[0; 64]; N];
    let mut lanes: [Lane<'_>; N] = std::array::from_fn(|_| Lane::next_of(&mut queue));
    let mut idle = lanes.iter().filter(|lane| lane.blocks_left == 0).count();
    while N - idle > L::FEW {
        let mut scratch_of = scratch.iter_mut();
        let blocks = lanes.each_mut().map(|lane| match scratch_of.next() {
            Some(scratch) => lane.next_block(scratch),
            None => &PAIR_PADDING,
        });
        kernel.absorb(&mut states, blocks);
        for (i, lane) in lanes.iter_mut().enumerate() {
            if lane.blocks_left == 1 {
                out[lane.index] = digest_bytes(&L::state(&states, i));
                L::set_state(&mut states, i, &IV);
                *lane = Lane::next_of(&mut queue);
                idle += usize::from(lane.blocks_left == 0);
            } else {
                lane.blocks_left = lane.blocks_left.saturating_sub(1);
            }
        }
    }
    for (i, lane) in lanes.iter_mut().enumerate().filter(|(_, lane)| lane.blocks_left > 0) {
        out[lane.index] = digest_bytes(&lane.finish(tail, L::state(&states, i)));
    }
}

/// The message that a lane is processing.
struct Lane<'a> {
    /// The rest of the current part.
    rest: &'a [u8],
    /// The parts after the current one.
    later: [&'a [u8]; 2],
    /// Remaining blocks, including the padding; zero if the lane is idle.
    blocks_left: u64,
    /// Length of the whole message in bytes.
    length: u64,
    /// Index of the message.
    index: usize,
    /// Whether the 0x80 byte that ends the message has been written.
    ended: bool,
}

impl<'a> Lane<'a> {
    fn next_of<'m>(queue: &mut impl Iterator<Item = (usize, &'m Message<'a>)>) -> Self
    where
        'a: 'm,
    {
        match queue.next() {
            Some((index, message)) => {
                let [rest, second, third] = *message.parts();
                let length = message.len() as u64;
                Self { rest, later: [second, third], blocks_left: (length + 8) / 64 + 1, length, index, ended: false }
            }
            None => Self { rest: &[], later: [&[]; 2], blocks_left: 0, length: 0, index: 0, ended: true },
        }
    }

    /// Returns the next block; it is copied to `scratch` only if it is not contained in one part.
    #[inline]
    fn next_block<'s>(&mut self, scratch: &'s mut [u8; 64]) -> &'s [u8; 64]
    where
        'a: 's,
    {
        if let Some((block, rest)) = self.rest.split_first_chunk::<64>() {
            self.rest = rest;
            return block;
        }
        self.fill(scratch);
        scratch
    }

    /// Assembles a block from the ends of parts, with the padding after the last part.
    fn fill(&mut self, block: &mut [u8; 64]) {
        *block = [0; 64];
        let mut filled = 0;
        loop {
            let count = self.rest.len().min(64 - filled);
            let (taken, rest) = self.rest.split_at(count);
            block[filled..filled + count].copy_from_slice(taken);
            filled += count;
            self.rest = rest;
            if filled == 64 {
                return;
            }
            let [second, third] = self.later;
            if second.is_empty() && third.is_empty() {
                break;
            }
            (self.rest, self.later) = (second, [third, &[]]);
        }
        if !self.ended {
            block[filled] = 0x80;
            self.ended = true;
        }
        if self.blocks_left == 1 {
            block[56..].copy_from_slice(&(self.length << 3).to_be_bytes());
        }
    }

    /// Processes the rest of the message with `kernel` and returns the final state.
    fn finish(&mut self, kernel: StreamKernel, mut state: State) -> State {
        let mut scratch = [0; 64];
        while self.blocks_left > 0 {
            let (blocks, rest) = self.rest.as_chunks::<64>();
            if blocks.is_empty() {
                self.fill(&mut scratch);
                kernel.compress(&mut state, std::slice::from_ref(&scratch));
                self.blocks_left -= 1;
            } else {
                kernel.compress(&mut state, blocks);
                self.rest = rest;
                self.blocks_left -= blocks.len() as u64;
            }
        }
        state
    }
}
