//! Signatures as scripts carry them, read as leniently as Bitcoin always has: Core's `ecdsa_signature_parse_der_lax`
//! (pubkey.cpp). Before BIP-0066 any such bytes were a signature, so this is consensus for the blocks of that time.

use secp256k1::ecdsa::Signature;

/// Reads r and s from (possibly malformed) DER without its hash type; `None` where Core's parser gives up.
///
/// An r or s that does not fit the group order gives zeros, which no check accepts, as in Core.
pub fn parse_der_lax(der: &[u8]) -> Option<[u8; 64]> {
    Signature::from_der_lax(der).ok().map(|signature| signature.serialize_compact())
}
