//! [`Liar`]: a verifier that lies, for tests of what follows from a disagreement (`-test=secondopinion_lies`).

use crate::verifier::{Rejection, Spend, Verifier, VerifierError};

/// Rejects the first input of every transaction.
#[derive(Clone, Copy, Debug, Default)]
pub struct Liar;

impl Verifier for Liar {
    fn verify(&mut self, _: &Spend<'_>, _: &dyn Fn() -> bool) -> Result<Option<Rejection>, VerifierError> {
        Ok(Some(Rejection { input: Some(0), reason: "a lie, as -test asks for".to_owned() }))
    }
}
