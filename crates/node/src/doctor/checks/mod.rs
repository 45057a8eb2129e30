//! The checks, a file for each group.

pub(super) mod clock;
pub(super) mod directory;
pub(super) mod disk;
pub(super) mod memory;
pub(super) mod node;
pub(super) mod ports;
pub(super) mod process;
pub(super) mod processor;
pub(super) mod sample;
pub(super) mod settings;

use super::check::Answer;
use super::facts::Facts;
use crate::settings::Settings;

/// Asks a question about the settings; skipped if there are none.
fn with_settings(facts: &Facts<'_>, ask: impl FnOnce(&Settings) -> Answer) -> Answer {
    match &facts.settings {
        Some(settings) => ask(settings),
        None => Answer::skipped("the settings cannot be read (check settings)"),
    }
}

/// Asks a question about the files of a data directory; skipped if there is none yet.
fn with_directory(facts: &Facts<'_>, ask: impl FnOnce(&Settings) -> Answer) -> Answer {
    with_settings(facts, |settings| match facts.has_directory() {
        true => ask(settings),
        false => Answer::skipped(format!("there is no {} yet", settings.datadir.display())),
    })
}
