//! The hashes that capture runs leave to be computed: the HASH160 of a key or of a redeem script must be the one to
//! which an output commits.
//!
//! Input: bytes and the hash expected of them. Output: for each, whether it is their hash. Why later: the SIMD lanes of
//! [`hash160_many`] hash many messages in the time of one or two. Cost: the bytes are copied (33 for most keys, at most
//! 520), with 24 bytes for each hash. Must never decide anything else: scripts that use a hash in other ways than to
//! compare it are left to the interpreter, which computes it at once.

use crate::obligations::narrow;
use lydian_hash::{Message, hash160_many};

/// Number of messages hashed by one call.
const CHUNK: usize = 64;

/// Hashes to be computed and compared, in the order in which they were recorded.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Hashes {
    /// The concatenated messages.
    bytes: Vec<u8>,
    claims: Vec<Claim>,
}

/// What is claimed about one message, which begins where the one before ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Claim {
    /// The end of the message in `bytes`.
    end: u32,
    /// Its HASH160.
    expected: [u8; 20],
}

impl Hashes {
    pub(crate) fn len(&self) -> usize {
        self.claims.len()
    }

    pub(crate) fn push(&mut self, message: &[u8], expected: &[u8; 20]) {
        self.bytes.extend_from_slice(message);
        self.claims.push(Claim { end: narrow(self.bytes.len()), expected: *expected });
    }

    /// Keeps the first `len` hashes.
    pub(crate) fn truncate(&mut self, len: usize) {
        self.claims.truncate(len);
        self.bytes.truncate(self.start(len));
    }

    /// Computes all hashes. Returns for each whether it is the expected one.
    pub(crate) fn settle(&self) -> Vec<bool> {
        let mut verdicts = Vec::with_capacity(self.len());
        let mut start = 0;
        for claims in self.claims.chunks(CHUNK) {
            let (mut messages, mut hashes) = ([Message::default(); CHUNK], [[0; 20]; CHUNK]);
            for (message, claim) in messages.iter_mut().zip(claims) {
                let end = claim.end as usize;
                *message = Message::from(&self.bytes[start..end]);
                start = end;
            }
            let hashes = &mut hashes[..claims.len()];
            hash160_many(&messages[..claims.len()], hashes);
            verdicts.extend(claims.iter().zip(hashes).map(|(claim, hash)| claim.expected == *hash));
        }
        verdicts
    }

    /// Where the message with this index begins.
    fn start(&self, index: usize) -> usize {
        index.checked_sub(1).map_or(0, |before| self.claims[before].end as usize)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use lydian_hash::hash160;

    /// Messages of many lengths around the chunks; one hash in seven is false by one bit.
    #[test]
    fn each_verdict_is_that_of_its_message() {
        for count in [0, 1, 2, CHUNK - 1, CHUNK, CHUNK + 1, 3 * CHUNK + 5] {
            let mut hashes = Hashes::default();
            let mut expected = Vec::new();
            for i in 0..count {
                let message: Vec<u8> = (0..(i * 37) % 521).map(|j| u8::try_from((i + 3 * j) & 255).unwrap()).collect();
                let mut hash = hash160(&message);
                let is_false = i % 7 == 3;
                hash[i % 20] ^= u8::from(is_false) << (i % 8);
                hashes.push(&message, &hash);
                expected.push(!is_false);
            }
            assert_eq!(hashes.settle(), expected, "{count} messages");
        }
    }

    #[test]
    fn a_truncated_list_is_the_list_before() {
        let mut hashes = Hashes::default();
        hashes.push(b"first", &hash160(b"first"));
        let before = hashes.clone();
        hashes.push(b"", &[0; 20]);
        hashes.push(b"third", &[0; 20]);
        hashes.truncate(1);
        assert_eq!(hashes, before);
        hashes.push(b"second", &hash160(b"second"));
        assert_eq!(hashes.settle(), [true, true]);
        hashes.truncate(0);
        assert_eq!(hashes, Hashes::default());
    }
}
