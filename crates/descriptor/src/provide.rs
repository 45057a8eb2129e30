//! What a descriptor knows about its outputs, for signing: Core's `Expand` and `ExpandPrivate` into a
//! `FlatSigningProvider`.
//!
//! Input: a descriptor and a position. Output: scripts, script trees, public keys with their origins, and private keys,
//! in a [`Keystore`].

use crate::expression::{Descriptors, Key, Multi, Musig, Node, Secrets, TAPSCRIPT, aggregate};
use crate::sign::{KeyOrigin, Keystore, PrivateKey, TaprootTree};
use lydian_hash::hash160;
use lydian_script::builder::scripts;
use std::collections::BTreeMap;

impl Descriptors {
    /// Adds the private keys that the text contains, so that keys can be derived from them. Descriptors that are added
    /// later may use them as well.
    pub fn add_secrets_to(&self, keys: &mut Keystore) {
        keys.add_roots(self.secrets());
    }

    /// Adds what one descriptor knows at a position. `None` if a private key is missing.
    pub fn add_to(&self, index: usize, position: u32, has_private: bool, keys: &mut Keystore) -> Option<()> {
        let roots = keys.take_roots();
        let node = self.node(index);
        let added = node.and_then(|node| Provider { position, has_private, roots: &roots, keys }.add(node));
        keys.put_roots(roots);
        added
    }
}

struct Provider<'k> {
    position: u32,
    has_private: bool,
    roots: &'k Secrets,
    keys: &'k mut Keystore,
}

impl Provider<'_> {
    fn add(&mut self, node: &Node) -> Option<()> {
        match node {
            Node::Pk { key, .. } | Node::Pkh(key) | Node::Wpkh(key) | Node::RawTr(key) | Node::Unused(key) => {
                self.add_key(key)?;
            }
            Node::Combo(key) => {
                let public = self.add_key(key)?;
                if public.len() == 33 {
                    self.keys.add_script(scripts::witness_program(0, &hash160(&public)));
                }
            }
            Node::Multi(Multi { keys, .. }) => {
                self.add_keys(keys)?;
            }
            Node::Miniscript { keys, is_leaf, .. } => {
                // A leaf has hashes of x alone.
                for public in self.add_keys(keys)?.into_iter().filter(|_| *is_leaf) {
                    self.keys.add_public_key(hash160(public.get(1..33)?), public);
                }
            }
            Node::Sh(inner) | Node::Wsh(inner) => {
                self.add(inner)?;
                let (script, _) = inner.single(self.position, self.roots)?;
                self.keys.add_script(script);
            }
            Node::Tr { key, leaves } => {
                let internal_key = self.add_key(key)?;
                let mut tree = Vec::with_capacity(leaves.len());
                for (depth, leaf) in leaves {
                    self.add(leaf)?;
                    let (script, _) = leaf.single(self.position, self.roots)?;
                    tree.push((u8::try_from(*depth).ok()?, TAPSCRIPT, script));
                }
                let x_only = internal_key.get(1..33)?.try_into().ok()?;
                self.keys.add_tree(TaprootTree::new(x_only, tree)?);
            }
            Node::Addr(_) | Node::Raw(_) => {}
        }
        Some(())
    }

    fn add_key(&mut self, key: &Key) -> Option<Vec<u8>> {
        self.add_keys(std::slice::from_ref(key))?.pop()
    }

    /// What the participants know, and which aggregate key they make: from Core's `MuSigPubkeyProvider::GetPubKey`.
    fn add_participants(&mut self, musig: &Musig) -> Option<()> {
        let mut keys = self.add_keys(musig.participants())?;
        keys.sort_unstable();
        let participants = keys.iter().map(|key| key.as_slice().try_into().ok()).collect::<Option<_>>()?;
        self.keys.add_participants(aggregate(&keys)?, participants);
        Some(())
    }

    /// Returns the public keys. If one occurs twice in an expression, all its origins are put together, as in Core.
    fn add_keys(&mut self, keys: &[Key]) -> Option<Vec<Vec<u8>>> {
        let mut all = Vec::with_capacity(keys.len());
        let mut origins: BTreeMap<[u8; 20], KeyOrigin> = BTreeMap::new();
        for key in keys {
            if let Some(musig) = key.as_musig() {
                self.add_participants(musig)?;
            }
            let derived = key.derive_from_root(self.position, self.roots)?;
            let hash = hash160(&derived.key);
            let base = KeyOrigin { fingerprint: derived.fingerprint, path: derived.path };
            let origin = origins.entry(hash).or_insert(base);
            key.add_origin(&mut origin.fingerprint, &mut origin.path);
            self.keys.add_public_key(hash, derived.key.clone());
            all.push(derived.key);
            if self.has_private
                && let Some((secret, is_compressed)) = key.derive_secret(self.position, self.roots)
            {
                self.keys.add_key(PrivateKey::new(secret, is_compressed));
            }
        }
        origins.into_iter().for_each(|(hash, origin)| self.keys.add_origin(hash, origin));
        Some(all)
    }
}
