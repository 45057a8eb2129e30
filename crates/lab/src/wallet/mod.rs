//! Keys and locks: which script a coin carries and what opens it.
//!
//! Input: the seed and the number of a key. Output: secret keys, scripts, satisfied inputs. Invariants: everything follows
//! from the seed and the numbers, nonces included (RFC 6979; BIP-0340 without auxiliary randomness), so that whoever signs
//! first changes nothing. Cost: about 10 us per public key, 20 us per signature. Must never: be used for money.

mod kind;
mod lock;
pub mod script;
mod sign;

pub use kind::{Kind, SIGNATURE_SIZE_EXPECTED_X2};
pub use lock::{LEAF_VERSION_TAPSCRIPT, Lock, Opened, Wallet, leaf_hash, open_leaf, taproot_output};
pub use sign::{Spending, ecdsa_signature, legacy_message, schnorr_signature, sign_input};
