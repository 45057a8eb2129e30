//! Signatures of several signers for one key (BIP-0327, BIP-0373): Core's `SignMuSig2`.
//!
//! Input: the participants, nonces and partial signatures of an input. Output: their aggregate if all partial
//! signatures are there and hold; otherwise a nonce for each participant whose private key is known. The secret part of
//! a nonce is dropped with the call, as in Core's methods, so that partial signatures are made elsewhere.

use super::taproot::{Tweak, with_hash_type};
use super::tree::{output_key, tweak_hash};
use super::{CompressedKey, KeyOrigin, MusigParticipants, SignatureData, Signer};
use crate::expression::hmac_sha512;
use crate::limits::AGGREGATE_STEPS_MAX;
use lydian_hash::hash160;
use secp256k1::musig::{
    AggregatedNonce, KeyAggCache, PartialSignature, PublicNonce, Session, SessionSecretRand, new_nonce_pair,
};
use secp256k1::{PublicKey, Scalar};
use std::collections::{BTreeMap, BTreeSet};

/// The chain code of keys derived from an aggregate key (BIP-0328).
const CHAIN_CODE: [u8; 32] = [
    0x86, 0x80, 0x87, 0xca, 0x02, 0xa6, 0xf9, 0x74, 0xc4, 0x59, 0x89, 0x24, 0xc3, 0x6b, 0x57, 0x76, 0x2d, 0x32, 0xcb,
    0x45, 0x71, 0x71, 0x67, 0xe3, 0x00, 0x62, 0x2c, 0x71, 0x67, 0xe3, 0x89, 0x65,
];

/// The bit of a child number that needs a private key.
const HARDENED: u32 = 1 << 31;

/// What an input computes once from its participants: a script may have thousands of keys, and an aggregate key
/// thousands of participants.
#[derive(Clone, Debug, Default)]
pub struct MusigMemo {
    /// The aggregate keys by their fingerprints.
    fingerprints: Option<BTreeMap<[u8; 4], Vec<CompressedKey>>>,
    /// The participants of an aggregate key as points, and their aggregate; `None` if it is another.
    caches: BTreeMap<CompressedKey, Option<(Vec<PublicKey>, KeyAggCache)>>,
}

impl MusigMemo {
    fn cache(
        &mut self,
        aggregate: &CompressedKey,
        participants: &[CompressedKey],
    ) -> Option<&(Vec<PublicKey>, KeyAggCache)> {
        self.caches.entry(*aggregate).or_insert_with(|| key_cache(aggregate, participants)).as_ref()
    }
}

/// A tweak, and whether it is one of the x-only key.
type Tweaks = Vec<([u8; 32], bool)>;

fn x_only(key: &CompressedKey) -> [u8; 32] {
    let mut x = [0; 32];
    x.copy_from_slice(&key[1..]);
    x
}

impl Signer<'_, '_> {
    /// `None` if a key cannot be derived, which ends the attempt.
    pub(super) fn sign_musig(
        &self,
        script_key: &[u8; 32],
        tweak: Tweak,
        leaf: Option<[u8; 32]>,
        data: &mut SignatureData,
    ) -> Option<()> {
        // A script may have as many keys as there are aggregate keys, so nothing is copied for each.
        let all = std::mem::take(&mut data.musig_participants);
        let done = self.sign_each_musig(&all, script_key, tweak, leaf, data);
        data.musig_participants = all;
        done
    }

    fn sign_each_musig(
        &self,
        all: &MusigParticipants,
        script_key: &[u8; 32],
        tweak: Tweak,
        leaf: Option<[u8; 32]>,
        data: &mut SignatureData,
    ) -> Option<()> {
        let origin = data.taproot_origins.get(script_key).map(|(_, origin)| origin.clone()).unwrap_or_default();
        // Participants without a private key here may have origins to be added.
        let candidates = match self.keys.has_origins() {
            true => all.keys().copied().collect(),
            false => candidates(all, script_key, &origin, data),
        };
        for (aggregate, participants) in candidates.iter().filter_map(|aggregate| all.get_key_value(aggregate)) {
            if participants.is_empty() {
                continue;
            }
            if self.keys.has_origins() {
                self.add_participant_origins(participants, leaf, data);
            }
            let Some((mut key, mut tweaks)) = derive(aggregate, script_key, &origin)? else { continue };
            if let (Tweak::Root(root), None) = (tweak, leaf) {
                tweaks.push((tweak_hash(script_key, root.as_ref()), true));
                let (tweaked, is_odd) = output_key(script_key, root.as_ref())?;
                key[0] = if is_odd { 3 } else { 2 };
                key[1..].copy_from_slice(&tweaked);
            }
            let session = (key, leaf.unwrap_or_default());
            if let Some(signature) = self.aggregate(aggregate, participants, session, &tweaks, leaf, data) {
                match leaf {
                    None => data.taproot_key_signature = signature,
                    Some(leaf) => {
                        data.taproot_script_signatures.insert((*script_key, leaf), signature);
                    }
                }
                continue;
            }
            if data.musig_partials.get(&session).is_none_or(BTreeMap::is_empty) {
                self.add_nonces(aggregate, participants, session, leaf, data);
            }
        }
        Some(())
    }

    fn add_participant_origins(
        &self,
        participants: &[CompressedKey],
        leaf: Option<[u8; 32]>,
        data: &mut SignatureData,
    ) {
        for participant in participants {
            let Some(origin) = self.keys.origin(&hash160(participant)) else { continue };
            let entry = data.taproot_origins.entry(x_only(participant));
            entry.or_insert_with(|| (BTreeSet::new(), origin.clone())).0.extend(leaf);
        }
    }

    /// Core's `CreateMuSig2AggregateSig`.
    fn aggregate(
        &self,
        aggregate: &CompressedKey,
        participants: &[CompressedKey],
        session: super::MusigSession,
        tweaks: &Tweaks,
        leaf: Option<[u8; 32]>,
        data: &mut SignatureData,
    ) -> Option<Vec<u8>> {
        let nonces = data.musig_nonces.get(&session).filter(|nonces| nonces.len() == participants.len())?;
        let partials = data.musig_partials.get(&session).filter(|partials| partials.len() == participants.len())?;
        let (digest, hash_type) = self.taproot_digest(leaf)?;
        let (keys, cache) = data.musig_memo.cache(aggregate, participants)?;
        let mut cache = *cache;
        let (mut public_nonces, mut signatures) = (Vec::new(), Vec::new());
        for participant in participants {
            public_nonces.push(PublicNonce::from_byte_array(nonces.get(participant)?).ok()?);
            signatures.push(PartialSignature::from_byte_array(partials.get(participant)?).ok()?);
        }
        for (tweak, is_x_only) in tweaks {
            let tweak = Scalar::from_be_bytes(*tweak).ok()?;
            match is_x_only {
                true => cache.pubkey_xonly_tweak_add(&tweak).ok()?,
                false => cache.pubkey_ec_tweak_add(&tweak).ok()?,
            };
        }
        let nonce = AggregatedNonce::new(&public_nonces.iter().collect::<Vec<_>>());
        let signing = Session::new(&cache, nonce, &digest);
        let all_hold = keys.iter().zip(&public_nonces).zip(&signatures);
        let all_hold = all_hold
            .into_iter()
            .all(|((key, nonce), signature)| signing.partial_verify(&cache, signature, nonce, *key));
        let signature = signing.partial_sig_agg(&signatures.iter().collect::<Vec<_>>()).assume_valid();
        all_hold.then(|| with_hash_type(signature.to_byte_array(), hash_type))
    }

    /// Core's `CreateMuSig2Nonce` for each participant without a nonce.
    fn add_nonces(
        &self,
        aggregate: &CompressedKey,
        participants: &[CompressedKey],
        session: super::MusigSession,
        leaf: Option<[u8; 32]>,
        data: &mut SignatureData,
    ) {
        let Some((digest, _)) = self.taproot_digest(leaf) else { return };
        for participant in participants {
            let is_known = data.musig_nonces.get(&session).is_some_and(|nonces| nonces.contains_key(participant));
            if is_known {
                continue;
            }
            let Some(private) = self.keys.private_key(&hash160(participant)) else { continue };
            let Some((_, cache)) = data.musig_memo.cache(aggregate, participants) else { return };
            let (Some(entropy), Ok(public)) = (self.keys.entropy(), PublicKey::from_slice(participant)) else {
                continue;
            };
            let random = SessionSecretRand::assume_uniformly_random(entropy);
            let (mut secret, nonce) =
                new_nonce_pair(random, Some(cache), Some(*private.secret()), public, Some(&digest), None);
            secret.non_secure_erase();
            data.musig_nonces.entry(session).or_default().insert(*participant, nonce.serialize());
        }
    }
}

/// The participants as points, and their aggregate, if it is the expected one.
fn key_cache(aggregate: &CompressedKey, participants: &[CompressedKey]) -> Option<(Vec<PublicKey>, KeyAggCache)> {
    let keys: Vec<PublicKey> = participants.iter().map(|key| PublicKey::from_slice(key).ok()).collect::<Option<_>>()?;
    if keys.is_empty() {
        return None;
    }
    let cache = KeyAggCache::new(&keys.iter().collect::<Vec<_>>());
    (cache.agg_pk_full().serialize() == *aggregate).then_some((keys, cache))
}

/// The aggregate keys from which the key of a script may be derived, in their order.
fn candidates(
    all: &MusigParticipants,
    script_key: &[u8; 32],
    origin: &KeyOrigin,
    data: &mut SignatureData,
) -> BTreeSet<CompressedKey> {
    let of_parity = |parity: u8| {
        let mut key = [parity; 33];
        key[1..].copy_from_slice(script_key);
        key
    };
    let mut found: BTreeSet<CompressedKey> = [2, 3].map(of_parity).into();
    if !origin.path.is_empty() {
        let fingerprints = data.musig_memo.fingerprints.get_or_insert_with(|| by_fingerprint(all));
        found.extend(fingerprints.get(&origin.fingerprint).into_iter().flatten());
    }
    found
}

fn by_fingerprint(all: &MusigParticipants) -> BTreeMap<[u8; 4], Vec<CompressedKey>> {
    let mut found: BTreeMap<[u8; 4], Vec<CompressedKey>> = BTreeMap::new();
    for aggregate in all.keys() {
        let [a, b, c, d, ..] = hash160(aggregate);
        found.entry([a, b, c, d]).or_default().push(*aggregate);
    }
    found
}

/// The key of a script as derived from an aggregate key, with the tweaks of the way; an inner `None` if it is not.
fn derive(
    aggregate: &CompressedKey,
    script_key: &[u8; 32],
    origin: &KeyOrigin,
) -> Option<Option<(CompressedKey, Tweaks)>> {
    if x_only(aggregate) == *script_key {
        return Some(Some((*aggregate, Vec::new())));
    }
    let hash = hash160(aggregate);
    if origin.path.is_empty() || !hash.starts_with(&origin.fingerprint) {
        return Some(None);
    }
    let (mut key, mut chain_code, mut tweaks) = (PublicKey::from_slice(aggregate).ok()?, CHAIN_CODE, Vec::new());
    for (depth, step) in origin.path.iter().enumerate() {
        if step & HARDENED != 0 || depth >= AGGREGATE_STEPS_MAX {
            return None;
        }
        let bytes = hmac_sha512(&chain_code, &[&key.serialize()[..], &step.to_be_bytes()]);
        let (tweak, rest) = bytes.split_first_chunk::<32>()?;
        chain_code.copy_from_slice(rest);
        key = key.add_exp_tweak(&Scalar::from_be_bytes(*tweak).ok()?).ok()?;
        tweaks.push((*tweak, false));
    }
    let key = key.serialize();
    // Core stops the program here; an origin that does not lead to the key only means that it is another's.
    Some((x_only(&key) == *script_key).then_some((key, tweaks)))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// limit: AGGREGATE_STEPS_MAX at
    /// limit: AGGREGATE_STEPS_MAX above
    ///
    /// Regression: the path that a PSBT names was followed to its end, which took minutes for one of 30 MB.
    #[test]
    fn a_path_from_an_aggregate_key_has_an_end() {
        let generator = "0279be667ef9dcbbac55a06295ce870b07029bfcdb2dce28d959f2815b16f81798";
        let aggregate: CompressedKey = lydian_primitives::hex(generator).unwrap().try_into().unwrap();
        let [a, b, c, d, ..] = hash160(&aggregate);
        let origin = |steps| KeyOrigin { fingerprint: [a, b, c, d], path: vec![1; steps] };
        assert_eq!(derive(&aggregate, &[7; 32], &origin(AGGREGATE_STEPS_MAX)), Some(None), "another's key");
        assert_eq!(derive(&aggregate, &[7; 32], &origin(AGGREGATE_STEPS_MAX + 1)), None);
        assert_eq!(derive(&aggregate, &[7; 32], &origin(7_000_000)), None);
        assert_eq!(derive(&aggregate, &x_only(&aggregate), &origin(7)), Some(Some((aggregate, Vec::new()))));
    }
}
