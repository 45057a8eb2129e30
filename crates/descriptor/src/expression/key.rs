//! One key of a descriptor.
//!
//! Input: its text. Output: [`Key`], or several for a multipath key; from a key, its text without private keys, and the
//! public key at a position with its origin. Core's `PubkeyProvider` (script/descriptor.cpp).

use super::bip32::{Extended, HARDENED, decode_secret, fingerprint};
use super::error::KeyError;
use super::musig::Musig;
use super::parse::{Place, number};
use lydian_consensus::Chain;
use lydian_hash::hash160;
use lydian_primitives::{hex, to_hex};
use lydian_script::uncompressed_key;
use secp256k1::{PublicKey, SecretKey};
use std::collections::BTreeMap;
use std::fmt;
use std::sync::OnceLock;

/// Private keys of a descriptor by the hashes of their public keys. They are overwritten when they are dropped and are
/// not in `Debug`.
#[derive(Default)]
pub(crate) struct Secrets {
    /// In boxes: a map that moves its entries leaves no copies.
    keys: BTreeMap<[u8; 20], Box<SecretKey>>,
}

impl Secrets {
    pub(super) fn insert(&mut self, public: &[u8], secret: SecretKey) {
        self.keys.entry(hash160(public)).or_insert_with(|| Box::new(secret));
    }

    /// The private key of a public key.
    fn get(&self, public: &[u8]) -> Option<&SecretKey> {
        self.keys.get(&hash160(public)).map(Box::as_ref)
    }

    /// Adds those of another descriptor.
    pub(crate) fn add(&mut self, others: &Secrets) {
        for (hash, secret) in &others.keys {
            self.keys.entry(*hash).or_insert_with(|| secret.clone());
        }
    }

    pub(super) fn is_empty(&self) -> bool {
        self.keys.is_empty()
    }
}

impl Drop for Secrets {
    fn drop(&mut self) {
        self.keys.values_mut().for_each(|key| key.non_secure_erase());
    }
}

impl fmt::Debug for Secrets {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Secrets").finish_non_exhaustive()
    }
}

#[derive(Clone, Debug)]
pub(crate) struct Key {
    origin: Option<Origin>,
    source: Source,
}

/// The origin of an extended key, as given in the descriptor.
#[derive(Clone, Debug)]
struct Origin {
    fingerprint: [u8; 4],
    path: Vec<u32>,
    /// Whether hardened steps are marked with `'` instead of `h`.
    is_apostrophe: bool,
}

#[derive(Clone, Debug)]
enum Source {
    Plain { key: Vec<u8>, is_x_only: bool },
    Extended(Box<Path>),
    Musig(Box<Musig>),
}

/// A derivation path from an extended key.
#[derive(Clone, Debug)]
pub(super) struct Path {
    root: Extended,
    steps: Vec<u32>,
    last: Last,
    is_apostrophe: bool,
    /// The key after the steps, if they need no private key; computed once for all positions.
    parent: OnceLock<Option<Extended>>,
}

/// The wildcard at the end of a path.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Last {
    None,
    Star,
    HardenedStar,
}

/// The public key at a position.
#[derive(Clone, Debug)]
pub(crate) struct Derived {
    pub(crate) key: Vec<u8>,
    pub(crate) fingerprint: [u8; 4],
    pub(crate) path: Vec<u32>,
}

impl Derived {
    /// A key that is derived from no other.
    pub(super) fn of_plain(key: &[u8]) -> Derived {
        Derived { key: key.to_vec(), fingerprint: fingerprint(key), path: Vec::new() }
    }

    pub(super) fn x_only(&self) -> &[u8] {
        &self.key[1..33]
    }

    /// The text in the format of Core's `InferDescriptor`.
    pub(super) fn text(&self) -> String {
        format!("{}{}", self.origin_text(), to_hex(&self.key))
    }

    pub(super) fn x_only_text(&self) -> String {
        format!("{}{}", self.origin_text(), to_hex(self.x_only()))
    }

    fn origin_text(&self) -> String {
        format!("[{}{}]", to_hex(&self.fingerprint), path_text(&self.path, false))
    }
}

impl Key {
    /// Parses a key with its origin: Core's `ParsePubkey`.
    pub(super) fn parse(text: &str, place: Place, chain: Chain, secrets: &mut Secrets) -> Result<Vec<Key>, KeyError> {
        if text.starts_with("musig(") {
            let keys = Musig::parse(text, place, chain, secrets)?;
            return Ok(keys
                .into_iter()
                .map(|key| Key { origin: None, source: Source::Musig(Box::new(key)) })
                .collect());
        }
        let parts: Vec<&str> = text.split(']').collect();
        let (origin, text) = match parts[..] {
            [text] => (None, text),
            [origin, text] => (Some(origin), text),
            _ => return Err(KeyError::OriginEnd),
        };
        let mut is_apostrophe = false;
        let origin = origin.map(|origin| parse_origin(origin, &mut is_apostrophe)).transpose()?;
        let sources = Source::parse(text, place, chain, &mut is_apostrophe, secrets)?;
        let with_origin = |source| Key {
            origin: origin.clone().map(|(fingerprint, path)| Origin { fingerprint, path, is_apostrophe }),
            source,
        };
        Ok(sources.into_iter().map(with_origin).collect())
    }

    pub(super) fn is_range(&self) -> bool {
        match &self.source {
            Source::Plain { .. } => false,
            Source::Extended(path) => path.last != Last::None,
            Source::Musig(musig) => musig.is_range(),
        }
    }

    /// Whether it is an extended key, from which others can be derived.
    pub(super) fn is_extended(&self) -> bool {
        matches!(self.source, Source::Extended(_))
    }

    /// Size of the public key in bytes.
    pub(super) fn size(&self) -> usize {
        match &self.source {
            Source::Plain { key, .. } => key.len(),
            Source::Extended(_) => 33,
            // As in a leaf of tr(); nothing else contains one.
            Source::Musig(_) => 32,
        }
    }

    /// Core's `ToString`: without private keys.
    pub(super) fn text(&self, chain: Chain) -> String {
        let mut text = match &self.origin {
            Some(origin) => {
                format!("[{}{}]", to_hex(&origin.fingerprint), path_text(&origin.path, origin.is_apostrophe))
            }
            None => String::new(),
        };
        match &self.source {
            Source::Plain { key, is_x_only } => text += &to_hex(if *is_x_only { &key[1..] } else { key }),
            Source::Extended(path) => {
                text += &path.root.encode(chain);
                text += &path_text(&path.steps, path.is_apostrophe);
                text += match path.last {
                    Last::None => "",
                    Last::Star => "/*",
                    Last::HardenedStar if path.is_apostrophe => "/*'",
                    Last::HardenedStar => "/*h",
                };
            }
            Source::Musig(musig) => text += &musig.text(chain),
        }
        text
    }

    /// The public key at a position; `None` if a private key is missing.
    pub(super) fn derive(&self, position: u32, secrets: &Secrets) -> Option<Derived> {
        let mut derived = self.derive_from_root(position, secrets)?;
        self.add_origin(&mut derived.fingerprint, &mut derived.path);
        Some(derived)
    }

    /// Like [`Key::derive`], without the origin that the descriptor gives.
    pub(crate) fn derive_from_root(&self, position: u32, secrets: &Secrets) -> Option<Derived> {
        Some(match &self.source {
            Source::Plain { key, .. } => Derived::of_plain(key),
            Source::Extended(path) => path.derive(position, secrets)?,
            Source::Musig(musig) => musig.derive(position, secrets)?,
        })
    }

    /// Set if the key is aggregated from others.
    pub(crate) fn as_musig(&self) -> Option<&Musig> {
        match &self.source {
            Source::Musig(musig) => Some(musig),
            _ => None,
        }
    }

    /// Puts the origin that the descriptor gives in front of a path.
    pub(crate) fn add_origin(&self, fingerprint: &mut [u8; 4], path: &mut Vec<u32>) {
        if let Some(origin) = &self.origin {
            *fingerprint = origin.fingerprint;
            path.splice(..0, origin.path.iter().copied());
        }
    }

    /// The private key at a position, if it is known, and whether its public key is compressed.
    pub(crate) fn derive_secret(&self, position: u32, secrets: &Secrets) -> Option<(SecretKey, bool)> {
        match &self.source {
            Source::Plain { key, .. } => Some((*secrets.get(key)?, key.len() == 33)),
            Source::Extended(path) => Some((path.private(&path.steps_at(position), secrets)?.1, true)),
            // Its participants have private keys.
            Source::Musig(_) => None,
        }
    }
}

impl Path {
    pub(super) fn new(root: Extended, steps: Vec<u32>, last: Last, is_apostrophe: bool) -> Path {
        Path { root, steps, last, is_apostrophe, parent: OnceLock::new() }
    }

    pub(super) fn derive(&self, position: u32, secrets: &Secrets) -> Option<Derived> {
        let steps = self.steps_at(position);
        let key = match steps.iter().any(|step| step & HARDENED != 0) {
            true => {
                let (key, mut secret) = self.private(&steps, secrets)?;
                secret.non_secure_erase();
                key
            }
            false => {
                let walk = || self.steps.iter().try_fold(self.root.clone(), |key, step| key.child(*step));
                let parent = self.parent.get_or_init(walk).as_ref()?;
                if self.last == Last::Star { parent.child(position)? } else { parent.clone() }
            }
        };
        Some(Derived { key: key.key.to_vec(), fingerprint: self.root.fingerprint(), path: steps })
    }

    fn steps_at(&self, position: u32) -> Vec<u32> {
        let mut steps = self.steps.clone();
        match self.last {
            Last::None => {}
            Last::Star => steps.push(position),
            Last::HardenedStar => steps.push(position | HARDENED),
        }
        steps
    }

    /// The key after the steps, derived from the private key.
    fn private(&self, steps: &[u32], secrets: &Secrets) -> Option<(Extended, SecretKey)> {
        let (mut key, mut secret) = (self.root.clone(), *secrets.get(&self.root.key)?);
        for step in steps {
            let child = key.private_child(&secret, *step);
            secret.non_secure_erase();
            (key, secret) = child?;
        }
        Some((key, secret))
    }
}

impl Source {
    /// Core's `ParsePubkeyInner`.
    fn parse(
        text: &str,
        place: Place,
        chain: Chain,
        is_apostrophe: &mut bool,
        secrets: &mut Secrets,
    ) -> Result<Vec<Source>, KeyError> {
        let may_be_long = matches!(place, Place::Top | Place::Sh);
        let mut parts: Vec<&str> = text.split('/').collect();
        let name = parts[0];
        if name.is_empty() {
            return Err(KeyError::Missing);
        }
        if name.starts_with(is_space) || name.ends_with(is_space) {
            return Err(KeyError::Whitespace(name.to_owned()));
        }
        if parts.len() == 1 {
            if let Some(bytes) = is_hex(name).then(|| hex(name).ok()).flatten() {
                return plain(name, bytes, place, may_be_long);
            }
            if let Some((secret, is_compressed)) = decode_secret(name, chain) {
                if !is_compressed && !may_be_long {
                    return Err(KeyError::Uncompressed);
                }
                let key = PublicKey::from_secret_key(&secret);
                let key = if is_compressed { key.serialize().to_vec() } else { key.serialize_uncompressed().to_vec() };
                secrets.insert(&key, secret);
                return Ok(vec![Source::Plain { key, is_x_only: place == Place::Tr }]);
            }
        }
        let Some((root, secret)) = Extended::decode(name, chain) else {
            return Err(KeyError::Invalid(name.to_owned()));
        };
        let last = take_wildcard(&mut parts, is_apostrophe);
        let paths = parse_path(&parts[1..], true, is_apostrophe)?;
        if let Some(secret) = secret {
            secrets.insert(&root.key, secret);
        }
        let source = |steps| Source::Extended(Box::new(Path::new(root.clone(), steps, last, *is_apostrophe)));
        Ok(paths.into_iter().map(source).collect())
    }
}

/// Parses a public key in hex.
fn plain(text: &str, bytes: Vec<u8>, place: Place, may_be_long: bool) -> Result<Vec<Source>, KeyError> {
    if matches!((bytes.first(), bytes.len()), (Some(6 | 7), 65)) {
        return Err(KeyError::Hybrid);
    }
    if uncompressed_key(&bytes).is_some() {
        return match bytes.len() {
            65 if !may_be_long => Err(KeyError::Uncompressed),
            _ => Ok(vec![Source::Plain { key: bytes, is_x_only: false }]),
        };
    }
    if bytes.len() == 32 && place == Place::Tr {
        let key = [&[2][..], &bytes].concat();
        if uncompressed_key(&key).is_some() {
            return Ok(vec![Source::Plain { key, is_x_only: true }]);
        }
    }
    Err(KeyError::Pubkey(text.to_owned()))
}

fn parse_origin(text: &str, is_apostrophe: &mut bool) -> Result<([u8; 4], Vec<u32>), KeyError> {
    let Some(inner) = text.strip_prefix('[') else {
        return Err(KeyError::OriginStart(text.chars().next().unwrap_or(']')));
    };
    let parts: Vec<&str> = inner.split('/').collect();
    let name = parts[0];
    if name.len() != 8 {
        return Err(KeyError::FingerprintSize(name.len()));
    }
    let bytes = is_hex(name).then(|| hex(name).ok()).flatten();
    let fingerprint = bytes.and_then(|bytes| <[u8; 4]>::try_from(bytes).ok());
    let fingerprint = fingerprint.ok_or_else(|| KeyError::FingerprintNotHex(name.to_owned()))?;
    let mut paths = parse_path(&parts[1..], false, is_apostrophe)?;
    Ok((fingerprint, paths.swap_remove(0)))
}

/// Takes the wildcard from the end of a path: Core's `ParseDeriveType`.
pub(super) fn take_wildcard(parts: &mut Vec<&str>, is_apostrophe: &mut bool) -> Last {
    let last = match parts.last() {
        Some(&"*") => Last::Star,
        Some(&("*'" | "*h")) => Last::HardenedStar,
        _ => return Last::None,
    };
    let star = parts.pop();
    if last == Last::HardenedStar {
        *is_apostrophe = star == Some("*'");
    }
    last
}

/// Parses a path: one, or one for each alternative of `<a;b>`. Core's `ParseKeyPath`.
pub(super) fn parse_path(
    parts: &[&str],
    may_branch: bool,
    is_apostrophe: &mut bool,
) -> Result<Vec<Vec<u32>>, KeyError> {
    let mut path = Vec::new();
    let mut branches: Option<(usize, Vec<u32>)> = None;
    for part in parts {
        let inner = match part.strip_prefix('<') {
            // A single character cannot be both the opening and the closing bracket.
            Some(rest) if part.ends_with('>') => rest.strip_suffix('>'),
            _ => None,
        };
        let Some(inner) = inner else {
            path.push(parse_step(part, is_apostrophe)?);
            continue;
        };
        if !may_branch {
            return Err(KeyError::MultipathPlace((*part).to_owned()));
        }
        if branches.is_some() {
            return Err(KeyError::MultipathRepeated);
        }
        let words: Vec<&str> = inner.split(';').collect();
        if words.len() < 2 {
            return Err(KeyError::MultipathSingle);
        }
        let mut values = Vec::new();
        for word in words {
            let step = parse_step(word, is_apostrophe)?;
            if values.contains(&step) {
                return Err(KeyError::MultipathDuplicate(step));
            }
            values.push(step);
        }
        branches = Some((path.len(), values));
        path.push(0);
    }
    let Some((place, values)) = branches else { return Ok(vec![path]) };
    let with = |value| {
        let mut path = path.clone();
        path[place] = value;
        path
    };
    Ok(values.into_iter().map(with).collect())
}

fn parse_step(text: &str, is_apostrophe: &mut bool) -> Result<u32, KeyError> {
    let (digits, hardened) = match text.strip_suffix(['\'', 'h']) {
        Some(digits) => {
            *is_apostrophe = text.ends_with('\'');
            (digits, HARDENED)
        }
        None => (text, 0),
    };
    match number(digits) {
        None => Err(KeyError::StepNotNumber(digits.to_owned())),
        Some(step) if step >= HARDENED => Err(KeyError::StepRange(step)),
        Some(step) => Ok(step | hardened),
    }
}

fn path_text(path: &[u32], is_apostrophe: bool) -> String {
    let mark = |step: u32| match step & HARDENED {
        0 => "",
        _ if is_apostrophe => "'",
        _ => "h",
    };
    path.iter().map(|step| format!("/{}{}", step & !HARDENED, mark(*step))).collect()
}

pub(super) fn is_hex(text: &str) -> bool {
    !text.is_empty() && text.len().is_multiple_of(2) && text.bytes().all(|byte| byte.is_ascii_hexdigit())
}

/// White space as in C's `isspace` in the C locale.
fn is_space(letter: char) -> bool {
    matches!(letter, ' ' | '\t' | '\n' | '\r' | '\u{b}' | '\u{c}')
}
