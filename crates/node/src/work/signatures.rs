//! The choice of the signature engine, on a thread of its own: its tables and its self-test take 65 ms of processor
//! time at the start of the node, in which other threads wait for the disk.
//!
//! Input: `-sigengine`, and the records of earlier disagreements. Output: the verifier with its referee, or why there
//! is none. Invariant: nothing is verified before the self-test has passed, because the engine has no verifier until
//! then.

use super::alerts::Alarm;
use super::failure::Failure;
use super::finish;
use super::opening::secret;
use crate::clock::thread_cpu;
use crate::disagreement;
use crate::run::Session;
use lydian_curve::{ChooseError, Chosen, Disagreement, Refereed, Sampling};
use lydian_rpc::Warning;
use std::io::{self, Write};
use std::panic::resume_unwind;
use std::sync::Arc;
use std::thread::{Builder, JoinHandle};

/// The choice in progress, or its result.
#[derive(Debug)]
pub(super) struct SignatureChoice {
    name: &'static str,
    state: State,
}

#[derive(Debug)]
enum State {
    Choosing(JoinHandle<Result<Chosen, ChooseError>>),
    Chosen(Arc<Refereed>),
    Failed(ChooseError),
}

impl SignatureChoice {
    /// Begins. If an engine was wrong before, `auto` means the reference until the user has followed the advice of the
    /// warning.
    pub(super) fn start(session: &Session<'_>) -> io::Result<SignatureChoice> {
        let cases = disagreement::files(session.disk.as_ref(), &session.settings.index());
        let name = match session.settings.sigengine {
            "auto" if !cases.is_empty() => "reference",
            name => name,
        };
        if let Some(case) = cases.first() {
            let warning = format!("A signature engine was wrong ({case}). {}", disagreement::ADVICE);
            Alarm::new(session).warn(Warning::SignatureEngine, &warning);
            finish::report_remarks(session, vec![warning]);
        }
        let choose = move || lydian_curve::choose_seeded(name, secret(), thread_cpu);
        let thread = Builder::new().name("sigengine".to_owned()).spawn(choose)?;
        Ok(SignatureChoice { name, state: State::Choosing(thread) })
    }

    /// The engine that `-sigengine` names; waits for it. Kernels that compute wrongly on this machine are logged,
    /// whether or not another takes their place.
    pub(super) fn get(&mut self, session: &Session<'_>) -> Result<Arc<Refereed>, Failure> {
        let failed = State::Failed(ChooseError::Unavailable);
        self.state = match std::mem::replace(&mut self.state, failed) {
            State::Choosing(thread) => match thread.join().unwrap_or_else(|panic| resume_unwind(panic)) {
                Ok(chosen) => State::Chosen(referee(session, chosen)),
                Err(error) => State::Failed(error),
            },
            state => state,
        };
        match &self.state {
            State::Chosen(referee) => Ok(Arc::clone(referee)),
            State::Failed(error) => Err(Failure::SignatureEngine { name: self.name, error: *error }),
            State::Choosing(_) => unreachable!("the choice was waited for"),
        }
    }
}

fn referee(session: &Session<'_>, chosen: Chosen) -> Arc<Refereed> {
    let alarm = Alarm::new(session);
    for failed in &chosen.failed {
        session.log.warning(format!("Signature engine {failed} failed its self-test on this CPU and is not used"));
    }
    session.log.info(format!("Using signature engine {}", chosen.engine.name()));
    let (disk, log) = (Arc::clone(&session.disk), Arc::clone(&session.log));
    let (directory, has_console) = (session.settings.index(), session.has_console);
    let report = move |case: &Disagreement| {
        let sentence = disagreement::keep(disk.as_ref(), &log, &directory, case);
        alarm.warn(Warning::SignatureEngine, &sentence);
        if !has_console {
            // If stderr is closed, there is nowhere to report it.
            let _ = writeln!(io::stderr().lock(), "Error: {sentence}");
        }
    };
    Arc::new(Refereed::new(chosen.engine, Sampling::new(secret()), Box::new(report)))
}
