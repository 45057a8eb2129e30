//! Between a PSBT and its signer: Core's `FillSignatureData` and `FromSignatureData`.

use crate::types::{Input, Output};
use lydian_descriptor::{SignatureData, TaprootTree};
use lydian_hash::hash160;
use std::collections::BTreeMap;

/// Adds the entries whose keys are new.
fn add<K: Ord, V>(map: &mut BTreeMap<K, V>, entries: impl IntoIterator<Item = (K, V)>) {
    for (key, value) in entries {
        map.entry(key).or_insert(value);
    }
}

impl Input {
    /// What the input knows, for its signer. One that is final is complete, and nothing else is known about it.
    pub(crate) fn signature_data(&self) -> SignatureData {
        let mut data = SignatureData::default();
        if self.is_signed() {
            data.script_sig.clone_from(&self.final_script_sig);
            data.witness.clone_from(&self.final_witness);
            data.is_complete = true;
            return data;
        }
        data.signatures.clone_from(&self.signatures);
        data.redeem_script.clone_from(&self.redeem_script);
        data.witness_script.clone_from(&self.witness_script);
        let origins = self.origins.iter();
        data.origins = origins.map(|(key, origin)| (hash160(key), (key.clone(), origin.clone()))).collect();
        data.taproot_key_signature.clone_from(&self.taproot_key_signature);
        data.taproot_script_signatures.clone_from(&self.taproot_script_signatures);
        data.taproot.internal_key = self.internal_key;
        data.taproot.merkle_root = self.merkle_root;
        data.taproot.scripts.clone_from(&self.leaf_scripts);
        data.taproot_origins.clone_from(&self.taproot_origins);
        data.x_only_keys = self.taproot_origins.keys().map(|key| (hash160(key), *key)).collect();
        data.preimages.clone_from(&self.preimages);
        data.musig_participants.clone_from(&self.musig_participants);
        data.musig_nonces.clone_from(&self.musig_nonces);
        data.musig_partials.clone_from(&self.musig_partials);
        data
    }

    /// Takes over what the signer found.
    pub(crate) fn take_signature_data(&mut self, data: SignatureData) {
        if data.is_complete {
            self.signatures.clear();
            self.origins.clear();
            self.redeem_script.clear();
            self.witness_script.clear();
            if !data.script_sig.is_empty() {
                self.final_script_sig = data.script_sig;
            }
            if !data.witness.is_empty() {
                self.final_witness = data.witness;
            }
            return;
        }
        add(&mut self.signatures, data.signatures);
        if self.redeem_script.is_empty() {
            self.redeem_script = data.redeem_script;
        }
        if self.witness_script.is_empty() {
            self.witness_script = data.witness_script;
        }
        add(&mut self.origins, data.origins.into_values());
        if !data.taproot_key_signature.is_empty() {
            self.taproot_key_signature = data.taproot_key_signature;
        }
        add(&mut self.taproot_script_signatures, data.taproot_script_signatures);
        self.internal_key = data.taproot.internal_key.or(self.internal_key);
        self.merkle_root = data.taproot.merkle_root.or(self.merkle_root);
        add(&mut self.leaf_scripts, data.taproot.scripts);
        add(&mut self.taproot_origins, data.taproot_origins);
        add(&mut self.musig_participants, data.musig_participants);
        for (session, nonces) in data.musig_nonces {
            add(self.musig_nonces.entry(session).or_default(), nonces);
        }
        for (session, partials) in data.musig_partials {
            add(self.musig_partials.entry(session).or_default(), partials);
        }
        self.preimages.merge(data.preimages);
    }
}

impl Output {
    /// What the output knows, for its signer.
    pub(crate) fn signature_data(&self) -> SignatureData {
        let mut data = SignatureData {
            redeem_script: self.redeem_script.clone(),
            witness_script: self.witness_script.clone(),
            taproot_origins: self.taproot_origins.clone(),
            musig_participants: self.musig_participants.clone(),
            ..SignatureData::default()
        };
        let origins = self.origins.iter();
        data.origins = origins.map(|(key, origin)| (hash160(key), (key.clone(), origin.clone()))).collect();
        data.x_only_keys = self.taproot_origins.keys().map(|key| (hash160(key), *key)).collect();
        let tree = self.internal_key.filter(|_| !self.taproot_tree.is_empty());
        if let Some(tree) = tree.and_then(|key| TaprootTree::without_control_blocks(key, self.taproot_tree.clone())) {
            data.taproot.merge(tree.spend());
            data.tree = Some(tree);
        }
        data
    }

    /// Takes over what the signer found.
    pub(crate) fn take_signature_data(&mut self, data: SignatureData) {
        if self.redeem_script.is_empty() {
            self.redeem_script = data.redeem_script;
        }
        if self.witness_script.is_empty() {
            self.witness_script = data.witness_script;
        }
        add(&mut self.origins, data.origins.into_values());
        self.internal_key = data.taproot.internal_key.or(self.internal_key);
        if let Some(tree) = data.tree.filter(|tree| !tree.leaves().is_empty()) {
            self.taproot_tree = tree.leaves().to_vec();
        }
        add(&mut self.taproot_origins, data.taproot_origins);
        add(&mut self.musig_participants, data.musig_participants);
    }
}
