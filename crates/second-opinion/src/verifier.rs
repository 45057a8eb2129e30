//! [`Verifier`]: the code that verifies scripts again. Input: one transaction with the outputs it spends. Output: the
//! first input that it rejects, if any.
//!
//! A whole transaction is passed, not one input, since Core parses a transaction and computes the hashes that its
//! signatures share once for all inputs.

use lydian_primitives::Output;
use lydian_script::Flags;
use std::fmt::{self, Debug};

/// A transaction whose scripts are to be verified.
#[derive(Clone, Copy, Debug)]
pub struct Spend<'a> {
    /// With witness, as in the block.
    pub tx: &'a [u8],
    /// The outputs it spends, in the order of its inputs.
    pub spent: &'a [Output<'a>],
    /// The flags of the block.
    pub flags: Flags,
}

/// What a verifier rejects.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Rejection {
    /// The index of the input; `None` if the transaction cannot be decoded.
    pub input: Option<usize>,
    /// In the verifier's words.
    pub reason: String,
}

/// The verifier cannot decide. Never a verdict.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct VerifierError(pub String);

impl fmt::Display for VerifierError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl std::error::Error for VerifierError {}

/// Code that verifies scripts.
pub trait Verifier: Debug + Send {
    /// Verifies the inputs in their order. Returns the first one that is invalid, or `None` if there is none.
    ///
    /// If `is_ended` returns true before the last input, it may return `None`: the answer is not used. It should ask
    /// before each input, since the node waits for the verifier when it ends.
    fn verify(&mut self, spend: &Spend<'_>, is_ended: &dyn Fn() -> bool) -> Result<Option<Rejection>, VerifierError>;
}
