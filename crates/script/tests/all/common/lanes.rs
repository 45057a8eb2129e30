//! Settles captured inputs of many cases in one batch, with every kernel of this CPU and with the plain lanes.
//!
//! Input: cases, in order. Output: the exact result of each. Asserted: every engine settles each input like the
//! reference, an input that settles is accepted by exact mode, and the kernel itself decided all checks except those
//! that it leaves to the reference because of their form. Must never count a fallback as the kernel's work.

use super::{report, verify};
use lydian_curve::{Check, LaneEngine, Reference};
use lydian_script::{Captured, Flags, Obligations, ScriptError, TxContext, capture_input};

/// Cases whose obligations are settled together.
#[derive(Default)]
pub(crate) struct Batch {
    obligations: Obligations,
    /// The exact result of each captured input.
    exact: Vec<Result<(), ScriptError>>,
}

/// The work of one engine.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Decided {
    /// The number of captured inputs, and how many of them held.
    pub(crate) inputs: usize,
    pub(crate) held: usize,
    /// The number of checks decided by the kernel itself, and by the reference in its place.
    pub(crate) lanes: u64,
    pub(crate) reference: u64,
}

impl Batch {
    /// Verifies in exact mode; also captures the input and keeps it for [`Batch::settle`].
    pub(crate) fn verify(&mut self, context: &TxContext<'_>, input: usize, flags: Flags) -> Result<(), ScriptError> {
        let exact = verify(context, input, flags);
        if capture_input(context, input, flags, &mut self.obligations) == Captured::Accepted {
            self.exact.push(exact);
        }
        exact
    }

    /// Settles everything with each engine. Asserts that all do the same work and returns it.
    pub(crate) fn settle(&self, name: &str) -> Decided {
        let expected = self.obligations.settle_counting(&Reference);
        let made = || self.obligations.checks().iter().zip(&expected.made).filter(|(_, made)| **made);
        let for_reference = made().filter(|(check, _)| is_for_reference(check)).count();
        let engines: Vec<LaneEngine> = LaneEngine::available().into_iter().chain([LaneEngine::plain()]).collect();
        let decided = engines.iter().map(|engine| {
            let settled = self.obligations.settle_counting(engine);
            for (i, (held, exact)) in settled.held.iter().zip(&self.exact).enumerate() {
                let obligations = self.obligations.lists().of_input(i);
                assert_eq!(*held, expected.held[i], "{engine:?}: {obligations:?}");
                // An input that does not hold is verified again in exact mode; one that holds is accepted without it.
                assert!(!held || exact.is_ok(), "{engine:?} accepts what exact mode calls {exact:?}: {obligations:?}");
            }
            assert_eq!(settled.made, expected.made, "{engine:?}");
            let (tally, held) = (engine.tally(), settled.held.iter().filter(|held| **held).count());
            assert_eq!(tally.lanes + tally.reference, made().count() as u64, "{engine:?}");
            Decided { inputs: settled.held.len(), held, lanes: tally.lanes, reference: tally.reference }
        });
        let decided: Vec<Decided> = decided.collect();
        for (engine, one) in engines.iter().zip(&decided) {
            assert_eq!(one, &decided[0], "{engine:?}");
        }
        // The reference only gets the exceptional checks and the rest of a round that is too small for lanes.
        let one = decided[0];
        report(&format!(
            "{name}: {} kernels and the plain lanes settled {} captured inputs, {} held; {} checks in lanes, {} by the reference, {for_reference} of \
             these by their form",
            engines.len() - 1,
            one.inputs,
            one.held,
            one.lanes,
            one.reference
        ));
        assert!(one.reference < for_reference as u64 + 50, "{name}: {one:?}");
        one
    }
}

/// Hybrid keys whose prefix contradicts y: the lanes leave these to the reference because of their form.
fn is_for_reference(check: &Check) -> bool {
    let Check::Ecdsa { key, .. } = check else { return false };
    let bytes = key.as_bytes();
    matches!(bytes[0], 6 | 7) && bytes[0] & 1 != bytes[bytes.len() - 1] & 1
}
