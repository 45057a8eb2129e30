//! Keys that are aggregated from others: `musig(KEY,KEY,...)/path` (BIP-0390).
//!
//! Input: the text of the expression. Output: [`Musig`], or several for a multipath expression; from it, its text
//! without private keys, and the aggregate key at a position. Core's `MuSigPubkeyProvider` (script/descriptor.cpp).
//!
//! Participants are sorted and aggregated by BIP-0327. A path after the bracket starts at the extended key that
//! BIP-0328 makes of the aggregate key. Invariants: if there is such a path, no participant has a wildcard; either
//! the participants or the path have alternatives, never both; no step of the path is hardened. Cost: one
//! multiplication on the curve per participant, once for all positions unless a participant has a wildcard.

use super::bip32::{Extended, HARDENED};
use super::error::KeyError;
use super::key::{Derived, Key, Last, Path, Secrets, parse_path, take_wildcard};
use super::parse::{Place, expression, function, same_length, take};
use lydian_consensus::Chain;
use secp256k1::PublicKey;
use secp256k1::musig::KeyAggCache;
use std::sync::OnceLock;

#[derive(Clone, Debug)]
pub(crate) struct Musig {
    participants: Vec<Key>,
    steps: Vec<u32>,
    is_star: bool,
    /// The aggregate key of participants without a wildcard.
    fixed: OnceLock<Aggregate>,
}

#[derive(Clone, Debug)]
enum Aggregate {
    /// Used as it is.
    Plain([u8; 33]),
    /// The start of a path.
    Extended(Box<Path>),
}

impl Aggregate {
    fn derive(&self, position: u32) -> Option<Derived> {
        match self {
            Aggregate::Plain(key) => Some(Derived::of_plain(key)),
            // No step is hardened.
            Aggregate::Extended(path) => path.derive(position, &Secrets::default()),
        }
    }
}

impl Musig {
    /// Parses a text that starts with `musig(`: the first part of Core's `ParsePubkey`.
    pub(super) fn parse(text: &str, place: Place, chain: Chain, secrets: &mut Secrets) -> Result<Vec<Musig>, KeyError> {
        if place != Place::Tr {
            return Err(KeyError::MusigPlace);
        }
        // Each part but the last ends with its bracket.
        let parts: Vec<&str> = text.split_inclusive(')').collect();
        let (call, path) = match parts[..] {
            [call] => (call, ""),
            [call, path] if !path.ends_with(')') => (call, path),
            _ => return Err(KeyError::MusigBrackets),
        };
        let inner = function("musig", call).ok_or(KeyError::MusigInvalid)?;
        let participants = parse_participants(inner, chain, secrets)?;
        // Core ignores text after the bracket that does not start with a slash.
        let (paths, is_star) = match path.strip_prefix('/') {
            Some(path) => parse_derivation(path, &participants)?,
            None => (vec![Vec::new()], false),
        };
        let alternatives = participants.iter().map(Vec::len).max().unwrap_or(1);
        if alternatives > 1 && paths.len() > 1 {
            return Err(KeyError::MusigMultipath);
        }
        let count = alternatives.max(paths.len());
        let columns = same_length(participants, count).ok_or(KeyError::MusigMultipathLengths)?;
        let paths = paths.iter().cycle();
        let musig = |(participants, steps): (Vec<Key>, &Vec<u32>)| Musig {
            participants,
            steps: steps.clone(),
            is_star,
            fixed: OnceLock::new(),
        };
        Ok(columns.into_iter().zip(paths).map(musig).collect())
    }

    pub(crate) fn participants(&self) -> &[Key] {
        &self.participants
    }

    pub(super) fn is_range(&self) -> bool {
        self.is_star || self.has_ranged_participants()
    }

    fn has_ranged_participants(&self) -> bool {
        self.participants.iter().any(Key::is_range)
    }

    /// Core's `ToString`: without private keys.
    pub(super) fn text(&self, chain: Chain) -> String {
        let keys: Vec<String> = self.participants.iter().map(|key| key.text(chain)).collect();
        let steps: String = self.steps.iter().map(|step| format!("/{step}")).collect();
        format!("musig({}){steps}{}", keys.join(","), if self.is_star { "/*" } else { "" })
    }

    /// The aggregate key at a position; `None` if a private key of a participant is missing.
    pub(super) fn derive(&self, position: u32, secrets: &Secrets) -> Option<Derived> {
        if self.has_ranged_participants() {
            return Some(Derived::of_plain(&self.aggregate(position, secrets)?));
        }
        if let Some(fixed) = self.fixed.get() {
            return fixed.derive(position);
        }
        // A failure is not kept: another call may have the private keys.
        let key = self.aggregate(0, secrets)?;
        let last = if self.is_star { Last::Star } else { Last::None };
        let fixed = match self.steps.is_empty() && !self.is_star {
            true => Aggregate::Plain(key),
            false => {
                Aggregate::Extended(Box::new(Path::new(Extended::of_aggregate(key), self.steps.clone(), last, false)))
            }
        };
        self.fixed.get_or_init(|| fixed).derive(position)
    }

    /// The aggregate of the sorted participants.
    fn aggregate(&self, position: u32, secrets: &Secrets) -> Option<[u8; 33]> {
        let keys = self.participants.iter().map(|key| Some(key.derive(position, secrets)?.key));
        let mut keys: Vec<Vec<u8>> = keys.collect::<Option<_>>()?;
        keys.sort_unstable();
        aggregate(&keys)
    }
}

/// The aggregate of keys in this order: Core's `MuSig2AggregatePubkeys`. `None` if there are none.
pub(crate) fn aggregate(keys: &[Vec<u8>]) -> Option<[u8; 33]> {
    let keys: Vec<PublicKey> = keys.iter().map(|key| PublicKey::from_slice(key).ok()).collect::<Option<_>>()?;
    let keys: Vec<&PublicKey> = keys.iter().collect();
    // The library panics if there are no keys.
    (!keys.is_empty()).then(|| KeyAggCache::new(&keys).agg_pk_full().serialize())
}

/// Parses the keys in the brackets, each with its alternatives. There is at least one.
fn parse_participants(inner: &str, chain: Chain, secrets: &mut Secrets) -> Result<Vec<Vec<Key>>, KeyError> {
    let within = |error| KeyError::Musig(Box::new(error));
    let mut rest = inner;
    let mut participants: Vec<Vec<Key>> = Vec::new();
    while let Some(found) = rest.chars().next() {
        if !participants.is_empty() && !take(&mut rest, ',') {
            return Err(KeyError::MusigComma(found));
        }
        let text = expression(&mut rest);
        participants.push(Key::parse(text, Place::Musig, chain, secrets).map_err(within)?);
    }
    if participants.is_empty() { Err(KeyError::MusigEmpty) } else { Ok(participants) }
}

/// Parses the path after the bracket and its slash: its alternatives, and whether it ends with a wildcard.
fn parse_derivation(text: &str, participants: &[Vec<Key>]) -> Result<(Vec<Vec<u32>>, bool), KeyError> {
    let mut firsts = participants.iter().filter_map(|alternatives| alternatives.first());
    if !firsts.clone().all(Key::is_extended) {
        return Err(KeyError::MusigNotExtended);
    }
    if firsts.any(Key::is_range) {
        return Err(KeyError::MusigRanged);
    }
    let mut parts: Vec<&str> = text.split('/').collect();
    let mut ignored = false;
    let last = take_wildcard(&mut parts, &mut ignored);
    if last == Last::HardenedStar {
        return Err(KeyError::MusigHardenedStar);
    }
    let paths = parse_path(&parts, true, &mut ignored).map_err(|error| KeyError::Musig(Box::new(error)))?;
    match paths.iter().flatten().any(|step| step & HARDENED != 0) {
        true => Err(KeyError::MusigHardenedStep),
        false => Ok((paths, last == Last::Star)),
    }
}
