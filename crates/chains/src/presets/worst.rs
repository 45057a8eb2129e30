//! Preset `worst`: valid blocks that cost a node as much as the rules allow, with each kind of cost in a block of its
//! own.
//!
//! Input: a seed and a directory. Output: `cases00000.dat`, `expectations.jsonl`, `blk00000.dat`, `stats.json`, and
//! `worst.json` with the work in each block. Invariant: every block is valid and near the limit it is named after.
//! Cost: some seconds, with all cores signing.

use super::invalid::idle_checks;
use super::ledger::{ACCEPT, Expectation, Ledger, write_summary};
use super::maker::{FreeCoin, Maker, TRUE_SCRIPT, free_tx, output};
use crate::error::ChainsError;
use crate::files::write_text;
use crate::parallel;
use crate::plan::FIRST_TIME;
use crate::regtest::VOTED_ACTIVATION_HEIGHT;
use crate::wallet::script::{
    OP_0, OP_1, OP_CHECKSIG, OP_CHECKSIGADD, OP_DROP, OP_NUMEQUAL, OP_RETURN, OP_SWAP, Script, multisig, p2sh, p2tr,
    p2wsh,
};
use crate::wallet::{
    LEAF_VERSION_TAPSCRIPT, Spending, Wallet, ecdsa_signature, leaf_hash, legacy_message, open_leaf, schnorr_signature,
    taproot_output,
};
use lydian_hash::TAP_BRANCH;
use lydian_primitives::build::{MutOutput, MutTx};
use lydian_primitives::{OutPoint, Txid};
use secp256k1::Keypair;
use serde::Serialize;
use std::path::Path;

/// The time of the node.
pub const WORST_NOW: u32 = FIRST_TIME + 600 * 1_000;

const QUADRATIC_INPUTS: u64 = 3_000;
/// Leaves room in the block for inputs with the longest signatures, header and coinbase; the rest is one output.
const QUADRATIC_OUTPUT: usize = 1_000_000 - 115 * 3_000 - 600;
/// Each counts as 20, together the whole limit of 80,000.
const MULTISIG_INPUTS: u64 = 4_000;
const MULTISIG_KEYS: u8 = 20;
const DEEP_INPUTS: u64 = 260;
/// Nodes of the longest control block (BIP-0341).
const DEPTH: usize = 128;
const WITNESS_ITEMS: usize = 500_000;
const LARGE_ITEM: usize = 3_990_000;
const LARGE_SCRIPT_PUSHES: usize = 7_600;
const OUTPUTS: u64 = 99_000;
const INPUTS: usize = 24_000;

/// Value of each coin.
const VALUE: i64 = 1_000;

/// The work in one block.
#[derive(Clone, Debug, Default, Serialize)]
pub struct Work {
    pub name: &'static str,
    pub height: u32,
    pub weight: usize,
    pub inputs: usize,
    /// Checks of a signature against a key, in Core's order.
    pub signature_checks: u64,
    pub tweak_checks: u64,
    /// Bytes hashed for signature hashes of the legacy kind.
    pub legacy_sighash_bytes: u64,
    pub sigops_cost: u64,
}

struct Bench {
    maker: Maker,
    ledger: Ledger,
    wallet: Wallet,
    threads: usize,
    works: Vec<Work>,
}

/// Writes the blocks into a directory.
pub fn write(seed: u64, threads: usize, folder: &Path) -> Result<Vec<Expectation>, ChainsError> {
    let ledger = Ledger::new(folder, WORST_NOW)?;
    let mut bench = Bench { maker: Maker::new(), ledger, wallet: Wallet::new(seed), threads, works: Vec::new() };
    for _ in 0..VOTED_ACTIVATION_HEIGHT + 8 {
        bench.block("chain", Vec::new())?;
    }
    bench.quadratic_sighash()?;
    bench.sigops()?;
    bench.multisig()?;
    bench.deep_tapscript()?;
    bench.large_witnesses()?;
    bench.many_coins()?;
    let lines = bench.ledger.finish()?;
    let works = serde_json::to_string_pretty(&bench.works).unwrap_or_default() + "\n";
    write_text(&folder.join("worst.json"), &works)?;
    write_summary(folder, "worst", seed, &bench.maker, &lines)?;
    Ok(lines)
}

impl Bench {
    /// Adds a valid block; returns its weight.
    fn block(&mut self, name: &str, txs: Vec<MutTx>) -> Result<usize, ChainsError> {
        let block = self.maker.block(txs);
        let bytes = block.encode();
        let stripped: usize = block.txs.iter().map(|tx| tx.encode_stripped().len()).sum();
        let framing = 80 + lydian_primitives::compact_size_len(block.txs.len());
        self.ledger.record(name, "", self.maker.height + 1, &bytes, ACCEPT)?;
        self.maker.advance(&block);
        Ok(3 * (stripped + framing) + bytes.len())
    }

    /// Adds a block that is measured for its cost.
    fn worst(&mut self, tx: MutTx, work: Work) -> Result<(), ChainsError> {
        let inputs = tx.inputs.len();
        let weight = self.block(work.name, vec![tx])?;
        self.works.push(Work { height: self.maker.height, weight, inputs, ..work });
        Ok(())
    }

    /// Pays `VALUE` to each script, in a block of its own.
    fn fund(&mut self, scripts: &[Vec<u8>]) -> Result<Vec<FreeCoin>, ChainsError> {
        let Some(coin) = self.maker.rich_coin() else {
            return Err(ChainsError::Usage("no coinbase is mature".into()));
        };
        let tx = free_tx(&[coin], scripts.iter().map(|script| output(VALUE, script)).collect());
        let txid = tx.txid();
        self.block("chain", vec![tx])?;
        Ok((0..).zip(scripts).map(|(vout, _)| coin_of(txid, vout)).collect())
    }

    /// Signs every input on all cores; `sign` returns scriptSig and witness.
    fn signed(
        &self,
        mut tx: MutTx,
        spent: &[(i64, Vec<u8>)],
        sign: impl Fn(&MutTx, &mut Spending<'_>, usize) -> (Vec<u8>, Vec<Vec<u8>>) + Sync,
    ) -> MutTx {
        let mut shared = Spending::new(spent);
        shared.fill(&tx);
        let indices: Vec<usize> = (0..tx.inputs.len()).collect();
        let unlocked = parallel::map(self.threads, &indices, |&index| sign(&tx, &mut shared.clone(), index));
        for (input, (script_sig, witness)) in tx.inputs.iter_mut().zip(unlocked) {
            (input.script_sig, input.witness) = (script_sig, witness);
        }
        tx
    }

    /// Every input hashes the whole transaction again.
    fn quadratic_sighash(&mut self) -> Result<(), ChainsError> {
        let keys: Vec<Keypair> = (0..QUADRATIC_INPUTS).map(|number| self.wallet.keypair(number, 100)).collect();
        let script = |key: &Keypair| Script::new().push(&key.public_key().serialize()).op(OP_CHECKSIG).build();
        let scripts: Vec<Vec<u8>> = keys.iter().map(script).collect();
        let coins = self.fund(&scripts)?;
        let mut data = vec![OP_RETURN];
        data.resize(QUADRATIC_OUTPUT, 0);
        let tx = free_tx(&coins, vec![output(0, &data)]);
        let message = (tx.encode_stripped().len() + scripts[0].len() + 4) as u64;
        let tx = self.signed(tx, &[], |tx, _, index| {
            let signature = ecdsa_signature(&keys[index], legacy_message(tx, index, &scripts[index]));
            (Script::new().push(&signature).build(), Vec::new())
        });
        let legacy_sighash_bytes = message * QUADRATIC_INPUTS;
        let work = Work { name: "quadratic-sighash", signature_checks: QUADRATIC_INPUTS, ..Work::default() };
        self.worst(tx, Work { legacy_sighash_bytes, ..work })
    }

    /// 80,000 operations counted in outputs, and in redeem scripts; none of them is run.
    fn sigops(&mut self) -> Result<(), ChainsError> {
        let coins = self.fund(&[TRUE_SCRIPT.to_vec()])?;
        let tx = free_tx(&coins, vec![output(VALUE, &[OP_CHECKSIG; 20_000])]);
        self.worst(tx, Work { name: "sigops-in-an-output", sigops_cost: 80_000, ..Work::default() })?;
        let redeem = idle_checks(198, 0);
        let coins = self.fund(&vec![p2sh(&redeem); 5])?;
        let mut tx = free_tx(&coins, vec![output(VALUE, &[OP_CHECKSIG; 200])]);
        for input in &mut tx.inputs {
            input.script_sig = Script::new().push(&redeem).build();
        }
        self.worst(tx, Work { name: "sigops-in-redeem-scripts", sigops_cost: 80_000, ..Work::default() })
    }

    /// One signature against 20 keys, with the matching one last in Core's order: the limit of signature operations,
    /// all run.
    fn multisig(&mut self) -> Result<(), ChainsError> {
        let numbers: Vec<u64> = (0..MULTISIG_INPUTS).collect();
        let wallet = self.wallet;
        let scripts: Vec<Vec<u8>> = parallel::map(self.threads, &numbers, |&number| {
            let key = |part| wallet.keypair(1_000_000 + number, part).public_key().serialize().to_vec();
            multisig(1, (0..MULTISIG_KEYS).map(key).collect::<Vec<_>>())
        });
        let outputs: Vec<Vec<u8>> = scripts.iter().map(|script| p2wsh(script)).collect();
        let coins = self.fund(&outputs)?;
        let spent: Vec<(i64, Vec<u8>)> = outputs.into_iter().map(|script| (VALUE, script)).collect();
        let tx = free_tx(&coins, vec![output(VALUE, &TRUE_SCRIPT)]);
        let tx = self.signed(tx, &spent, |tx, spending, index| {
            let message = spending.segwit_v0(tx, index, &scripts[index]);
            let signature = ecdsa_signature(&wallet.keypair(1_000_000 + numbers[index], 0), message);
            (Vec::new(), vec![Vec::new(), signature, scripts[index].clone()])
        });
        let checks = MULTISIG_INPUTS * u64::from(MULTISIG_KEYS);
        self.worst(
            tx,
            Work { name: "multisig-1-of-20", signature_checks: checks, sigops_cost: checks, ..Work::default() },
        )
    }

    /// 128 hashes to the root, then as many checks as the witness allows.
    fn deep_tapscript(&mut self) -> Result<(), ChainsError> {
        let numbers: Vec<u64> = (0..DEEP_INPUTS).collect();
        let wallet = self.wallet;
        let checks = deep_checks();
        let deep =
            parallel::map(self.threads, &numbers, |&number| deep_leaf(&wallet.keypair(2_000_000 + number, 0), checks));
        let outputs: Vec<Vec<u8>> = deep.iter().map(|leaf| leaf.script_pubkey.clone()).collect();
        let coins = self.fund(&outputs)?;
        let spent: Vec<(i64, Vec<u8>)> = outputs.into_iter().map(|script| (VALUE, script)).collect();
        let tx = free_tx(&coins, vec![output(VALUE, &TRUE_SCRIPT)]);
        let tx = self.signed(tx, &spent, |tx, spending, index| {
            let leaf = leaf_hash(LEAF_VERSION_TAPSCRIPT, &deep[index].script);
            let key = wallet.keypair(2_000_000 + numbers[index], 0);
            let signature = schnorr_signature(&key, spending.taproot(tx, index, Some(&leaf)));
            (Vec::new(), vec![signature, deep[index].script.clone(), deep[index].control_block.clone()])
        });
        let signature_checks = DEEP_INPUTS * i64::unsigned_abs(checks);
        let work = Work { name: "deep-tapscript", signature_checks, tweak_checks: DEEP_INPUTS, ..Work::default() };
        self.worst(tx, work)
    }

    fn large_witnesses(&mut self) -> Result<(), ChainsError> {
        let key = self.wallet.keypair(3_000_000, 0);
        let success = open_leaf(&key, key, vec![0x50]);
        // Pushes and drops for nearly the whole block, in one script that is hashed and run.
        let pushes = Script::new().push(&[7; 520]).op(OP_DROP).build().repeat(LARGE_SCRIPT_PUSHES);
        let large = open_leaf(&key, key, Script::new().raw(&pushes).op(OP_1).build());
        let cases = [
            ("witness-items-500000", &success, vec![vec![1; 6]; WITNESS_ITEMS]),
            ("witness-item-of-3990000-bytes", &success, vec![vec![1; LARGE_ITEM]]),
            ("tapscript-of-4-megabytes", &large, Vec::new()),
        ];
        for (name, leaf, mut witness) in cases {
            let coins = self.fund(std::slice::from_ref(&leaf.script_pubkey))?;
            let mut tx = free_tx(&coins, vec![output(VALUE, &TRUE_SCRIPT)]);
            witness.extend([leaf.script.clone(), leaf.control_block.clone()]);
            tx.inputs[0].witness = witness;
            self.worst(tx, Work { name, tweak_checks: 1, ..Work::default() })?;
        }
        Ok(())
    }

    /// As many coins created, and spent, as a block has room for.
    fn many_coins(&mut self) -> Result<(), ChainsError> {
        let Some(coin) = self.maker.rich_coin() else { return Ok(()) };
        let outputs: Vec<MutOutput> = (0..OUTPUTS).map(|_| output(VALUE, &TRUE_SCRIPT)).collect();
        let tx = free_tx(&[coin], outputs);
        let txid = tx.txid();
        self.worst(tx, Work { name: "outputs-99000", ..Work::default() })?;
        let coins: Vec<FreeCoin> = (0..).take(INPUTS).map(|vout| coin_of(txid, vout)).collect();
        let tx = free_tx(&coins, vec![output(VALUE, &TRUE_SCRIPT)]);
        self.worst(tx, Work { name: "inputs-24000", ..Work::default() })
    }
}

fn coin_of(txid: Txid, vout: u32) -> FreeCoin {
    FreeCoin { outpoint: OutPoint { txid, vout }, value: VALUE, coinbase_height: None }
}

struct DeepLeaf {
    script_pubkey: Vec<u8>,
    script: Vec<u8>,
    control_block: Vec<u8>,
}

/// `OP_0 (OP_OVER OP_SWAP key OP_CHECKSIGADD)* checks OP_NUMEQUAL OP_NIP`: the one signature is checked repeatedly.
fn deep_script(key: &[u8; 32], checks: i64) -> Vec<u8> {
    const OP_OVER: u8 = 0x78;
    const OP_NIP: u8 = 0x77;
    let one = Script::new().op(OP_OVER).op(OP_SWAP).push(key).op(OP_CHECKSIGADD).build();
    let all = (0..checks).fold(Script::new().op(OP_0), |script, _| script.raw(&one));
    all.number(checks).op(OP_NUMEQUAL).op(OP_NIP).build()
}

/// Number of checks that the witness allows, at 50 units each: 50 plus its size (BIP-0342).
fn deep_checks() -> i64 {
    let witness = |checks: i64| {
        let script = deep_script(&[0; 32], checks).len();
        1 + 65 + 3 + script + 3 + 33 + 32 * DEPTH
    };
    let is_paid = |checks: &i64| i64::try_from(50 + witness(*checks)).is_ok_and(|budget| budget >= 50 * checks);
    (1..1_000).rev().find(is_paid).unwrap_or(1)
}

fn deep_leaf(key: &Keypair, checks: i64) -> DeepLeaf {
    let internal = key.x_only_public_key().0;
    let script = deep_script(&internal.to_byte_array(), checks);
    let mut root = leaf_hash(LEAF_VERSION_TAPSCRIPT, &script);
    let mut path = Vec::new();
    for level in 0..DEPTH as u64 {
        let node = lydian_hash::sha256(&level.to_le_bytes());
        path.extend_from_slice(&node);
        root = if root < node { TAP_BRANCH.hash(&[&root, &node]) } else { TAP_BRANCH.hash(&[&node, &root]) };
    }
    let (_, output, parity) = taproot_output(&internal, Some(root));
    let mut control_block = vec![LEAF_VERSION_TAPSCRIPT | parity.to_u8()];
    control_block.extend_from_slice(&internal.to_byte_array());
    control_block.extend_from_slice(&path);
    DeepLeaf { script_pubkey: p2tr(&output), script, control_block }
}
