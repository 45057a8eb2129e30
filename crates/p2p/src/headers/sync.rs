//! [`HeadersSync`]: downloads one peer's chain of headers twice, so that a low-work chain costs no memory.
//!
//! Core's `HeadersSyncState` (headerssync.cpp). Input: continuous headers with valid proof of work. Output: headers
//! that may be stored, and what to request next.
//!
//! In the first phase (presync), the work is counted and one salted bit of every few hundred headers is stored, at a
//! secret offset. Once there is enough work, the headers are requested again (redownload): they wait in a buffer until
//! enough bits above them match and are then released. Invariants: no header is released before the chain has shown the
//! required work; at most `max_commitments` bits and the buffer are held, and nothing after the end. Cost: 48 bytes per
//! header in the buffer, about 0.8 MB per peer. No clock: the time is an argument.

use super::params::HeadersSyncParams;
use lydian_chain::{HeaderId, HeaderTree};
use lydian_consensus::limits::MAX_FUTURE_BLOCK_TIME;
use lydian_consensus::pow::{block_proof, permitted_difficulty_transition};
use lydian_consensus::{HeaderView, Params, U256};
use lydian_hash::sha256;
use lydian_primitives::{BlockHash, HashedHeader, Header, Height};
use rand_chacha::ChaCha20Rng;
use rand_chacha::rand_core::Rng;
use std::collections::VecDeque;

/// The maximum long-term block rate: the median of eleven timestamps must grow by a second.
const BLOCKS_PER_SECOND_MAX: u64 = 6;

/// The phase of a download.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum HeadersSyncPhase {
    /// The peer has not shown enough work yet.
    Presync,
    /// The peer has shown enough work and sends the same headers again.
    Redownload,
    /// Finished or aborted; nothing is held any more.
    Final,
}

/// Why a download of headers ended. None of these is a reason to punish the peer, because it may have switched to
/// another chain.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum HeadersSyncEnd {
    /// All headers were released.
    Complete,
    /// The message was not full: the chain ended without the required work, or the peer does not send all of it again.
    Incomplete,
    NotContinuous,
    DifficultyTransition,
    TooLong,
    CommitmentOverrun,
    CommitmentMismatch,
}

/// The result of a message.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Processed {
    /// Headers to insert into the tree: their chain has enough work.
    pub headers: Vec<HashedHeader>,
    /// The headers were the expected ones.
    pub success: bool,
    /// Request more from the peer, with [`HeadersSync::next_locator`].
    pub request_more: bool,
}

/// The download from one peer.
#[derive(Clone, Debug)]
pub struct HeadersSync {
    params: Params,
    sync: HeadersSyncParams,
    minimum_work: U256,
    start: Start,
    commit_offset: u32,
    salt: [u8; 32],
    max_commitments: u64,
    phase: HeadersSyncPhase,
    end: Option<HeadersSyncEnd>,
    proof: Proof,
    commitments: Bits,
    /// Presync: the last header's hash, bits and time, its height, and the work up to it.
    last: (BlockHash, u32, u32),
    height: Height,
    work: U256,
    /// Redownload: the buffered headers, without the hashes of their parents.
    buffer: VecDeque<Compressed>,
    buffer_first_prev: BlockHash,
    buffer_last: BlockHash,
    buffer_height: Height,
    buffer_work: U256,
    is_target_reached: bool,
}

/// Our header that the chain builds on.
#[derive(Clone, Debug)]
struct Start {
    hash: BlockHash,
    bits: u32,
    height: Height,
    work: U256,
    locator: Vec<BlockHash>,
}

/// Core's `CompressedHeader`.
#[derive(Clone, Debug)]
struct Compressed {
    version: i32,
    merkle_root: [u8; 32],
    time: u32,
    bits: u32,
    nonce: u32,
}
const _: () = assert!(size_of::<Compressed>() == 48);

impl HeadersSync {
    /// Creates a download of a chain that builds on `start`. `unix_now` is the current time in seconds since 1970.
    pub fn new(
        params: &Params,
        sync: HeadersSyncParams,
        tree: &HeaderTree,
        start: HeaderId,
        minimum_work: U256,
        unix_now: i64,
        random: &mut ChaCha20Rng,
    ) -> HeadersSync {
        let node = tree.node(start);
        let median = tree.branch(start).median_time_past(node.height).unwrap_or_default();
        let seconds = unix_now.saturating_sub(median).saturating_add(MAX_FUTURE_BLOCK_TIME);
        let seconds = u64::try_from(seconds).unwrap_or(0);
        let period = sync.commitment_period.max(1);
        let mut salt = [0; 32];
        random.fill_bytes(&mut salt);
        HeadersSync {
            params: params.clone(),
            sync,
            minimum_work,
            commit_offset: random.next_u32() % period,
            salt,
            max_commitments: BLOCKS_PER_SECOND_MAX * seconds / u64::from(period),
            phase: HeadersSyncPhase::Presync,
            end: None,
            proof: Proof::default(),
            commitments: Bits::default(),
            last: (node.hash, node.header.bits, node.header.time),
            height: node.height,
            work: node.chain_work,
            buffer: VecDeque::new(),
            buffer_first_prev: node.hash,
            buffer_last: node.hash,
            buffer_height: node.height,
            buffer_work: node.chain_work,
            is_target_reached: false,
            start: Start {
                hash: node.hash,
                bits: node.header.bits,
                height: node.height,
                work: node.chain_work,
                locator: super::locator(tree, start),
            },
        }
    }

    pub fn phase(&self) -> HeadersSyncPhase {
        self.phase
    }

    /// Returns how the download ended.
    pub fn end(&self) -> Option<HeadersSyncEnd> {
        self.end
    }

    /// Returns height and time of the last header of presync, and the work up to it, for `getpeerinfo` and the log.
    pub fn presync(&self) -> (Height, u32, U256) {
        (self.height, self.last.2, self.work)
    }

    /// Returns the heights of the last header of presync and of the last one in the buffer.
    pub(super) fn heights(&self) -> (u32, u32) {
        (self.height.0, self.buffer_height.0)
    }

    /// Returns the maximum number of bits that are stored for the chain.
    pub(super) fn max_commitments(&self) -> u64 {
        self.max_commitments
    }

    /// Returns the number of headers in the buffer.
    pub fn buffered(&self) -> usize {
        self.buffer.len()
    }

    /// Processes the headers of one message: Core's `ProcessNextHeaders`. They must be continuous and have the proof of
    /// work that they claim.
    pub fn process(&mut self, headers: &[HashedHeader], is_full: bool) -> Processed {
        let mut answer = Processed { headers: Vec::new(), success: false, request_more: false };
        let taken = match self.phase {
            HeadersSyncPhase::Final => return answer,
            _ if headers.is_empty() => return answer,
            HeadersSyncPhase::Presync => self.presync_headers(headers),
            HeadersSyncPhase::Redownload => headers.iter().try_for_each(|header| self.redownload_header(header)),
        };
        answer.success = taken.is_ok();
        let was_presync = self.phase == HeadersSyncPhase::Presync;
        let end = match taken {
            Err(end) => Some(end),
            Ok(()) if was_presync && self.work >= self.minimum_work => {
                self.phase = HeadersSyncPhase::Redownload;
                None
            }
            Ok(()) if was_presync => (!is_full).then_some(HeadersSyncEnd::Incomplete),
            Ok(()) => {
                answer.headers = self.pop_ready();
                let is_complete = self.buffer.is_empty() && self.is_target_reached;
                let end = if is_complete { HeadersSyncEnd::Complete } else { HeadersSyncEnd::Incomplete };
                (is_complete || !is_full).then_some(end)
            }
        };
        match end {
            Some(end) => self.finalize(end),
            None => answer.request_more = true,
        }
        answer
    }

    /// Returns the locator of the next request: Core's `NextHeadersRequestLocator`. Empty after the end.
    pub fn next_locator(&self) -> Vec<BlockHash> {
        let last = match self.phase {
            HeadersSyncPhase::Final => return Vec::new(),
            HeadersSyncPhase::Presync => self.last.0,
            HeadersSyncPhase::Redownload => self.buffer_last,
        };
        let mut locator = vec![last];
        locator.extend_from_slice(&self.start.locator);
        locator
    }

    fn finalize(&mut self, end: HeadersSyncEnd) {
        self.end = Some(end);
        self.phase = HeadersSyncPhase::Final;
        self.commitments = Bits::default();
        self.buffer = VecDeque::new();
    }

    fn presync_headers(&mut self, headers: &[HashedHeader]) -> Result<(), HeadersSyncEnd> {
        if headers.first().is_none_or(|first| first.header().prev_block != self.last.0) {
            return Err(HeadersSyncEnd::NotContinuous);
        }
        for hashed in headers {
            let header = hashed.header();
            let height = Height(self.height.0 + 1);
            // Without this check, an attacker with little hash power could put the work into few headers.
            if !permitted_difficulty_transition(&self.params, height, self.last.1, header.bits) {
                return Err(HeadersSyncEnd::DifficultyTransition);
            }
            if self.is_committed(height) {
                self.commitments.push(self.commitment(&hashed.hash()));
                if self.commitments.len() > self.max_commitments {
                    return Err(HeadersSyncEnd::TooLong);
                }
            }
            self.work = add(self.work, self.proof.of(header.bits));
            self.last = (hashed.hash(), header.bits, header.time);
            self.height = height;
        }
        Ok(())
    }

    fn redownload_header(&mut self, hashed: &HashedHeader) -> Result<(), HeadersSyncEnd> {
        let header = hashed.header();
        let height = Height(self.buffer_height.0 + 1);
        if header.prev_block != self.buffer_last {
            return Err(HeadersSyncEnd::NotContinuous);
        }
        let last_bits = self.buffer.back().map_or(self.start.bits, |last| last.bits);
        if !permitted_difficulty_transition(&self.params, height, last_bits, header.bits) {
            return Err(HeadersSyncEnd::DifficultyTransition);
        }
        self.buffer_work = add(self.buffer_work, self.proof.of(header.bits));
        if self.buffer_work >= self.minimum_work {
            // From here on, the peer's chain may have grown since presync, beyond the stored bits.
            self.is_target_reached = true;
        }
        if !self.is_target_reached && self.is_committed(height) {
            let expected = self.commitments.pop().ok_or(HeadersSyncEnd::CommitmentOverrun)?;
            if expected != self.commitment(&hashed.hash()) {
                return Err(HeadersSyncEnd::CommitmentMismatch);
            }
        }
        let Header { version, merkle_root, time, bits, nonce, .. } = *header;
        self.buffer.push_back(Compressed { version, merkle_root, time, bits, nonce });
        self.buffer_last = hashed.hash();
        self.buffer_height = height;
        Ok(())
    }

    /// Core's `PopHeadersReadyForAcceptance`.
    fn pop_ready(&mut self) -> Vec<HashedHeader> {
        let kept = if self.is_target_reached { 0 } else { self.sync.redownload_buffer_size };
        let ready = self.buffer.len().saturating_sub(kept);
        let mut headers = Vec::with_capacity(ready);
        for Compressed { version, merkle_root, time, bits, nonce } in self.buffer.drain(..ready) {
            let prev_block = self.buffer_first_prev;
            let header = HashedHeader::new(Header { version, prev_block, merkle_root, time, bits, nonce });
            self.buffer_first_prev = header.hash();
            headers.push(header);
        }
        headers
    }

    fn is_committed(&self, height: Height) -> bool {
        height.0 % self.sync.commitment_period.max(1) == self.commit_offset
    }

    fn commitment(&self, hash: &BlockHash) -> bool {
        let mut salted = [0; 64];
        salted[..32].copy_from_slice(&self.salt);
        salted[32..].copy_from_slice(&hash.0);
        sha256(&salted)[0] & 1 == 1
    }

    /// Returns height, hash and work of the header that the chain builds on.
    pub fn start(&self) -> (Height, BlockHash, U256) {
        (self.start.height, self.start.hash, self.start.work)
    }
}

fn add(work: U256, proof: U256) -> U256 {
    work.checked_add(proof).unwrap_or(U256::MAX)
}

/// The work of a target, computed once as long as the target stays the same.
#[derive(Clone, Debug, Default)]
pub(super) struct Proof {
    bits: u32,
    work: U256,
}

impl Proof {
    pub(super) fn of(&mut self, bits: u32) -> U256 {
        if self.bits != bits {
            (self.bits, self.work) = (bits, block_proof(bits));
        }
        self.work
    }
}

/// A queue of bits.
#[derive(Clone, Debug, Default)]
struct Bits {
    words: VecDeque<u64>,
    /// `taken`: removed bits of the first word. `len`: bits in the queue.
    taken: u32,
    len: u64,
}

impl Bits {
    fn push(&mut self, bit: bool) {
        let at = (u64::from(self.taken) + self.len) % 64;
        if at == 0 {
            self.words.push_back(0);
        }
        if let Some(word) = self.words.back_mut() {
            *word |= u64::from(bit) << at;
        }
        self.len += 1;
    }

    fn pop(&mut self) -> Option<bool> {
        self.len = self.len.checked_sub(1)?;
        let bit = self.words.front()? >> self.taken & 1 == 1;
        self.taken += 1;
        if self.taken == 64 {
            self.words.pop_front();
            self.taken = 0;
        }
        Some(bit)
    }

    fn len(&self) -> u64 {
        self.len
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bits_come_out_as_they_went_in() {
        let (mut bits, mut model) = (Bits::default(), VecDeque::new());
        let mut state = 9_u64;
        for _ in 0..20_000 {
            state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
            if (state >> 40) % 5 < 3 {
                bits.push(state >> 63 == 1);
                model.push_back(state >> 63 == 1);
            } else {
                assert_eq!(bits.pop(), model.pop_front());
            }
            assert_eq!(bits.len(), model.len() as u64);
        }
        while let Some(bit) = bits.pop() {
            assert_eq!(Some(bit), model.pop_front());
        }
        assert!(model.is_empty());
    }
}
