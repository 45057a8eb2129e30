//! The signers of a test of `musig()`: their keys as texts of descriptors, and sessions of signing (BIP-0327).

use super::maps::Map;
use crate::raw::encode_key;
use bdk_electrum::bdk_core::bitcoin::bip32::{ChainCode, ChildNumber, Fingerprint, Xpriv, Xpub};
use bdk_electrum::bdk_core::bitcoin::hashes::Hash;
use bdk_electrum::bdk_core::bitcoin::secp256k1::Secp256k1;
use bdk_electrum::bdk_core::bitcoin::taproot::TapNodeHash;
use bdk_electrum::bdk_core::bitcoin::{NetworkKind, TapTweakHash, XOnlyPublicKey};
use lydian_hash::{hash160, sha256};
use lydian_primitives::{Amount, Output, Transaction, to_hex};
use lydian_script::{TaprootExt, TxContext};
use secp256k1::musig::{AggregatedNonce, KeyAggCache, PublicNonce, SessionSecretRand, new_nonce_pair};
use secp256k1::{Keypair, PublicKey, Scalar};
use std::collections::BTreeMap;

/// The chain code of BIP-0328.
const CHAIN_CODE: &str = "868087ca02a6f974c4598924c36b57762d32cb45717167e300622c7167e38965";

type Bytes = Vec<u8>;

/// Keys whose private keys are known.
pub(super) struct Signers {
    /// Name, private text, public text.
    texts: Vec<(&'static str, String, String)>,
    /// By the public keys, also those that descriptors derive.
    pairs: BTreeMap<Bytes, Keypair>,
}

impl Signers {
    pub(super) fn new() -> Signers {
        let secp = Secp256k1::new();
        let mut signers = Signers { texts: Vec::new(), pairs: BTreeMap::new() };
        for name in ["a", "b", "c", "d"] {
            let secret = sha256(name.as_bytes());
            let public = signers.add(secret);
            signers.texts.push((name, encode_key(secret, true), to_hex(&public)));
        }
        for name in ["x", "y", "z"] {
            let root = Xpriv::new_master(NetworkKind::Test, name.as_bytes()).unwrap();
            let public = Xpub::from_priv(&secp, &root);
            signers.texts.push((name, root.to_string(), public.to_string()));
            signers.add(root.private_key.secret_bytes());
            for first in [0, 1, 5] {
                let step = |index| [ChildNumber::from_normal_idx(index).unwrap()];
                let child = root.derive_priv(&secp, &step(first)).unwrap();
                signers.add(child.private_key.secret_bytes());
                for last in 0..3 {
                    signers.add(child.derive_priv(&secp, &step(last)).unwrap().private_key.secret_bytes());
                }
            }
        }
        signers
    }

    fn add(&mut self, secret: [u8; 32]) -> Bytes {
        let pair = Keypair::from_secret_bytes(secret).unwrap();
        let public = pair.public_key().serialize().to_vec();
        self.pairs.insert(public.clone(), pair);
        public
    }

    /// A form with texts instead of names: private ones of those that are listed.
    pub(super) fn descriptor(&self, form: &str, private: &[&str]) -> String {
        self.texts.iter().fold(form.to_owned(), |form, (name, secret, public)| {
            form.replace(&format!("@{name}"), if private.contains(name) { secret } else { public })
        })
    }
}

/// The signing of one key of a script.
pub(super) struct Session {
    participants: Vec<PublicKey>,
    cache: KeyAggCache,
    digest: [u8; 32],
}

fn public(bytes: &[u8]) -> PublicKey {
    PublicKey::from_slice(bytes).unwrap()
}

/// The value of a field without data in its key.
fn value(input: &Map, kind: u8) -> Option<&[u8]> {
    input.iter().find(|field| field.0 == [kind]).map(|field| &field.1[..])
}

/// The tweaks on the path to a key that is derived from an aggregate key.
fn path_tweaks(aggregate: &[u8], path: &[u32]) -> Vec<[u8; 32]> {
    let mut key = Xpub {
        network: NetworkKind::Test,
        depth: 0,
        parent_fingerprint: Fingerprint::default(),
        child_number: ChildNumber::from(0),
        public_key: bdk_electrum::bdk_core::bitcoin::secp256k1::PublicKey::from_slice(aggregate).unwrap(),
        chain_code: CHAIN_CODE.parse::<ChainCode>().unwrap(),
    };
    let mut tweaks = Vec::new();
    for step in path {
        let step = ChildNumber::from_normal_idx(*step).unwrap();
        tweaks.push(key.ckd_pub_tweak(step).unwrap().0.secret_bytes());
        key = key.ckd_pub(&Secp256k1::new(), step).unwrap();
    }
    tweaks
}

/// The paths of the origins that name this aggregate key as their root, and the empty one.
fn paths(input: &Map, aggregate: &[u8]) -> Vec<Vec<u32>> {
    let mut paths = vec![Vec::new()];
    for (_, origin) in input.iter().filter(|field| field.0[0] == 0x16) {
        let origin = &origin[1 + 32 * usize::from(origin[0])..];
        if hash160(aggregate).starts_with(&origin[..4]) {
            paths.push(origin[4..].chunks(4).map(|step| u32::from_le_bytes(step.try_into().unwrap())).collect());
        }
    }
    paths
}

fn tap_tweak(input: &Map) -> Option<[u8; 32]> {
    let internal = XOnlyPublicKey::from_slice(value(input, 0x17)?).unwrap();
    let root = value(input, 0x18).map(|root| TapNodeHash::from_slice(root).unwrap());
    Some(TapTweakHash::from_key_and_tweak(internal, root).to_scalar().to_be_bytes())
}

impl Session {
    /// The session of a key of the script and maybe a leaf, which an input's fields name.
    pub(super) fn new(input: &Map, place: &[u8], tx: &Transaction, utxo: &[u8], hash_type: u8) -> Session {
        let (script_key, leaf) = place.split_at(33);
        let (amount, script) = (i64::from_le_bytes(utxo[..8].try_into().unwrap()), &utxo[9..]);
        let spent = [Output { value: Amount(amount), script_pubkey: script }];
        let leaf: Option<[u8; 32]> = (!leaf.is_empty()).then(|| leaf.try_into().unwrap());
        let ext = TaprootExt { annex_hash: None, leaf: leaf.map(|leaf| (leaf, u32::MAX)) };
        let digest = TxContext::new(tx.view(), &spent).unwrap().taproot(0, hash_type, &ext).unwrap();
        for (key, participants) in input.iter().filter(|field| field.0[0] == 0x1a) {
            let participants: Vec<PublicKey> = participants.chunks(33).map(public).collect();
            let whole = KeyAggCache::new(&participants.iter().collect::<Vec<_>>());
            assert_eq!(whole.agg_pk_full().serialize()[..], key[1..], "the aggregate of the participants");
            for path in paths(input, &key[1..]) {
                for tap in [None, tap_tweak(input)] {
                    let mut cache = whole;
                    let mut last = cache.agg_pk_full();
                    for tweak in path_tweaks(&key[1..], &path) {
                        last = cache.pubkey_ec_tweak_add(&Scalar::from_be_bytes(tweak).unwrap()).unwrap();
                    }
                    if let (Some(tweak), None) = (tap, leaf) {
                        last = cache.pubkey_xonly_tweak_add(&Scalar::from_be_bytes(tweak).unwrap()).unwrap();
                    }
                    if last.serialize()[..] == *script_key {
                        return Session { participants, cache, digest };
                    }
                }
            }
        }
        panic!("no participants for {}", to_hex(script_key));
    }

    pub(super) fn is_nonce(bytes: &[u8]) -> bool {
        bytes.try_into().is_ok_and(|bytes| PublicNonce::from_byte_array(bytes).is_ok())
    }

    /// The nonces and the partial signatures of the participants, by their keys.
    pub(super) fn run(&self, signers: &Signers) -> (BTreeMap<Bytes, Bytes>, BTreeMap<Bytes, Bytes>) {
        let pairs: Vec<&Keypair> = self.participants.iter().map(|key| &signers.pairs[&key.serialize()[..]]).collect();
        let nonce = |pair: &&Keypair| {
            let key = pair.public_key();
            let chance = sha256(&[&key.serialize()[..], &self.digest].concat());
            new_nonce_pair(
                SessionSecretRand::assume_uniformly_random(chance),
                Some(&self.cache),
                Some(pair.secret_key()),
                key,
                Some(&self.digest),
                None,
            )
        };
        let (secrets, nonces): (Vec<_>, Vec<_>) = pairs.iter().map(nonce).unzip();
        let aggregated = AggregatedNonce::new(&nonces.iter().collect::<Vec<_>>());
        let session = secp256k1::musig::Session::new(&self.cache, aggregated, &self.digest);
        let (mut all_nonces, mut partials) = (BTreeMap::new(), BTreeMap::new());
        for ((pair, secret), nonce) in pairs.iter().zip(secrets).zip(nonces) {
            let key = pair.public_key().serialize().to_vec();
            all_nonces.insert(key.clone(), nonce.serialize().to_vec());
            partials.insert(key, session.partial_sign(secret, pair, &self.cache).serialize().to_vec());
        }
        (all_nonces, partials)
    }
}
