//! Every consensus rule by name, with a one-sentence description, its source and Core's reject reason. Checks, tests,
//! `lydian explain` and the documentation all use this table.
//!
//! Invariant: the variants of [`Rule`], [`RULES`] and the checks are in the same order. The first rule violated
//! determines the reject reason, as in Core. A whole block is checked in the order of Core's `ProcessNewBlock`: first
//! the block alone, then its header in the context of the chain. A header that arrives alone is checked by the header
//! rules in the same order.

use crate::debug_message::Detail;
use lydian_script::ScriptError;
use std::fmt;

/// The validation step at which a rule is checked.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub enum Step {
    /// The header alone: Core's `CheckBlockHeader`, called by `CheckBlock`.
    Header,
    /// The block alone: Core's `CheckBlock`.
    Block,
    /// One transaction alone: Core's `CheckTransaction`, called by `CheckBlock`.
    Transaction,
    /// The header against its ancestors: Core's `AcceptBlockHeader` and `ContextualCheckBlockHeader`.
    HeaderInChain,
    /// The block in the context of its chain: Core's `ContextualCheckBlock`.
    BlockInChain,
    /// The block against the coins it spends: Core's `ConnectBlock` and `CheckTxInputs`.
    Coins,
    /// The scripts of all inputs: Core's `CheckInputScripts`.
    Scripts,
}

impl Step {
    pub fn name(self) -> &'static str {
        match self {
            Step::Header => "header",
            Step::HeaderInChain => "header in chain",
            Step::Block => "block",
            Step::Transaction => "transaction",
            Step::BlockInChain => "block in chain",
            Step::Coins => "coins",
            Step::Scripts => "scripts",
        }
    }
}

/// The description of a rule.
#[derive(Clone, Copy, Debug)]
pub struct RuleInfo {
    pub rule: Rule,
    pub step: Step,
    /// Our own unique name, because Core uses one reject reason for several rules.
    pub name: &'static str,
    /// Core's reject reason (`GetRejectReason`). For two rules a suffix is added, see [`Violation::reject_reason`].
    pub reject_reason: &'static str,
    /// The rule in one sentence.
    pub must: &'static str,
    /// The BIP and the Core function that checks the rule.
    pub source: &'static str,
}

macro_rules! rules {
    ($($rule:ident $step:ident $name:literal $reason:literal $must:literal $source:literal)*) => {
        /// A rule. The variants are in checking order.
        #[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
        pub enum Rule {
            $(#[doc = $must] $rule,)*
        }

        /// All rules in checking order.
        pub const RULES: &[RuleInfo] = &[$(RuleInfo {
            rule: Rule::$rule,
            step: Step::$step,
            name: $name,
            reject_reason: $reason,
            must: $must,
            source: $source,
        },)*];
    };
}

rules! {
    HighHash Header "high-hash" "high-hash"
        "A header's hash MUST NOT exceed its target, and the target MUST be positive and at most the network's limit."
        "CheckBlockHeader, CheckProofOfWork (pow.cpp)"
    BadSignetBlksig Block "bad-signet-blksig" "bad-signet-blksig"
        "A signet block MUST carry a solution of the network's challenge in its witness commitment."
        "BIP-0325; CheckBlock, CheckSignetBlockSolution (signet.cpp)"
    BadTxnmrklroot Block "bad-txnmrklroot" "bad-txnmrklroot"
        "A header's merkle root MUST be that of the block's txids; otherwise the bytes, not the hash, are refused."
        "CheckBlock, CheckMerkleRoot (validation.cpp)"
    BadTxnsDuplicate Block "bad-txns-duplicate" "bad-txns-duplicate"
        "A block's merkle tree MUST NOT have two equal neighbours (CVE-2012-2459); the bytes, not the hash, are refused."
        "CheckBlock, CheckMerkleRoot, ComputeMerkleRoot (consensus/merkle.cpp)"
    BlockEmpty Block "block-empty" "bad-blk-length"
        "A block MUST have a transaction."
        "CheckBlock"
    BlockTxCount Block "block-tx-count" "bad-blk-length"
        "A block MUST NOT have more than 1,000,000 transactions."
        "BIP-0141; CheckBlock, MAX_BLOCK_WEIGHT (consensus/consensus.h)"
    BlockBaseSize Block "block-base-size" "bad-blk-length"
        "A block without its witnesses MUST NOT exceed 1,000,000 bytes."
        "BIP-0141; CheckBlock, MAX_BLOCK_WEIGHT (consensus/consensus.h)"
    BadCbMissing Block "bad-cb-missing" "bad-cb-missing"
        "A block's first transaction MUST be a coinbase."
        "CheckBlock"
    BadCbMultiple Block "bad-cb-multiple" "bad-cb-multiple"
        "A block's other transactions MUST NOT be coinbases."
        "CheckBlock"
    TxVinEmpty Transaction "bad-txns-vin-empty" "bad-txns-vin-empty"
        "A transaction MUST have an input."
        "CheckTransaction (consensus/tx_check.cpp)"
    TxVoutEmpty Transaction "bad-txns-vout-empty" "bad-txns-vout-empty"
        "A transaction MUST have an output."
        "CheckTransaction (consensus/tx_check.cpp)"
    TxOversize Transaction "bad-txns-oversize" "bad-txns-oversize"
        "A transaction without its witnesses MUST NOT exceed 1,000,000 bytes."
        "CheckTransaction (consensus/tx_check.cpp)"
    TxVoutNegative Transaction "bad-txns-vout-negative" "bad-txns-vout-negative"
        "An output's value MUST NOT be negative."
        "CheckTransaction (consensus/tx_check.cpp); CVE-2010-5139"
    TxVoutToolarge Transaction "bad-txns-vout-toolarge" "bad-txns-vout-toolarge"
        "An output's value MUST NOT exceed 21,000,000 coins."
        "CheckTransaction (consensus/tx_check.cpp); CVE-2010-5139"
    TxTxouttotalToolarge Transaction "bad-txns-txouttotal-toolarge" "bad-txns-txouttotal-toolarge"
        "The sum of a transaction's outputs MUST NOT exceed 21,000,000 coins."
        "CheckTransaction (consensus/tx_check.cpp); CVE-2010-5139"
    TxInputsDuplicate Transaction "bad-txns-inputs-duplicate" "bad-txns-inputs-duplicate"
        "A transaction MUST NOT spend an output twice (CVE-2018-17144)."
        "CheckTransaction (consensus/tx_check.cpp)"
    TxCbLength Transaction "bad-cb-length" "bad-cb-length"
        "A coinbase's scriptSig MUST have 2 to 100 bytes."
        "CheckTransaction (consensus/tx_check.cpp)"
    TxPrevoutNull Transaction "bad-txns-prevout-null" "bad-txns-prevout-null"
        "An input of a transaction that is no coinbase MUST NOT have the null prevout."
        "CheckTransaction (consensus/tx_check.cpp)"
    BlockLegacySigops Block "block-legacy-sigops" "bad-blk-sigops"
        "A block's signature operations in scriptSigs and scriptPubKeys, counted the legacy way, MUST NOT exceed 20,000."
        "CheckBlock, GetLegacySigOpCount (consensus/tx_verify.cpp)"
    PrevBlkNotFound HeaderInChain "prev-blk-not-found" "prev-blk-not-found"
        "A header MUST name the hash of a known header as its parent."
        "AcceptBlockHeader (validation.cpp)"
    BadPrevblk HeaderInChain "bad-prevblk" "bad-prevblk"
        "A header's parent MUST NOT be invalid."
        "AcceptBlockHeader (validation.cpp)"
    BadDiffbits HeaderInChain "bad-diffbits" "bad-diffbits"
        "A header's target MUST be the one that the times of its ancestors give, by its network's rule."
        "BIP-0094 on testnet4; ContextualCheckBlockHeader, GetNextWorkRequired (pow.cpp)"
    TimeTooOld HeaderInChain "time-too-old" "time-too-old"
        "A header's time MUST be later than the median time of its 11 ancestors."
        "BIP-0113; ContextualCheckBlockHeader, GetMedianTimePast (chain.h)"
    TimeTimewarpAttack HeaderInChain "time-timewarp-attack" "time-timewarp-attack"
        "On testnet4 the first header of a retarget period MUST NOT be more than 600 seconds earlier than its parent."
        "BIP-0094; ContextualCheckBlockHeader"
    TimeTooNew HeaderInChain "time-too-new" "time-too-new"
        "A header's time MUST NOT be more than two hours after the clock's; the block may become valid later."
        "ContextualCheckBlockHeader, MAX_FUTURE_BLOCK_TIME (chain.h)"
    BadVersion HeaderInChain "bad-version" "bad-version"
        "A header's version MUST be at least 2, 3 and 4 once BIP-0034, BIP-0066 and BIP-0065 are active."
        "BIP-0034, BIP-0066, BIP-0065; ContextualCheckBlockHeader"
    TxNonfinal BlockInChain "tx-nonfinal" "bad-txns-nonfinal"
        "A transaction's lock time MUST have passed, or every input's sequence be final; time is the median time past since BIP-0113."
        "BIP-0113; ContextualCheckBlock, IsFinalTx (consensus/tx_verify.cpp)"
    BadCbHeight BlockInChain "bad-cb-height" "bad-cb-height"
        "A coinbase's scriptSig MUST begin with the block's height, pushed in its shortest form, since BIP-0034."
        "BIP-0034; ContextualCheckBlock"
    BadWitnessNonceSize BlockInChain "bad-witness-nonce-size" "bad-witness-nonce-size"
        "A coinbase that commits to witnesses MUST have a witness of exactly one item of 32 bytes; the bytes, not the hash, are refused."
        "BIP-0141; ContextualCheckBlock, CheckWitnessMalleation (validation.cpp)"
    BadWitnessMerkleMatch BlockInChain "bad-witness-merkle-match" "bad-witness-merkle-match"
        "A witness commitment MUST be the hash of the witness merkle root and the reserved value; the bytes, not the hash, are refused."
        "BIP-0141; ContextualCheckBlock, CheckWitnessMalleation (validation.cpp)"
    UnexpectedWitness BlockInChain "unexpected-witness" "unexpected-witness"
        "A block without a witness commitment MUST NOT have witnesses; the bytes, not the hash, are refused."
        "BIP-0141; ContextualCheckBlock, CheckWitnessMalleation (validation.cpp)"
    BadBlkWeight BlockInChain "bad-blk-weight" "bad-blk-weight"
        "A block MUST NOT weigh more than 4,000,000 units."
        "BIP-0141; ContextualCheckBlock, GetBlockWeight (consensus/validation.h)"
    Bip30 Coins "bad-txns-BIP30" "bad-txns-BIP30"
        "A transaction MUST NOT have the txid of an earlier one of which an output is unspent, but for two blocks of 2010."
        "BIP-0030; ConnectBlock (validation.cpp)"
    TxInputsMissingorspent Coins "bad-txns-inputs-missingorspent" "bad-txns-inputs-missingorspent"
        "An input MUST spend an output that exists before it and is unspent."
        "CheckTxInputs (consensus/tx_verify.cpp)"
    TxPrematureSpendOfCoinbase Coins "bad-txns-premature-spend-of-coinbase" "bad-txns-premature-spend-of-coinbase"
        "An output of a coinbase MUST NOT be spent within 100 blocks."
        "CheckTxInputs (consensus/tx_verify.cpp), COINBASE_MATURITY"
    TxInputvaluesOutofrange Coins "bad-txns-inputvalues-outofrange" "bad-txns-inputvalues-outofrange"
        "The value of each input and their sum MUST be from 0 to 21,000,000 coins."
        "CheckTxInputs (consensus/tx_verify.cpp)"
    TxInBelowout Coins "bad-txns-in-belowout" "bad-txns-in-belowout"
        "A transaction's outputs MUST NOT exceed its inputs."
        "CheckTxInputs (consensus/tx_verify.cpp)"
    AccumulatedFeeOutofrange Coins "bad-txns-accumulated-fee-outofrange" "bad-txns-accumulated-fee-outofrange"
        "The sum of a block's fees MUST NOT exceed 21,000,000 coins."
        "ConnectBlock (validation.cpp)"
    TxSequenceLocks Coins "tx-sequence-locks" "bad-txns-nonfinal"
        "A transaction's relative lock times MUST have passed, since BIP-0068."
        "BIP-0068; ConnectBlock, SequenceLocks (consensus/tx_verify.cpp)"
    BlockSigopsCost Coins "block-sigops-cost" "bad-blk-sigops"
        "The cost of a block's signature operations MUST NOT exceed 80,000."
        "BIP-0141; ConnectBlock, GetTransactionSigOpCost (consensus/tx_verify.cpp)"
    BadCbAmount Coins "bad-cb-amount" "bad-cb-amount"
        "A coinbase MUST NOT pay more than the subsidy of its height and the block's fees."
        "BIP-0042; ConnectBlock, GetBlockSubsidy (validation.cpp)"
    ScriptVerify Scripts "block-script-verify-flag-failed" "block-script-verify-flag-failed"
        "Every input's scripts MUST succeed under the flags of the block's height."
        "BIP-0016, 0065, 0066, 0112, 0141, 0143, 0147, 0341, 0342; ConnectBlock, CheckInputScripts, VerifyScript (script/interpreter.cpp)"
}

impl Rule {
    pub fn info(self) -> &'static RuleInfo {
        &RULES[self as usize]
    }

    /// Whether a violation concerns only these bytes and not the block's hash, so that other bytes with the same hash
    /// may be valid: Core's `BLOCK_MUTATED` (CVE-2012-2459; BIP-0141).
    pub fn is_of_the_bytes(self) -> bool {
        use Rule::*;
        matches!(
            self,
            BadTxnmrklroot | BadTxnsDuplicate | BadWitnessNonceSize | BadWitnessMerkleMatch | UnexpectedWitness
        )
    }
}

/// A rule that a block breaks, and the place.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Violation {
    pub rule: Rule,
    /// Index of the transaction in its block.
    pub tx: Option<usize>,
    /// Index of the input in its transaction.
    pub input: Option<usize>,
    /// Why the script failed ([`Rule::ScriptVerify`]).
    pub script_error: Option<ScriptError>,
    /// The header's version ([`Rule::BadVersion`]).
    pub version: Option<i32>,
    /// Details for the log.
    pub detail: Option<Detail>,
}

impl Violation {
    pub fn of(rule: Rule) -> Violation {
        Violation { rule, tx: None, input: None, script_error: None, version: None, detail: None }
    }

    pub fn in_tx(rule: Rule, tx: usize) -> Violation {
        Violation { tx: Some(tx), ..Violation::of(rule) }
    }

    pub fn in_input(rule: Rule, tx: usize, input: usize) -> Violation {
        Violation { input: Some(input), ..Violation::in_tx(rule, tx) }
    }

    /// The text that Core reports for the block.
    pub fn reject_reason(&self) -> String {
        let reason = self.rule.info().reject_reason;
        match (self.version, self.script_error) {
            (Some(version), _) => format!("{reason}(0x{version:08x})"),
            (None, Some(error)) => format!("{reason} ({})", error.text()),
            (None, None) => reason.to_owned(),
        }
    }
}

impl fmt::Display for Violation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.reject_reason())?;
        if let Some(tx) = self.tx {
            write!(f, " in transaction {tx}")?;
        }
        if let Some(input) = self.input {
            write!(f, ", input {input}")?;
        }
        Ok(())
    }
}

impl std::error::Error for Violation {}

/// One entry of a table of checks: a pure function of the gathered facts. Policy has rules of its own.
pub struct Check<Facts, R = Rule> {
    pub rule: R,
    /// Whether the rule holds.
    pub holds: fn(&Facts) -> bool,
}

impl<Facts, R: fmt::Debug> fmt::Debug for Check<Facts, R> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Check({:?})", self.rule)
    }
}

/// The first rule of a table that is broken.
pub fn first_broken<Facts, R: Copy>(checks: &[Check<Facts, R>], facts: &Facts) -> Option<R> {
    checks.iter().find(|check| !(check.holds)(facts)).map(|check| check.rule)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::HashSet;

    #[test]
    fn the_table_is_one_with_the_enum() {
        let mut names = HashSet::new();
        for (index, info) in RULES.iter().enumerate() {
            assert_eq!(info.rule as usize, index);
            assert_eq!(info.rule.info().name, info.name);
            assert!(names.insert(info.name), "{} twice", info.name);
            assert!(info.must.contains("MUST"), "{}", info.name);
            assert!(info.source.len() > 5);
        }
    }

    #[test]
    fn reject_reasons_are_cores() {
        let version = Violation { version: Some(1), ..Violation::of(Rule::BadVersion) };
        assert_eq!(version.reject_reason(), "bad-version(0x00000001)");
        let negative = Violation { version: Some(-1), ..Violation::of(Rule::BadVersion) };
        assert_eq!(negative.reject_reason(), "bad-version(0xffffffff)");
        assert_eq!(
            Violation::in_input(Rule::TxInBelowout, 3, 1).to_string(),
            "bad-txns-in-belowout in transaction 3, input 1"
        );
    }
}
