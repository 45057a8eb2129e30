//! Lenient parsing of DER signatures in scripts: Core's `ecdsa_signature_parse_der_lax` (pubkey.cpp).
//!
//! Before BIP-0066 any such bytes were accepted as a signature, so this is consensus for the blocks of that time.

use secp256k1::ecdsa::Signature;

/// Reads r and s from (possibly malformed) DER without the hash type; `None` if Core's parser fails.
///
/// If r or s is not below the group order, the result is zeros, which no check accepts, as in Core.
pub fn parse_der_lax(der: &[u8]) -> Option<[u8; 64]> {
    Signature::from_der_lax(der).ok().map(|signature| signature.serialize_compact())
}
