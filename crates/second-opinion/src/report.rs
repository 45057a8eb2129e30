//! [`Report`]: what became of a block, as one sentence, for a [`Listener`]; and [`Counts`] of all blocks.

use crate::verifier::Rejection;
use lydian_primitives::{BlockHash, Height, Txid};
use std::fmt::{self, Debug, Display};

/// Advice for the user after a disagreement.
const ADVICE: &str = "Either Lydian or this build of Bitcoin Core has a bug, or this machine computes wrongly. Until you know which, do not rely on \
                      payments in this block or after it: compare the block hash at this height with a node that runs Bitcoin Core, and report the \
                      disagreement to the developers of Lydian.";

/// Why a block was chosen.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Why {
    /// It is new, and the initial block download is over.
    Tip,
    /// It is in the sample of the sync.
    Sample,
}

/// What became of a chosen block, or of all of them.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Report {
    /// The verifier agrees with the engine: every input of the block is valid.
    Verified { height: Height, hash: BlockHash, inputs: usize },
    /// The verifier disagrees: the first input that it rejects.
    Rejected { height: Height, hash: BlockHash, txid: Txid, rejection: Rejection },
    /// The verifier could not decide.
    Failed { height: Height, hash: BlockHash, reason: String },
    /// A block at the tip that is not verified, because too many blocks wait.
    LeftOut { height: Height, hash: BlockHash },
    /// The end: no more blocks will be verified.
    Ended(Counts),
}

/// A receiver of reports, from any thread. It must be quick and must never call the engine.
pub trait Listener: Debug + Send + Sync {
    fn report(&self, report: &Report);
}

/// Numbers of blocks.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Counts {
    /// At the tip, for which the verifier returned a verdict.
    pub tip: u64,
    /// In the sample of the sync, for which the verifier returned a verdict.
    pub sampled: u64,
    /// Those of both that the verifier rejects.
    pub rejected: u64,
    /// For which the verifier failed.
    pub failed: u64,
    /// At the tip, not verified: too many blocks waited, or the node ended.
    pub left_out: u64,
    /// In the sample, not verified, for the same reasons.
    pub skipped: u64,
}

impl Display for Report {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Report::Verified { height, hash, inputs } => {
                write!(f, "the code of Bitcoin Core agrees on block {hash} at height {} ({inputs} inputs)", height.0)
            }
            Report::Rejected { height, hash, txid, rejection: Rejection { input, reason } } => {
                write!(f, "the code of Bitcoin Core rejects block {hash} at height {}, ", height.0)?;
                write!(f, "which Lydian accepted: transaction {txid}, ")?;
                match input {
                    Some(input) => write!(f, "input {input}: {reason}. {ADVICE}"),
                    None => write!(f, "{reason}. {ADVICE}"),
                }
            }
            Report::Failed { height, hash, reason } => write!(
                f,
                "the code of Bitcoin Core could not verify block {hash} at height {}, which stays accepted: {reason}",
                height.0
            ),
            Report::LeftOut { height, hash } => write!(
                f,
                "block {hash} at height {} is not verified by the code of Bitcoin Core, because too many blocks wait",
                height.0
            ),
            Report::Ended(counts) => {
                let Counts { tip, sampled, rejected, failed, left_out, skipped } = counts;
                write!(f, "blocks verified by the code of Bitcoin Core: {tip} at the tip, {sampled} of the sync; ")?;
                write!(f, "{rejected} rejected, {failed} failed; ")?;
                write!(f, "not verified: {left_out} at the tip, {skipped} of the sample")
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_report_is_a_sentence() {
        let (height, hash, txid) = (Height(7), BlockHash([1; 32]), Txid([2; 32]));
        let (block, tx) = ("01".repeat(32), "02".repeat(32));
        let rejected = |input| {
            let rejection = Rejection { input, reason: "a reason".to_owned() };
            Report::Rejected { height, hash, txid, rejection }.to_string()
        };
        let head = format!(
            "the code of Bitcoin Core rejects block {block} at height 7, which Lydian accepted: transaction {tx}, "
        );
        assert_eq!(rejected(Some(3)), format!("{head}input 3: a reason. {ADVICE}"));
        assert_eq!(rejected(None), format!("{head}a reason. {ADVICE}"));
        let counts = Counts { tip: 1, sampled: 2, rejected: 3, failed: 4, left_out: 5, skipped: 6 };
        assert_eq!(
            Report::Ended(counts).to_string(),
            "blocks verified by the code of Bitcoin Core: 1 at the tip, 2 of the sync; 3 rejected, 4 failed; not verified: 5 at the tip, 6 of \
             the sample"
        );
    }
}
