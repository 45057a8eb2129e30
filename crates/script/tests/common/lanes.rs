//! Captured inputs of many cases, settled in one batch by every kernel of this CPU and by the plain lanes.
//!
//! Input: cases, one after the other. Output: what exact mode says of each. Asserted: every engine settles each input as the
//! reference does, an input that it settles is one that exact mode accepts, and the kernel itself decided the checks but for
//! those that it leaves to the reference by their form. Must never: let a fallback pass for a kernel.

use super::{report, verify};
use lydian_curve::{Check, LaneEngine, Reference};
use lydian_script::{Captured, Flags, Obligations, ScriptError, TxContext, capture_input};

/// Cases whose obligations wait to be settled together.
#[derive(Default)]
pub(crate) struct Batch {
    obligations: Obligations,
    /// What exact mode says of each captured input.
    exact: Vec<Result<(), ScriptError>>,
}

/// What one engine had to do.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Decided {
    /// Captured inputs, and how many of them held.
    pub(crate) inputs: usize,
    pub(crate) held: usize,
    /// Checks decided by the kernel itself, and by the reference in its stead.
    pub(crate) lanes: u64,
    pub(crate) reference: u64,
}

impl Batch {
    /// Exact mode; captured too, and kept for [`Batch::settle`].
    pub(crate) fn verify(&mut self, context: &TxContext<'_>, input: usize, flags: Flags) -> Result<(), ScriptError> {
        let exact = verify(context, input, flags);
        if capture_input(context, input, flags, &mut self.obligations) == Captured::Accepted {
            self.exact.push(exact);
        }
        exact
    }

    /// Settles everything with each engine, and says what each had to do: the same.
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
                // What does not hold is verified again in exact mode; what holds is accepted without.
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
        // Nothing else goes to the reference but what is left of a round that is too small for lanes, and the exceptional.
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

/// Keys that are not compressed: their form alone decides that the lanes do not take them.
fn is_for_reference(check: &Check) -> bool {
    matches!(check, Check::Ecdsa { key, .. } if !key.is_compressed())
}
