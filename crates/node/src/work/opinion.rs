//! `-secondopinion`: starts the follower that lets the code of Bitcoin Core verify blocks again, and passes on what it
//! reports. Input: a session. Output: a follower; lines in the log, a warning, the commands of `-alertnotify`. It
//! changes no verdict.
//!
//! As for Core's warnings, the command runs for the first disagreement of a process; the log has all of them.

use super::alerts::Alarm;
use super::failure::Failure;
use super::opening::secret;
use crate::log::{Category, Log};
use crate::run::Session;
use lydian_rpc::Warning;
use lydian_second_opinion::{Liar, Listener, Report, SAMPLED_ONE_IN, SecondOpinion, Settings, Verifier, bitcoin_core};
use std::io::{self, Write};
use std::sync::Arc;

/// The follower, if the settings ask for it.
pub(super) fn open(session: &Session<'_>) -> Result<Option<SecondOpinion>, Failure> {
    let settings = session.settings;
    if !settings.has_second_opinion {
        return Ok(None);
    }
    let verifier: Option<Box<dyn Verifier>> =
        if settings.test.second_opinion_lies { Some(Box::new(Liar)) } else { bitcoin_core() };
    let Some(verifier) = verifier else { return Err(Failure::NoSecondOpinion) };
    let listener =
        ToOperator { log: Arc::clone(&session.log), alarm: Alarm::new(session), has_console: session.has_console };
    let choice = Settings {
        params: settings.params.clone(),
        initial_download: Arc::clone(&session.initial_download),
        secret: secret(),
        sampled_one_in: SAMPLED_ONE_IN,
    };
    let follower = SecondOpinion::start(verifier, choice, Arc::new(listener))?;
    session.log.info("Second opinion: the code of Bitcoin Core verifies new blocks again");
    Ok(Some(follower))
}

/// Passes reports on to the operator.
#[derive(Debug)]
struct ToOperator {
    log: Arc<Log>,
    alarm: Alarm,
    has_console: bool,
}

impl Listener for ToOperator {
    fn report(&self, report: &Report) {
        let line = format!("Second opinion: {report}");
        match report {
            Report::Verified { .. } => self.log.debug(Category::VALIDATION, || line),
            Report::Rejected { .. } => {
                self.log.error(&line);
                if self.alarm.warn(Warning::SecondOpinion, &line) && !self.has_console {
                    // If stderr is closed, there is nowhere to report it.
                    let _ = writeln!(io::stderr().lock(), "Error: {line}");
                }
            }
            Report::Failed { .. } => self.log.error(line),
            Report::LeftOut { .. } => self.log.warning(line),
            Report::Ended(_) => self.log.info(line),
        }
    }
}
