//! Public keys and signatures of test chains, in lanes where the CPU has them.
//!
//! Input: private keys that protect nothing, and the hashes to sign. Output: their public keys and signatures, those of
//! libsecp256k1 byte for byte on every machine: `secp256k1_ecdsa_sign` with its own nonce, and BIP-0340 without
//! auxiliary randomness. Invariant: the lanes are used only if they agree with libsecp256k1 on [`TESTED`] keys. Cost:
//! `docs/benchmarks/generator.md`. Must never: sign for a wallet, since addresses in memory depend on the keys, and
//! nothing is verified or overwritten.

use crate::lanes::LaneEngine;
use crate::limits::LANE_CHECKS_MIN;
use crate::test_signature::{PublicPoint, TestScheme, TestSignature};
use secp256k1::{PublicKey, SecretKey};

/// Makes public keys and signatures of test chains.
#[derive(Debug)]
pub struct TestSigner {
    lanes: Option<LaneEngine>,
}

/// Keys on which lanes are compared with libsecp256k1 before they are used.
const TESTED: u8 = 40;

impl TestSigner {
    /// Uses the fastest lanes of this CPU that agree with libsecp256k1.
    pub fn new() -> TestSigner {
        let signers = LaneEngine::available().into_iter().map(|lanes| TestSigner { lanes: Some(lanes) });
        signers.into_iter().find(TestSigner::agrees).unwrap_or(TestSigner::library())
    }

    /// Uses libsecp256k1 alone.
    pub fn library() -> TestSigner {
        TestSigner { lanes: None }
    }

    fn agrees(&self) -> bool {
        let library = TestSigner::library();
        let secrets: Vec<[u8; 32]> = (1..=TESTED).map(|byte| [byte; 32]).collect();
        let keys = library.public_keys(&secrets);
        let wanted: Vec<TestSignature> = secrets
            .iter()
            .zip(&keys)
            .filter_map(|(secret, key)| key.map(|key| (*secret, key)))
            .flat_map(|(secret, key)| {
                [TestScheme::Ecdsa, TestScheme::Schnorr].map(|scheme| TestSignature {
                    secret,
                    key,
                    message: key.x,
                    scheme,
                })
            })
            .collect();
        self.public_keys(&secrets) == keys && self.sign(&wanted) == library.sign(&wanted)
    }

    /// Returns the public key of each private key; `None` if it is none.
    pub fn public_keys(&self, secrets: &[[u8; 32]]) -> Vec<Option<PublicPoint>> {
        let by_library = |secret: &[u8; 32]| {
            let key = PublicKey::from_secret_key(&SecretKey::from_secret_bytes(*secret).ok()?).serialize();
            let (sign, x) = key.split_first_chunk::<1>()?;
            Some(PublicPoint { x: *x.first_chunk()?, is_odd: *sign == [3] })
        };
        match &self.lanes {
            Some(lanes) if secrets.len() >= LANE_CHECKS_MIN => {
                let keys = lanes.public_keys(secrets);
                keys.into_iter().zip(secrets).map(|(key, secret)| key.or_else(|| by_library(secret))).collect()
            }
            _ => secrets.iter().map(by_library).collect(),
        }
    }

    /// Makes each signature; `None` if its secret is no private key.
    pub fn sign(&self, wanted: &[TestSignature]) -> Vec<Option<[u8; 64]>> {
        match &self.lanes {
            Some(lanes) if wanted.len() >= LANE_CHECKS_MIN => {
                let made = lanes.sign_openly(wanted);
                made.into_iter().zip(wanted).map(|(made, one)| made.or_else(|| one.by_library())).collect()
            }
            _ => wanted.iter().map(TestSignature::by_library).collect(),
        }
    }
}

impl Default for TestSigner {
    fn default() -> TestSigner {
        TestSigner::new()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use lydian_stdx::SplitMix64;

    /// Every kernel of this CPU, the portable one included, and any number of keys.
    #[test]
    fn keys_and_signatures_are_those_of_the_library() {
        let mut random = SplitMix64::new(8);
        let mut bytes = || -> [u8; 32] { std::array::from_fn(|_| random.next_u64().to_le_bytes()[0]) };
        let library = TestSigner::library();
        let mut one = [0; 32];
        one[31] = 1;
        for lanes in LaneEngine::available().into_iter().chain([LaneEngine::plain()]) {
            let signer = TestSigner { lanes: Some(lanes) };
            assert!(signer.agrees(), "{signer:?}");
            for count in [0, 1, 2, 3, 9, 300] {
                // The last three are no private keys, or the smallest.
                let secrets: Vec<[u8; 32]> = (0..count).map(|_| bytes()).chain([[0; 32], [0xff; 32], one]).collect();
                let keys = library.public_keys(&secrets);
                assert_eq!(signer.public_keys(&secrets), keys);
                let wanted: Vec<TestSignature> = (0..)
                    .zip(secrets.iter().zip(&keys))
                    .filter_map(|(at, (secret, key))| {
                        let scheme = if at % 3 == 0 { TestScheme::Schnorr } else { TestScheme::Ecdsa };
                        let message = if at % 7 == 0 { [0xff; 32] } else { bytes() };
                        Some(TestSignature { secret: *secret, key: (*key)?, message, scheme })
                    })
                    .collect();
                let made = signer.sign(&wanted);
                assert_eq!(made, library.sign(&wanted));
                assert!(made.iter().all(Option::is_some));
            }
        }
    }
}
