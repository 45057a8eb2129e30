//! Derived keys (BIP-0032), and private keys in wallet import format.
//!
//! Input: a string, or a key and a child number. Output: keys, and strings again. Private keys are kept in memory for
//! one call and are in no answer.

use super::sha512::hmac_sha512;
use crate::base58;
use lydian_consensus::Chain;
use lydian_hash::hash160;
use lydian_stdx::wipe;
use secp256k1::{PublicKey, Scalar, SecretKey};

/// The bit of a child number that marks derivation from the private key only.
pub(super) const HARDENED: u32 = 1 << 31;

/// A public key with the data for deriving its children.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Extended {
    depth: u8,
    parent: [u8; 4],
    number: u32,
    chain_code: [u8; 32],
    pub(super) key: [u8; 33],
}

/// The chain code of aggregate keys: SHA256 of `MuSig2MuSig2MuSig2` (BIP-0328).
const MUSIG_CHAIN_CODE: [u8; 32] = [
    0x86, 0x80, 0x87, 0xca, 0x02, 0xa6, 0xf9, 0x74, 0xc4, 0x59, 0x89, 0x24, 0xc3, 0x6b, 0x57, 0x76, 0x2d, 0x32, 0xcb,
    0x45, 0x71, 0x71, 0x67, 0xe3, 0x00, 0x62, 0x2c, 0x71, 0x67, 0xe3, 0x89, 0x65,
];

/// Prefixes of encoded keys: Core's `base58Prefixes`.
struct Prefixes {
    secret: u8,
    public: [u8; 4],
    private: [u8; 4],
}

fn prefixes(chain: Chain) -> Prefixes {
    match chain {
        Chain::Main => Prefixes { secret: 128, public: [0x04, 0x88, 0xb2, 0x1e], private: [0x04, 0x88, 0xad, 0xe4] },
        _ => Prefixes { secret: 239, public: [0x04, 0x35, 0x87, 0xcf], private: [0x04, 0x35, 0x83, 0x94] },
    }
}

/// Decodes a private key in WIF, and whether its public key is compressed: Core's `DecodeSecret`. The decoded bytes are
/// wiped.
pub(crate) fn decode_secret(text: &str, chain: Chain) -> Option<(SecretKey, bool)> {
    let mut bytes = base58::decode_check(text, 34)?;
    let found = parse_secret(&bytes, chain);
    wipe(&mut bytes);
    found
}

fn parse_secret(bytes: &[u8], chain: Chain) -> Option<(SecretKey, bool)> {
    let body = bytes.strip_prefix(&[prefixes(chain).secret])?;
    let (secret, is_compressed) = match body.len() {
        32 => (body, false),
        33 => (body.strip_suffix(&[1])?, true),
        _ => return None,
    };
    Some((SecretKey::from_secret_bytes(secret.try_into().ok()?).ok()?, is_compressed))
}

impl Extended {
    /// Decodes an extended key, public or private. Also returns the private key if there is one.
    pub(super) fn decode(text: &str, chain: Chain) -> Option<(Extended, Option<SecretKey>)> {
        let mut bytes = base58::decode_check(text, 78)?;
        let found = Extended::parse(&bytes, chain);
        wipe(&mut bytes);
        found
    }

    fn parse(bytes: &[u8], chain: Chain) -> Option<(Extended, Option<SecretKey>)> {
        let (version, rest) = bytes.split_first_chunk::<4>()?;
        let (&[depth], rest) = rest.split_first_chunk::<1>()?;
        let (&parent, rest) = rest.split_first_chunk::<4>()?;
        let (&number, rest) = rest.split_first_chunk::<4>()?;
        let (&chain_code, rest) = rest.split_first_chunk::<32>()?;
        let key: &[u8; 33] = rest.try_into().ok()?;
        let number = u32::from_be_bytes(number);
        if depth == 0 && (number != 0 || parent != [0; 4]) {
            return None;
        }
        let (key, secret) = if *version == prefixes(chain).private {
            let (&[zero], secret) = key.split_first_chunk::<1>()?;
            let secret = SecretKey::from_secret_bytes(secret.try_into().ok().filter(|_| zero == 0)?).ok()?;
            (PublicKey::from_secret_key(&secret).serialize(), Some(secret))
        } else if *version == prefixes(chain).public {
            (PublicKey::from_slice(key).ok()?.serialize(), None)
        } else {
            return None;
        };
        Some((Extended { depth, parent, number, chain_code, key }, secret))
    }

    /// The extended key of an aggregate of MuSig2 (BIP-0328).
    pub(super) fn of_aggregate(key: [u8; 33]) -> Extended {
        Extended { depth: 0, parent: [0; 4], number: 0, chain_code: MUSIG_CHAIN_CODE, key }
    }

    /// The encoded public key.
    pub(super) fn encode(&self, chain: Chain) -> String {
        let number = self.number.to_be_bytes();
        let parts = [&prefixes(chain).public[..], &[self.depth], &self.parent, &number, &self.chain_code, &self.key];
        base58::encode_check(parts.concat())
    }

    /// The first four bytes of the hash of the key.
    pub(super) fn fingerprint(&self) -> [u8; 4] {
        fingerprint(&self.key)
    }

    /// The child with a number below [`HARDENED`]. `None` if it does not exist, which happens for one key in 2^127, or
    /// if the depth is exhausted.
    pub(super) fn child(&self, number: u32) -> Option<Extended> {
        let (tweak, chain_code) = self.step(&self.key, number);
        let key = PublicKey::from_slice(&self.key).ok()?.add_exp_tweak(&Scalar::from_be_bytes(tweak).ok()?).ok()?;
        self.descend(number, chain_code, key)
    }

    /// The child with any number, including its private key.
    pub(super) fn private_child(&self, secret: &SecretKey, number: u32) -> Option<(Extended, SecretKey)> {
        let mut private = [0; 33];
        private[1..].copy_from_slice(&secret.to_secret_bytes());
        let (tweak, chain_code) = self.step(if number & HARDENED == 0 { &self.key } else { &private }, number);
        wipe(&mut private);
        let secret = (*secret).add_tweak(&Scalar::from_be_bytes(tweak).ok()?).ok()?;
        Some((self.descend(number, chain_code, PublicKey::from_secret_key(&secret))?, secret))
    }

    fn step(&self, key: &[u8], number: u32) -> ([u8; 32], [u8; 32]) {
        let hash = hmac_sha512(&self.chain_code, &[key, &number.to_be_bytes()]);
        let (mut tweak, mut chain_code) = ([0; 32], [0; 32]);
        tweak.copy_from_slice(&hash[..32]);
        chain_code.copy_from_slice(&hash[32..]);
        (tweak, chain_code)
    }

    fn descend(&self, number: u32, chain_code: [u8; 32], key: PublicKey) -> Option<Extended> {
        let depth = self.depth.checked_add(1)?;
        Some(Extended { depth, parent: self.fingerprint(), number, chain_code, key: key.serialize() })
    }
}

pub(super) fn fingerprint(key: &[u8]) -> [u8; 4] {
    let hash = hash160(key);
    [hash[0], hash[1], hash[2], hash[3]]
}

#[cfg(test)]
mod tests {
    use super::*;
    use lydian_primitives::hex;
    use serde_json::Value;

    /// BIP-0032, test vector 1: m, m/0H, m/0H/1.
    #[test]
    fn the_vectors_of_bip_0032() {
        let private = "xprv9s21ZrQH143K3QTDL4LXw2F7HEK3wJUD2nW2nRk4stbPy6cq3jPPqjiChkVvvNKmPGJxWUtg6LnF5kejMRNNU3TGtRBeJgk33yuGBxrMPHi";
        let (root, secret) = Extended::decode(private, Chain::Main).unwrap();
        let public = "xpub661MyMwAqRbcFtXgS5sYJABqqG9YLmC4Q1Rdap9gSE8NqtwybGhePY2gZ29ESFjqJoCu1Rupje8YtGqsefD265TMg7usUDFdp6W1EGMcet8";
        assert_eq!(root.encode(Chain::Main), public);
        assert_eq!(Extended::decode(public, Chain::Main).unwrap(), (root.clone(), None));
        let (child, secret) = root.private_child(&secret.unwrap(), HARDENED).unwrap();
        let expected = "xpub68Gmy5EdvgibQVfPdqkBBCHxA5htiqg55crXYuXoQRKfDBFA1WEjWgP6LHhwBZeNK1VTsfTFUHCdrfp1bgwQ9xv5ski8PX9rL2dZXvgGDnw";
        assert_eq!(child.encode(Chain::Main), expected);
        let grandchild = child.child(1).unwrap();
        let expected = "xpub6ASuArnXKPbfEwhqN6e3mwBcDTgzisQN1wXN9BJcM47sSikHjJf3UFHKkNAWbWMiGj7Wf5uMash7SyYq527Hqck2AxYysAA7xmALppuCkwQ";
        assert_eq!(grandchild.encode(Chain::Main), expected);
        assert_eq!(child.private_child(&secret, 1).unwrap().0, grandchild);
    }

    /// BIP-0032, test vector 5, and a key for another chain.
    #[test]
    fn keys_that_are_none() {
        for text in [
            "xpub661MyMwAqRbcEYS8w7XLSVeEsBXy79zSzH1J8vCdxAZningWLdN3zgtU6LBpB85b3D2yc8sfvZU521AAwdZafEz7mnzBBsz4wKY5fTtTQBm",
            "xprv9s21ZrQH143K24Mfq5zL5MhWK9hUhhGbd45hLXo2Pq2oqzMMo63oStZzFGTQQD3dC4H2D5GBj7vWvSQaaBv5cxi9gafk7NF3pnBju6dwKvH",
            "xprv9s2SPatNQ9Vc6GTbVMFPFo7jsaZySyzk7L8n2uqKXJen3KUmvQNTuLh3fhZMBoG3G4ZW1N2kZuHEPY53qmbZzCHshoQnNf4GvELZfqTUrcv",
            "xprv9s21ZrQH143K3QTDL4LXw2F7HEK3wJUD2nW2nRk4stbPy6cq3jPPqjiChkVvvNKmPGJxWUtg6LnF5kejMRNNU3TGtRBeJgk33yuGBxrMPHj",
            "tpubD6NzVbkrYhZ4WaWSyoBvQwbpLkojyoTZPRsgXELWz3Popb3qkjcJyJUGLnL4qHHoQvao8ESaAstxYSnhyswJ76uZPStJRJCTKvosUCJZL5B",
            "",
            "x",
        ] {
            assert_eq!(Extended::decode(text, Chain::Main), None, "{text}");
        }
    }

    const VALID: &str = include_str!("../../../../testdata/vectors/core/key_io_valid.json");
    const INVALID: &str = include_str!("../../../../testdata/vectors/core/key_io_invalid.json");

    /// The private keys of Core's key_io tests.
    #[test]
    fn private_keys_of_core() {
        let mut count = 0;
        for case in serde_json::from_str::<Vec<Value>>(VALID).unwrap() {
            let (text, about) = (case[0].as_str().unwrap(), &case[2]);
            let chain: Chain = about["chain"].as_str().unwrap().parse().unwrap();
            let found = decode_secret(text, chain).map(|(key, is_compressed)| (key.to_secret_bytes(), is_compressed));
            let expected = (about["isPrivkey"] == true).then(|| {
                let bytes = hex(case[1].as_str().unwrap()).unwrap();
                (bytes.try_into().unwrap(), about["isCompressed"] == true)
            });
            assert_eq!(found, expected, "{text}");
            count += usize::from(found.is_some());
        }
        assert_eq!(count, 16);
        for case in serde_json::from_str::<Vec<Vec<String>>>(INVALID).unwrap() {
            for chain in Chain::ALL {
                assert!(decode_secret(&case[0], chain).is_none(), "{}", case[0]);
            }
        }
    }
}
