//! `decodepsbt`: a PSBT as JSON.
//!
//! Input: a PSBT. Output: Core's fields in Core's order (rpc/rawtransaction.cpp). The answer borrows the PSBT and is
//! written directly as text.

use crate::json::Amount as JsonAmount;
use crate::output::{Asm, Hex, PlainTransaction, ScriptAnswer};
use crate::result::{Answer, Form, Map, result, write_array};
use lydian_consensus::Chain;
use lydian_descriptor::{KeyOrigin, MusigParticipants, encode_base58_check, solve};
use lydian_primitives::{Amount, Transaction, Txid, to_hex};
use lydian_psbt::{Input, Output, Proprietary, Psbt, TaprootOrigins};
use std::collections::BTreeMap;

/// A PSBT that is shown.
#[derive(Debug)]
pub(super) struct DecodedPsbt {
    psbt: Psbt,
    /// Of version 0.
    tx: Option<Transaction>,
    chain: Chain,
}

impl DecodedPsbt {
    pub(super) fn new(psbt: Psbt, chain: Chain) -> DecodedPsbt {
        let tx = psbt.unsigned_tx().filter(|_| psbt.version < 2);
        let tx = tx.and_then(|tx| Transaction::parse_without_witness(tx.encode_stripped()).ok());
        DecodedPsbt { psbt, tx, chain }
    }
}

impl Answer for DecodedPsbt {
    const FORM: Form = PsbtAnswer::FORM;

    fn write(&self, out: &mut Vec<u8>) {
        let DecodedPsbt { psbt, tx, chain } = self;
        let of_version_2 = psbt.version >= 2;
        let xpubs = psbt.xpubs.iter().flat_map(|(origin, xpubs)| xpubs.iter().map(move |xpub| (origin, xpub)));
        let answer = PsbtAnswer {
            tx: tx.as_ref().map(|tx| PlainTransaction { tx: tx.view(), chain: *chain }),
            global_xpubs: xpubs.map(|(origin, xpub)| XpubAnswer::new(&xpub.0, origin)).collect(),
            tx_version: of_version_2.then_some(psbt.tx_version),
            fallback_locktime: psbt.fallback_lock_time.filter(|_| of_version_2),
            input_count: of_version_2.then_some(psbt.inputs.len()),
            output_count: of_version_2.then_some(psbt.outputs.len()),
            inputs_modifiable: psbt.are_inputs_modifiable(),
            outputs_modifiable: psbt.are_outputs_modifiable(),
            has_sighash_single: psbt.has_sighash_single(),
            psbt_version: psbt.version,
            proprietary: proprietary(&psbt.proprietary),
            unknown: hex_map(&psbt.unknown),
            inputs: Inputs { psbt, chain: *chain },
            outputs: Outputs { psbt, chain: *chain },
            fee: fee(psbt).map(|fee| JsonAmount(fee.0)),
        };
        answer.write(out);
    }
}

/// What the inputs have more than the outputs, if all amounts are known and none is out of range.
fn fee(psbt: &Psbt) -> Option<Amount> {
    let add = |sum: Amount, value: Amount| {
        let sum = value.is_in_money_range().then(|| Amount(sum.0 + value.0));
        sum.filter(|sum| sum.is_in_money_range())
    };
    let total_in = psbt.inputs.iter().try_fold(Amount(0), |sum, input| add(sum, input.utxo()?.value))?;
    let total_out = psbt.outputs.iter().try_fold(Amount(0), |sum, output| add(sum, output.amount))?;
    Some(Amount(total_in.0 - total_out.0))
}

result! {
    /// The answer of `decodepsbt`.
    struct PsbtAnswer<'a> {
        /// the unsigned transaction, as decoderawtransaction shows it (only in version 0)
        tx: Option<PlainTransaction<'a>>,
        global_xpubs: Vec<XpubAnswer>,
        /// the version number of the unsigned transaction; not the PSBT version
        tx_version: Option<u32>,
        /// the lock time if no input requires one
        fallback_locktime: Option<u32>,
        /// the number of inputs
        input_count: Option<usize>,
        /// the number of outputs
        output_count: Option<usize>,
        /// whether inputs can be modified
        inputs_modifiable: Option<bool>,
        /// whether outputs can be modified
        outputs_modifiable: Option<bool>,
        /// whether the PSBT has inputs signed with SIGHASH_SINGLE
        has_sighash_single: Option<bool>,
        /// the PSBT version number; not the version of the unsigned transaction
        psbt_version: u32,
        /// the global proprietary map
        proprietary: Vec<ProprietaryAnswer<'a>>,
        /// the unknown global fields
        #[each(key "key" "the value of an unknown key")]
        unknown: Map<String, Hex<&'a [u8]>>,
        inputs: Inputs<'a>,
        outputs: Outputs<'a>,
        /// the transaction fee, if the amounts of all inputs are known
        fee: Option<JsonAmount>,
    }
}

result! {
    struct XpubAnswer {
        /// the extended public key
        xpub: String,
        /// the fingerprint of the master key
        master_fingerprint: Hex<[u8; 4]>,
        /// the path
        path: String,
    }
}

impl XpubAnswer {
    fn new(xpub: &[u8; 78], origin: &KeyOrigin) -> XpubAnswer {
        let xpub = encode_base58_check(xpub.to_vec());
        XpubAnswer { xpub, master_fingerprint: Hex(origin.fingerprint), path: path_text(origin) }
    }
}

/// Core's `WriteHDKeypath`.
fn path_text(origin: &KeyOrigin) -> String {
    const HARDENED: u32 = 1 << 31;
    let step = |step: &u32| format!("/{}{}", step & !HARDENED, if step & HARDENED == 0 { "" } else { "h" });
    let steps: String = origin.path.iter().map(step).collect();
    format!("m{steps}")
}

result! {
    struct ProprietaryAnswer<'a> {
        /// the proprietary identifier
        identifier: Hex<&'a [u8]>,
        /// the subtype
        subtype: u64,
        /// the whole key
        key: Hex<&'a [u8]>,
        /// the value
        value: Hex<&'a [u8]>,
    }
}

fn proprietary(fields: &BTreeMap<Vec<u8>, Proprietary>) -> Vec<ProprietaryAnswer<'_>> {
    let mut all = Vec::with_capacity(fields.len());
    for (key, field) in fields {
        let (identifier, value) = (Hex(&field.identifier[..]), Hex(&field.value[..]));
        all.push(ProprietaryAnswer { identifier, subtype: field.subtype, key: Hex(&key[..]), value });
    }
    all
}

fn hex_map(map: &BTreeMap<Vec<u8>, Vec<u8>>) -> Map<String, Hex<&[u8]>> {
    Map(map.iter().map(|(key, value)| (to_hex(key), Hex(&value[..]))).collect())
}

/// `None` instead of an empty list.
fn some<T>(list: Vec<T>) -> Option<Vec<T>> {
    Some(list).filter(|list| !list.is_empty())
}

fn some_map(map: &BTreeMap<Vec<u8>, Vec<u8>>) -> Option<Map<String, Hex<&[u8]>>> {
    (!map.is_empty()).then(|| hex_map(map))
}

fn some_bytes(bytes: &[u8]) -> Option<Hex<&[u8]>> {
    (!bytes.is_empty()).then_some(Hex(bytes))
}

result! {
    struct PlainScript<'a> {
        /// disassembly of the script
        asm: Asm<'a>,
        /// the raw script bytes
        hex: Hex<&'a [u8]>,
        /// the type, such as pubkeyhash
        #[name("type")]
        kind: &'static str,
    }
}

fn plain_script(script: &[u8]) -> Option<PlainScript<'_>> {
    let answer = || PlainScript { asm: Asm { script, may_sign: false }, hex: Hex(script), kind: solve(script).name() };
    (!script.is_empty()).then(answer)
}

result! {
    struct DerivationAnswer<'a> {
        /// the public key
        pubkey: Hex<&'a [u8]>,
        /// the fingerprint of the master key
        master_fingerprint: Hex<[u8; 4]>,
        /// the path
        path: String,
    }
}

fn derivations(origins: &BTreeMap<Vec<u8>, KeyOrigin>) -> Option<Vec<DerivationAnswer<'_>>> {
    let mut all = Vec::with_capacity(origins.len());
    for (key, origin) in origins {
        let (master_fingerprint, path) = (Hex(origin.fingerprint), path_text(origin));
        all.push(DerivationAnswer { pubkey: Hex(&key[..]), master_fingerprint, path });
    }
    some(all)
}

result! {
    struct TaprootDerivationAnswer<'a> {
        /// the x-only public key
        pubkey: Hex<&'a [u8]>,
        /// the fingerprint of the master key
        master_fingerprint: Hex<[u8; 4]>,
        /// the path
        path: String,
        /// the hashes of the leaves that contain the key
        #[each("the hash of a leaf")]
        leaf_hashes: Vec<Hex<&'a [u8]>>,
    }
}

fn taproot_derivations(origins: &TaprootOrigins) -> Option<Vec<TaprootDerivationAnswer<'_>>> {
    let mut all = Vec::with_capacity(origins.len());
    for (key, (leaves, origin)) in origins {
        all.push(TaprootDerivationAnswer {
            pubkey: Hex(&key[..]),
            master_fingerprint: Hex(origin.fingerprint),
            path: path_text(origin),
            leaf_hashes: leaves.iter().map(|leaf| Hex(&leaf[..])).collect(),
        });
    }
    some(all)
}

result! {
    struct ParticipantsAnswer<'a> {
        /// the compressed aggregate public key
        aggregate_pubkey: Hex<&'a [u8]>,
        /// the compressed public keys that are aggregated
        #[each("a compressed public key")]
        participant_pubkeys: Vec<Hex<&'a [u8]>>,
    }
}

fn participants(participants: &MusigParticipants) -> Option<Vec<ParticipantsAnswer<'_>>> {
    let mut all = Vec::with_capacity(participants.len());
    for (aggregate, keys) in participants {
        let participant_pubkeys = keys.iter().map(|key| Hex(&key[..])).collect();
        all.push(ParticipantsAnswer { aggregate_pubkey: Hex(&aggregate[..]), participant_pubkeys });
    }
    some(all)
}

/// The inputs of a PSBT.
#[derive(Debug)]
struct Inputs<'a> {
    psbt: &'a Psbt,
    chain: Chain,
}

impl Answer for Inputs<'_> {
    const FORM: Form = Form::Array(&InputAnswer::FORM);

    fn write(&self, out: &mut Vec<u8>) {
        let of_version_2 = self.psbt.version >= 2;
        write_array(self.psbt.inputs.iter().map(|input| input_answer(input, of_version_2, self.chain)), out);
    }
}

result! {
    struct InputAnswer<'a> {
        witness_utxo: Option<UtxoAnswer<'a>>,
        /// the transaction that contains the spent output, as decoderawtransaction shows it
        non_witness_utxo: Option<PlainTransaction<'a>>,
        #[each(key "pubkey" "the signature for this public key")]
        partial_signatures: Option<Map<String, Hex<&'a [u8]>>>,
        /// the sighash type to sign with
        sighash: Option<&'static str>,
        redeem_script: Option<PlainScript<'a>>,
        witness_script: Option<PlainScript<'a>>,
        bip32_derivs: Option<Vec<DerivationAnswer<'a>>>,
        #[name("final_scriptSig")]
        final_script_sig: Option<FinalScript<'a>>,
        #[each("an element of the final witness")]
        final_scriptwitness: Option<Vec<Hex<&'a [u8]>>>,
        #[each(key "hash" "the preimage of this hash")]
        ripemd160_preimages: Option<Map<String, Hex<&'a [u8]>>>,
        #[each(key "hash" "the preimage of this hash")]
        sha256_preimages: Option<Map<String, Hex<&'a [u8]>>>,
        #[each(key "hash" "the preimage of this hash")]
        hash160_preimages: Option<Map<String, Hex<&'a [u8]>>>,
        #[each(key "hash" "the preimage of this hash")]
        hash256_preimages: Option<Map<String, Hex<&'a [u8]>>>,
        /// the id of the transaction that contains the spent output (only in version 2)
        previous_txid: Option<Txid>,
        /// the index of the spent output (only in version 2)
        previous_vout: Option<u32>,
        /// the sequence number (only in version 2)
        sequence: Option<u32>,
        /// the lock time in seconds that the input requires
        time_locktime: Option<u32>,
        /// the lock time in blocks that the input requires
        height_locktime: Option<u32>,
        /// the signature for the taproot key path
        taproot_key_path_sig: Option<Hex<&'a [u8]>>,
        taproot_script_path_sigs: Option<Vec<ScriptPathSignature<'a>>>,
        taproot_scripts: Option<Vec<LeafScriptAnswer<'a>>>,
        taproot_bip32_derivs: Option<Vec<TaprootDerivationAnswer<'a>>>,
        /// the x-only internal key of taproot
        taproot_internal_key: Option<Hex<&'a [u8]>>,
        /// the merkle root of taproot
        taproot_merkle_root: Option<Hex<&'a [u8]>>,
        musig2_participant_pubkeys: Option<Vec<ParticipantsAnswer<'a>>>,
        musig2_pubnonces: Option<Vec<NonceAnswer<'a>>>,
        musig2_partial_sigs: Option<Vec<PartialAnswer<'a>>>,
        /// the proprietary map of the input
        proprietary: Option<Vec<ProprietaryAnswer<'a>>>,
        /// the unknown fields of the input
        #[each(key "key" "the value of an unknown key")]
        unknown: Option<Map<String, Hex<&'a [u8]>>>,
    }
}

result! {
    struct UtxoAnswer<'a> {
        /// the value in BTC
        amount: JsonAmount,
        #[name("scriptPubKey")]
        script: ScriptAnswer<'a>,
    }
}

result! {
    struct FinalScript<'a> {
        /// disassembly of the final signature script
        asm: Asm<'a>,
        /// the raw bytes of the final signature script
        hex: Hex<&'a [u8]>,
    }
}

result! {
    struct ScriptPathSignature<'a> {
        /// the x-only public key
        pubkey: Hex<&'a [u8]>,
        /// the hash of the leaf
        leaf_hash: Hex<&'a [u8]>,
        /// the signature
        sig: Hex<&'a [u8]>,
    }
}

result! {
    struct LeafScriptAnswer<'a> {
        /// a leaf script
        script: Hex<&'a [u8]>,
        /// the version of the leaf
        leaf_ver: u8,
        /// the control blocks of the script
        #[each("a control block")]
        control_blocks: Vec<Hex<&'a [u8]>>,
    }
}

result! {
    struct NonceAnswer<'a> {
        /// the compressed public key of the participant who made the nonce
        participant_pubkey: Hex<&'a [u8]>,
        /// the compressed aggregate public key
        aggregate_pubkey: Hex<&'a [u8]>,
        /// the hash of the leaf that is signed (not for the key path)
        leaf_hash: Option<Hex<&'a [u8]>>,
        /// the public nonce
        pubnonce: Hex<&'a [u8]>,
    }
}

result! {
    struct PartialAnswer<'a> {
        /// the compressed public key of the participant who signed
        participant_pubkey: Hex<&'a [u8]>,
        /// the compressed aggregate public key
        aggregate_pubkey: Hex<&'a [u8]>,
        /// the hash of the leaf that is signed (not for the key path)
        leaf_hash: Option<Hex<&'a [u8]>>,
        /// the partial signature
        partial_sig: Hex<&'a [u8]>,
    }
}

/// Core's `SighashToStr`.
fn sighash_text(sighash_type: i32) -> &'static str {
    match sighash_type.to_le_bytes()[0] {
        1 => "ALL",
        2 => "NONE",
        3 => "SINGLE",
        0x81 => "ALL|ANYONECANPAY",
        0x82 => "NONE|ANYONECANPAY",
        0x83 => "SINGLE|ANYONECANPAY",
        _ => "",
    }
}

fn input_answer(input: &Input, of_version_2: bool, chain: Chain) -> InputAnswer<'_> {
    let signatures = input.signatures.values();
    let signatures = || Map(signatures.map(|(key, signature)| (to_hex(key), Hex(&signature[..]))).collect());
    let final_script = &input.final_script_sig[..];
    let asm = Asm { script: final_script, may_sign: true };
    InputAnswer {
        witness_utxo: input.witness_utxo.as_ref().map(|utxo| UtxoAnswer {
            amount: JsonAmount(utxo.value.0),
            script: ScriptAnswer::new(&utxo.script_pubkey, chain),
        }),
        non_witness_utxo: input.non_witness_utxo.as_ref().map(|tx| PlainTransaction { tx: tx.view(), chain }),
        partial_signatures: (!input.signatures.is_empty()).then(signatures),
        sighash: input.sighash_type.map(sighash_text),
        redeem_script: plain_script(&input.redeem_script),
        witness_script: plain_script(&input.witness_script),
        bip32_derivs: derivations(&input.origins),
        final_script_sig: (!final_script.is_empty()).then_some(FinalScript { asm, hex: Hex(final_script) }),
        final_scriptwitness: some(input.final_witness.iter().map(|element| Hex(&element[..])).collect()),
        ripemd160_preimages: some_map(&input.preimages.ripemd160),
        sha256_preimages: some_map(&input.preimages.sha256),
        hash160_preimages: some_map(&input.preimages.hash160),
        hash256_preimages: some_map(&input.preimages.hash256),
        previous_txid: of_version_2.then_some(input.prevout.txid),
        previous_vout: of_version_2.then_some(input.prevout.vout),
        sequence: input.sequence.filter(|_| of_version_2),
        time_locktime: input.time_lock,
        height_locktime: input.height_lock,
        taproot_key_path_sig: some_bytes(&input.taproot_key_signature),
        taproot_script_path_sigs: script_path_signatures(input),
        taproot_scripts: leaf_scripts(input),
        taproot_bip32_derivs: taproot_derivations(&input.taproot_origins),
        taproot_internal_key: input.internal_key.as_ref().map(|key| Hex(&key[..])),
        taproot_merkle_root: input.merkle_root.as_ref().map(|root| Hex(&root[..])),
        musig2_participant_pubkeys: participants(&input.musig_participants),
        musig2_pubnonces: nonces(input),
        musig2_partial_sigs: partials(input),
        proprietary: some(proprietary(&input.proprietary)),
        unknown: some_map(&input.unknown),
    }
}

fn script_path_signatures(input: &Input) -> Option<Vec<ScriptPathSignature<'_>>> {
    let mut all = Vec::new();
    for ((key, leaf), signature) in &input.taproot_script_signatures {
        let (pubkey, leaf_hash) = (Hex(&key[..]), Hex(&leaf[..]));
        all.push(ScriptPathSignature { pubkey, leaf_hash, sig: Hex(&signature[..]) });
    }
    some(all)
}

fn leaf_scripts(input: &Input) -> Option<Vec<LeafScriptAnswer<'_>>> {
    let mut all = Vec::new();
    for ((script, leaf_ver), control_blocks) in &input.leaf_scripts {
        let control_blocks = control_blocks.iter().map(|control_block| Hex(&control_block.0[..])).collect();
        all.push(LeafScriptAnswer { script: Hex(&script[..]), leaf_ver: *leaf_ver, control_blocks });
    }
    some(all)
}

/// The key path has a leaf hash of zeros.
fn leaf_hash(leaf: &[u8; 32]) -> Option<Hex<&[u8]>> {
    (*leaf != [0; 32]).then_some(Hex(&leaf[..]))
}

fn nonces(input: &Input) -> Option<Vec<NonceAnswer<'_>>> {
    let mut all = Vec::new();
    for ((aggregate, leaf), nonces) in &input.musig_nonces {
        for (participant, nonce) in nonces {
            all.push(NonceAnswer {
                participant_pubkey: Hex(&participant[..]),
                aggregate_pubkey: Hex(&aggregate[..]),
                leaf_hash: leaf_hash(leaf),
                pubnonce: Hex(&nonce[..]),
            });
        }
    }
    some(all)
}

fn partials(input: &Input) -> Option<Vec<PartialAnswer<'_>>> {
    let mut all = Vec::new();
    for ((aggregate, leaf), partials) in &input.musig_partials {
        for (participant, partial) in partials {
            all.push(PartialAnswer {
                participant_pubkey: Hex(&participant[..]),
                aggregate_pubkey: Hex(&aggregate[..]),
                leaf_hash: leaf_hash(leaf),
                partial_sig: Hex(&partial[..]),
            });
        }
    }
    some(all)
}

/// The outputs of a PSBT.
#[derive(Debug)]
struct Outputs<'a> {
    psbt: &'a Psbt,
    chain: Chain,
}

impl Answer for Outputs<'_> {
    const FORM: Form = Form::Array(&OutputAnswer::FORM);

    fn write(&self, out: &mut Vec<u8>) {
        let of_version_2 = self.psbt.version >= 2;
        write_array(self.psbt.outputs.iter().map(|output| output_answer(output, of_version_2, self.chain)), out);
    }
}

result! {
    struct OutputAnswer<'a> {
        redeem_script: Option<PlainScript<'a>>,
        witness_script: Option<PlainScript<'a>>,
        bip32_derivs: Option<Vec<DerivationAnswer<'a>>>,
        /// the value in BTC (only in version 2)
        amount: Option<JsonAmount>,
        /// the output script (only in version 2)
        script: Option<ScriptAnswer<'a>>,
        /// the x-only internal key of taproot
        taproot_internal_key: Option<Hex<&'a [u8]>>,
        /// the leaves of the taproot tree, from left to right
        taproot_tree: Option<Vec<LeafAnswer<'a>>>,
        taproot_bip32_derivs: Option<Vec<TaprootDerivationAnswer<'a>>>,
        musig2_participant_pubkeys: Option<Vec<ParticipantsAnswer<'a>>>,
        /// the proprietary map of the output
        proprietary: Option<Vec<ProprietaryAnswer<'a>>>,
        /// the unknown fields of the output
        #[each(key "key" "the value of an unknown key")]
        unknown: Option<Map<String, Hex<&'a [u8]>>>,
    }
}

result! {
    struct LeafAnswer<'a> {
        /// the depth of the leaf in the tree
        depth: u8,
        /// the version of the leaf
        leaf_ver: u8,
        /// the script
        script: Hex<&'a [u8]>,
    }
}

fn output_answer(output: &Output, of_version_2: bool, chain: Chain) -> OutputAnswer<'_> {
    let mut tree = Vec::new();
    for (depth, leaf_ver, script) in &output.taproot_tree {
        tree.push(LeafAnswer { depth: *depth, leaf_ver: *leaf_ver, script: Hex(&script[..]) });
    }
    OutputAnswer {
        redeem_script: plain_script(&output.redeem_script),
        witness_script: plain_script(&output.witness_script),
        bip32_derivs: derivations(&output.origins),
        amount: of_version_2.then_some(JsonAmount(output.amount.0)),
        script: of_version_2.then(|| ScriptAnswer::new(&output.script, chain)),
        taproot_internal_key: output.internal_key.as_ref().map(|key| Hex(&key[..])),
        taproot_tree: some(tree),
        taproot_bip32_derivs: taproot_derivations(&output.taproot_origins),
        musig2_participant_pubkeys: participants(&output.musig_participants),
        proprietary: some(proprietary(&output.proprietary)),
        unknown: some_map(&output.unknown),
    }
}
