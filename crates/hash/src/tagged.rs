//! Tagged hashes (BIP-0340): SHA-256 of the tag's hash twice, then the message.
//!
//! Input: a tag. Output: an engine that has already absorbed the tag. Invariant: the two tag hashes fill exactly one
//! block, so the midstate is eight words, computed at compile time for the consensus tags. Cost: nothing per hash. Must
//! never: be used with a tag taken from untrusted data.

use crate::sha256::{Midstate, Sha256, plain_const};

/// `hash_TapSighash` of BIP-0341.
pub const TAP_SIGHASH: Tag = Tag::new("TapSighash");
/// `hash_TapLeaf` of BIP-0341.
pub const TAP_LEAF: Tag = Tag::new("TapLeaf");
/// `hash_TapBranch` of BIP-0341.
pub const TAP_BRANCH: Tag = Tag::new("TapBranch");
/// `hash_TapTweak` of BIP-0341.
pub const TAP_TWEAK: Tag = Tag::new("TapTweak");
/// `hash_BIP0340/challenge` of BIP-0340.
pub const BIP0340_CHALLENGE: Tag = Tag::new("BIP0340/challenge");

/// Returns the engine of a tag that is not among the constants (`TaggedHash`).
#[must_use]
pub fn tagged(tag: &str) -> Sha256 {
    Tag::new(tag).engine()
}

/// The midstate of a tag.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Tag(Midstate);

impl Tag {
    /// Hashes the tag; evaluated at compile time in a const context.
    #[must_use]
    pub const fn new(tag: &str) -> Self {
        let digest = plain_const(tag.as_bytes());
        let mut block = [0; 64];
        let mut i = 0;
        while i < 64 {
            block[i] = digest[i & 31];
            i += 1;
        }
        Self(Midstate::of_blocks(&[block]))
    }

    /// Returns an engine that has absorbed the tag.
    #[must_use]
    pub const fn engine(&self) -> Sha256 {
        self.0.engine()
    }

    /// Returns the tagged hash of the concatenated parts.
    #[must_use]
    pub fn hash(&self, parts: &[&[u8]]) -> [u8; 32] {
        let mut engine = self.engine();
        for part in parts {
            engine.update(part);
        }
        engine.finalize()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sha256::sha256;

    /// Compares each constant with the definition, including the message.
    #[test]
    fn constants_follow_the_definition() {
        let tags = [
            (TAP_SIGHASH, "TapSighash"),
            (TAP_LEAF, "TapLeaf"),
            (TAP_BRANCH, "TapBranch"),
            (TAP_TWEAK, "TapTweak"),
            (BIP0340_CHALLENGE, "BIP0340/challenge"),
        ];
        for (tag, name) in tags {
            let tag_hash = sha256(name.as_bytes());
            let expected = sha256(&[&tag_hash[..], &tag_hash, b"message"].concat());
            assert_eq!(tag.hash(&[b"mess", b"age"]), expected, "{name}");
            assert_eq!(tagged(name).update(b"message").finalize(), expected, "{name}");
        }
        let long =
            "a tag longer than one block of the hash function, to be sure that the loop of the constant one works";
        assert_eq!(plain_const(long.as_bytes()), sha256(long.as_bytes()));
    }
}
