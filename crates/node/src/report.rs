//! The findings of `lydian verify` as data: the JSON document (`docs/formats/verify-json.md`), and the source of the
//! text output.
//!
//! Plain structures with public fields; only the overall verdict is computed here.

use crate::clock::Seconds;
use lydian_consensus::{Rule, Stats, Violation};
use serde::Serialize;

/// Version of the JSON document: changes when a field changes its meaning or is removed.
pub(crate) const FORMAT: u32 = 1;

/// The JSON document.
#[derive(Debug, Serialize)]
pub(crate) struct Report {
    pub(crate) format: u32,
    pub(crate) lydian: &'static str,
    pub(crate) verdict: Verdict,
    pub(crate) exit_code: u8,
    pub(crate) items: Vec<Item>,
    /// What could not be read or belongs to no item.
    pub(crate) unreadable: Vec<String>,
    pub(crate) totals: Totals,
    #[serde(flatten)]
    pub(crate) seconds: Seconds,
}

/// Verdict on an item and on the whole, in ascending order of severity: the whole is as bad as its worst item.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Verdict {
    Valid,
    /// Something could not be read, so that the verdict is unknown.
    Unreadable,
    /// A block breaks a rule, or was expected to break one and does not.
    Invalid,
}

impl Verdict {
    pub(crate) fn exit_code(self) -> u8 {
        match self {
            Verdict::Valid => 0,
            Verdict::Invalid => 1,
            Verdict::Unreadable => 2,
        }
    }
}

#[derive(Debug, Serialize)]
#[serde(tag = "kind", rename_all = "snake_case")]
pub(crate) enum Item {
    Chain(ChainItem),
    Block(BlockItem),
}

impl Item {
    pub(crate) fn verdict(&self) -> Verdict {
        match self {
            Item::Chain(chain) => chain.verdict,
            Item::Block(block) => block.verdict,
        }
    }
}

/// Block files of one chain, validated from genesis.
#[derive(Debug, Serialize)]
pub(crate) struct ChainItem {
    pub(crate) verdict: Verdict,
    pub(crate) is_expected_invalid: bool,
    pub(crate) chain: &'static str,
    pub(crate) files: Vec<String>,
    /// Records in the files, copies included.
    pub(crate) records: u64,
    pub(crate) tip: Tip,
    pub(crate) utxo: Utxo,
    pub(crate) totals: Totals,
    /// The first violations, in the order in which they were found.
    pub(crate) violations: Vec<Broken>,
    pub(crate) violations_left_out: u64,
    /// Blocks that build on an invalid or unreadable one.
    pub(crate) blocks_not_verified: u64,
    /// Blocks on branches with less work than the active chain; their scripts were verified only if the branch was once
    /// active.
    pub(crate) blocks_off_chain: u64,
    /// Damage because of which blocks may be missing.
    pub(crate) unreadable: Vec<String>,
    /// Other contents of the files; harmless.
    pub(crate) notes: Vec<String>,
    pub(crate) notes_left_out: u64,
    #[serde(flatten)]
    pub(crate) seconds: Seconds,
}

#[derive(Debug, Serialize)]
pub(crate) struct Tip {
    pub(crate) height: u32,
    pub(crate) hash: String,
}

/// The unspent outputs at the tip, hashed as Bitcoin Core's `gettxoutsetinfo` does.
#[derive(Debug, Serialize)]
pub(crate) struct Utxo {
    pub(crate) coins: u64,
    pub(crate) hash_serialized_3: String,
    pub(crate) muhash: String,
}

/// One block, without its chain.
#[derive(Debug, Serialize)]
pub(crate) struct BlockItem {
    pub(crate) verdict: Verdict,
    pub(crate) is_expected_invalid: bool,
    pub(crate) chain: &'static str,
    pub(crate) height: Option<u32>,
    pub(crate) hash: String,
    pub(crate) file: String,
    /// The file with its spent outputs, if any.
    pub(crate) prevouts_file: Option<String>,
    pub(crate) totals: Totals,
    pub(crate) violation: Option<Broken>,
    /// Names of the rules that this data decides.
    pub(crate) decided: Vec<&'static str>,
    pub(crate) undecided: Vec<Undecided>,
    pub(crate) unreadable: Vec<String>,
    #[serde(flatten)]
    pub(crate) seconds: Seconds,
}

#[derive(Debug, Serialize)]
pub(crate) struct Undecided {
    pub(crate) rule: &'static str,
    pub(crate) why: &'static str,
}

/// A rule that a block breaks.
#[derive(Debug, Serialize)]
pub(crate) struct Broken {
    pub(crate) height: Option<u32>,
    pub(crate) block: String,
    pub(crate) file: String,
    /// Offset of the block's first byte in its file.
    pub(crate) offset: u64,
    pub(crate) rule: &'static str,
    pub(crate) must: &'static str,
    pub(crate) source: &'static str,
    /// Exactly as Bitcoin Core reports it.
    pub(crate) reject_reason: String,
    pub(crate) transaction: Option<usize>,
    pub(crate) txid: Option<String>,
    pub(crate) input: Option<usize>,
    /// The output that the input spends, TXID:INDEX.
    pub(crate) prevout: Option<String>,
    pub(crate) script_error: Option<&'static str>,
}

impl Broken {
    /// Describes a violation; the caller knows the block and its position.
    pub(crate) fn new(
        violation: &Violation,
        block: &lydian_primitives::Block,
        height: Option<u32>,
        file: String,
        offset: u64,
    ) -> Broken {
        let info = violation.rule.info();
        let tx = violation.tx.filter(|&index| index < block.tx_count()).map(|index| block.tx(index));
        let input = tx.zip(violation.input).filter(|(tx, index)| *index < tx.input_count());
        Broken {
            height,
            block: block.hash().to_string(),
            file,
            offset,
            rule: info.name,
            must: info.must,
            source: info.source,
            reject_reason: violation.reject_reason(),
            transaction: violation.tx,
            txid: tx.map(|tx| tx.txid().to_string()),
            input: violation.input,
            prevout: input.map(|(tx, index)| tx.input(index).prevout.to_string()),
            script_error: violation.script_error.map(|error| error.text()),
        }
    }
}

/// Counts of what was checked.
#[derive(Clone, Copy, Debug, Default, Serialize)]
pub(crate) struct Totals {
    pub(crate) blocks: u64,
    pub(crate) transactions: u64,
    /// Inputs that spend an output; coinbases have none.
    pub(crate) inputs: u64,
    pub(crate) outputs: u64,
    pub(crate) bytes: u64,
    /// Checks that were made, including a multisig's failed attempts.
    pub(crate) ecdsa_checks: u64,
    pub(crate) schnorr_checks: u64,
    pub(crate) tweak_checks: u64,
}

impl From<&Stats> for Totals {
    fn from(stats: &Stats) -> Totals {
        Totals {
            blocks: stats.blocks,
            transactions: stats.transactions,
            inputs: stats.inputs,
            outputs: stats.outputs,
            bytes: stats.bytes,
            ecdsa_checks: stats.checks.ecdsa,
            schnorr_checks: stats.checks.schnorr,
            tweak_checks: stats.checks.tweak,
        }
    }
}

impl Totals {
    pub(crate) fn add(&mut self, other: &Totals) {
        self.blocks += other.blocks;
        self.transactions += other.transactions;
        self.inputs += other.inputs;
        self.outputs += other.outputs;
        self.bytes += other.bytes;
        self.ecdsa_checks += other.ecdsa_checks;
        self.schnorr_checks += other.schnorr_checks;
        self.tweak_checks += other.tweak_checks;
    }
}

pub(crate) fn names(rules: &[Rule]) -> Vec<&'static str> {
    rules.iter().map(|rule| rule.info().name).collect()
}
