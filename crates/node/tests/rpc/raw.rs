//! Methods about single transactions and about keys, held against Core: decoding, creating, finding, proving, signing
//! and combining; multisig addresses, signed messages, aggregate keys.
//! Answers field by field, errors word by word, signatures byte by byte.

mod keys;
mod locks;
pub(crate) use locks::{Key, Lock, encode_key, keys, lock};
mod memory;
mod proofs;
mod scripts;
mod signing;
mod texts;
pub(crate) use texts::{random_creation, random_tx};

use lydian_stdx::SplitMix64;

/// A generator of its own for each test. `LYDIAN_SEED` selects other cases.
pub(crate) fn seeded(test: u64) -> SplitMix64 {
    let seed = std::env::var("LYDIAN_SEED").ok().map_or(0, |text| text.parse::<u64>().unwrap());
    SplitMix64::new(test + 1_000 * seed)
}

/// A random element of a list.
pub(crate) fn pick<'a, T: ?Sized>(random: &mut SplitMix64, from: &[&'a T]) -> &'a T {
    from[random.below(from.len())]
}

/// A string as JSON.
fn quoted(text: &str) -> String {
    format!("\"{text}\"")
}
