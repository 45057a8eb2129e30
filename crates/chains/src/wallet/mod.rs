//! Keys and locks: the script of a coin and the data to spend it.
//!
//! Input: the seed and the number of a key. Output: secret keys, scripts, satisfied inputs. Invariants: everything
//! depends only on the seed and the numbers, including nonces (RFC 6979; BIP-0340 without auxiliary randomness), so
//! that the order of signing does not matter. Cost: `docs/benchmarks/generator.md`. It must never be used
//! for money.

mod kind;
mod lock;
pub mod script;
mod sign;

pub use kind::{Kind, SIGNATURE_SIZE_EXPECTED_X2};
pub use lock::{Key, LEAF_VERSION_TAPSCRIPT, Lock, Opened, Wallet, leaf_hash, open_leaf, taproot_output};
pub use sign::{
    Spending, ecdsa_signature, legacy_message, satisfy_input, schnorr_signature, sign_input, signatures,
    wanted_signatures,
};
