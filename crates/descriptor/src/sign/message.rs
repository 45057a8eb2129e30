//! Signed messages: Core's common/signmessage.cpp, `CKey::SignCompact` and `CPubKey::RecoverCompact`.
//!
//! Input: a message, and a private key or a signature. Output: the signature in 65 bytes, or whether it is from the
//! key with a given hash. The first byte selects one of up to four keys that can have made the signature, and says
//! whether the key is compressed. Invariants: signatures are byte for byte Core's (RFC 6979, not ground for a low r);
//! no signature causes a panic. Cost: a signature and a recovery, as in Core.

use super::PrivateKey;
use lydian_hash::{hash160, sha256d};
use lydian_primitives::build::write_var_bytes;
use secp256k1::Message;
use secp256k1::ecdsa::{RecoverableSignature, RecoveryId};

/// Size of a signature that reveals its key: Core's `CPubKey::COMPACT_SIGNATURE_SIZE`.
const SIGNATURE_SIZE: usize = 65;

/// The first byte of signatures starts here.
const HEADER: u8 = 27;

/// Added to the first byte for a compressed key.
const COMPRESSED: u8 = 4;

/// Core's `MESSAGE_MAGIC`, which keeps a message from being a transaction.
const MAGIC: &[u8] = b"Bitcoin Signed Message:\n";

/// Core's `MessageHash`.
fn digest_of(message: &str) -> [u8; 32] {
    let mut bytes = Vec::with_capacity(MAGIC.len() + message.len() + 10);
    write_var_bytes(&mut bytes, MAGIC);
    write_var_bytes(&mut bytes, message.as_bytes());
    sha256d(&bytes)
}

/// Signs a message: Core's `MessageSign`. `None` only if the signature does not reveal the key, which would be an error
/// of the computer; Core stops the program.
pub fn sign_message(key: &PrivateKey, message: &str) -> Option<[u8; SIGNATURE_SIZE]> {
    let digest = digest_of(message);
    let made = RecoverableSignature::sign_ecdsa_recoverable(Message::from_digest(digest), key.secret());
    let (which, pair) = made.serialize_compact();
    let compressed = if key.is_compressed() { COMPRESSED } else { 0 };
    let mut signature = [HEADER + which.to_u8() + compressed; SIGNATURE_SIZE];
    signature[1..].copy_from_slice(&pair);
    (recover(&digest, &signature).as_deref() == Some(key.public_key())).then_some(signature)
}

/// Returns whether the key with this hash has signed the message: Core's `MessageVerify` after its checks of the text.
pub fn verify_message(key_hash: &[u8; 20], signature: &[u8], message: &str) -> bool {
    let Ok(signature) = signature.try_into() else { return false };
    recover(&digest_of(message), signature).is_some_and(|key| hash160(&key) == *key_hash)
}

/// The public key that has made a signature: Core's `CPubKey::RecoverCompact`.
fn recover(digest: &[u8; 32], signature: &[u8; SIGNATURE_SIZE]) -> Option<Vec<u8>> {
    let [header, pair @ ..] = signature;
    let header = header.wrapping_sub(HEADER);
    let which = RecoveryId::from_u8_masked(header);
    let signature = RecoverableSignature::from_compact(pair, which).ok()?;
    let key = signature.recover_ecdsa(Message::from_digest(*digest)).ok()?;
    Some(match header & COMPRESSED {
        0 => key.serialize_uncompressed().to_vec(),
        _ => key.serialize().to_vec(),
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use lydian_consensus::Chain;
    use secp256k1::constants::CURVE_ORDER;
    use secp256k1::{PublicKey, SecretKey, ecdsa};

    /// The private keys 1 and 2, the second for an uncompressed public key.
    const KEYS: [&str; 2] =
        ["KwDiBf89QgGbjEhKnhXJuH7LrciVrZi3qYjgd9M7rFU73sVHnoWn", "5HpHagT65TZzG1PH3CSu63k8DbpvD8s5ip4nEB3kEsreAvUcVfH"];

    fn key(index: usize) -> PrivateKey {
        PrivateKey::from_wif(KEYS[index], Chain::Main).unwrap()
    }

    #[test]
    fn a_signed_message_is_verified_and_no_other() {
        let mut headers = std::collections::BTreeSet::new();
        for index in [0, 1] {
            let key = key(index);
            let hash = hash160(key.public_key());
            for length in [0, 1, 2, 3, 4, 5, 6, 7, 252, 253, 70_000] {
                let message = "é".repeat(length);
                let signature = sign_message(&key, &message).unwrap();
                headers.insert(signature[0]);
                assert!(verify_message(&hash, &signature, &message));
                assert!(!verify_message(&hash, &signature, &format!("{message} ")));
                assert!(!verify_message(&[0; 20], &signature, &message));
                for place in 0..SIGNATURE_SIZE {
                    let mut other = signature;
                    other[place] ^= 1;
                    assert!(!verify_message(&hash, &other, &message), "{place}");
                }
                // Only the low three bits of the header count, as in Core.
                let mut other = signature;
                other[0] = other[0].wrapping_add(8);
                assert!(verify_message(&hash, &other, &message));
                assert!(!verify_message(&hash, &signature[..64], &message));
            }
        }
        assert_eq!(headers.into_iter().collect::<Vec<_>>(), [27, 28, 31, 32]);
    }

    /// The values at the ends of r and s.
    #[test]
    fn numbers_out_of_range_are_refused() {
        let less = |by: u8| {
            let mut number = CURVE_ORDER;
            number[31] -= by;
            number
        };
        let signature = |header: u8, r: &[u8; 32], s: &[u8; 32]| [&[header][..], r, s].concat().try_into().unwrap();
        let one = *SecretKey::from_secret_bytes(less(1)).unwrap().negate().as_secret_bytes();
        // 1 is x of a point, and so is 2; 5 is not. 1 plus the order is x of none.
        assert!(recover(&[1; 32], &signature(27, &one, &one)).is_some());
        assert!(recover(&[1; 32], &signature(27, &one, &less(1))).is_some());
        for bad in [[0; 32], CURVE_ORDER, [255; 32]] {
            assert_eq!(recover(&[1; 32], &signature(27, &bad, &one)), None);
            assert_eq!(recover(&[1; 32], &signature(27, &one, &bad)), None);
        }
        assert_eq!(recover(&[1; 32], &signature(29, &less(1), &one)), None, "x is above the field");
        let mut five = one;
        five[31] = 5;
        assert_eq!(recover(&[1; 32], &signature(27, &five, &one)), None);
    }

    /// The library verifies each signature with the key that was recovered from it.
    #[test]
    fn recovered_keys_verify_their_signatures() {
        let mut found = 0;
        for round in 0..400_u32 {
            let number = |part: u8| lydian_hash::sha256(&[&round.to_be_bytes()[..], &[part]].concat());
            let (digest, r, s) = (number(0), number(1), number(2));
            let header = HEADER + COMPRESSED + u8::try_from(round % 2).unwrap();
            let signature: [u8; 65] = [&[header][..], &r, &s].concat().try_into().unwrap();
            let Some(key) = recover(&digest, &signature) else { continue };
            let mut verified = ecdsa::Signature::from_compact(&signature[1..]).unwrap();
            verified.normalize_s();
            let key = PublicKey::from_slice(&key).unwrap();
            assert!(ecdsa::verify(&verified, Message::from_digest(digest), &key).is_ok(), "{round}");
            found += 1;
        }
        // Half of all numbers are x of a point.
        assert!((150..250).contains(&found), "{found}");
    }
}
