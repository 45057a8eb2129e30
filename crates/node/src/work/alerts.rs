//! Warnings about the chain, and the commands of `-alertnotify`: Core's `CheckForkWarningConditions`, the second half
//! of its `UpdateTip`, and `AlertNotify`. Input: an engine, polled a few times a second. Output: [`Warnings`], lines in
//! the log, processes. Cost: reads the tip; reads all headers only after a block was found to be invalid, and those of
//! the active chain once per period of version bits. Warnings about disks and files: [`super::faults`].

use super::faults::Faults;
use super::watcher::Watcher;
use crate::log::Log;
use crate::notify::Notifier;
use crate::run::Session;
use lydian_consensus::U256;
use lydian_consensus::pow::block_proof;
use lydian_engine::{Engine, InitialDownload};
use lydian_p2p::manager::{CLOCK_OUT_OF_SYNC, SyncFigures};
use lydian_primitives::BlockHash;
use lydian_rpc::{UnknownRules, Warning, Warnings};
use std::sync::Arc;

/// A warning is raised for an invalid chain with more work than this many blocks on the tip.
const INVALID_CHAIN_BLOCKS: u32 = 6;

/// Core's text; the log has it without the first word.
const INVALID_CHAIN: &str = "Warning: Found invalid chain more than 6 blocks longer than our best chain. This could be due to database corruption or \
                             consensus incompatibility with peers.";

/// The characters of Core's `SAFE_CHARS_DEFAULT` that are neither letters nor digits.
const SAFE_MARKS: &str = " .,;-_/:?@()";

/// Sets warnings, and runs the commands of `-alertnotify` for new ones.
#[derive(Clone, Debug)]
pub(super) struct Alarm {
    notifier: Notifier,
    commands: Vec<String>,
    warnings: Arc<Warnings>,
}

impl Alarm {
    pub(super) fn new(session: &Session<'_>) -> Alarm {
        Alarm {
            notifier: session.notifier.clone(),
            commands: session.settings.alertnotify.clone(),
            warnings: Arc::clone(&session.warnings),
        }
    }

    /// Core's `warningSet`: returns whether the warning is new.
    pub(super) fn warn(&self, id: Warning, message: &str) -> bool {
        let is_new = self.warnings.set(id, message);
        if is_new {
            self.alert(message);
        }
        is_new
    }

    /// Sets or changes a warning, or ends it if there is no message. Returns whether the message is new.
    pub(super) fn keep(&self, id: Warning, message: Option<&str>) -> bool {
        let Some(message) = message else {
            self.unwarn(id);
            return false;
        };
        let is_new = self.warnings.replace(id, message);
        if is_new {
            self.alert(message);
        }
        is_new
    }

    pub(super) fn unwarn(&self, id: Warning) {
        self.warnings.unset(id);
    }

    pub(super) fn has(&self, id: Warning) -> bool {
        self.warnings.has(id)
    }

    fn alert(&self, message: &str) {
        self.notifier.start(&self.commands, &format!("'{}'", sanitized(message)));
    }
}

/// Watches one engine.
#[derive(Debug)]
pub(super) struct Alerts {
    log: Arc<Log>,
    alarm: Alarm,
    initial_download: Arc<InitialDownload>,
    /// The invalid block with the most work: Core's `m_best_invalid`.
    best_invalid: Option<(BlockHash, U256)>,
    rules: UnknownRules,
    faults: Faults,
}

impl Alerts {
    pub(super) fn new(session: &Session<'_>) -> Alerts {
        Alerts {
            log: Arc::clone(&session.log),
            alarm: Alarm::new(session),
            initial_download: Arc::clone(&session.initial_download),
            best_invalid: None,
            rules: UnknownRules::default(),
            faults: Faults::new(session),
        }
    }

    /// Checks whether a warning begins or ends. Lines about new tips get the warning about rules that are locked in.
    pub(super) fn look(&mut self, engine: &Engine, watcher: &Watcher) {
        if watcher.take_invalid_found() {
            self.best_invalid = best_invalid(engine);
        }
        self.check_invalid_chain(engine);
        self.faults.look(&self.alarm, engine, watcher);
        watcher.warns_of(self.look_at_rules(engine));
    }

    /// Returns the warning about rules that are locked in; empty for none.
    fn look_at_rules(&mut self, engine: &Engine) -> String {
        let mut locked_in = Vec::new();
        if !self.initial_download.is_on() {
            for rule in engine.with_tree(|tree| self.rules.find(tree, engine.params().chain)) {
                let message = format!("Unknown new rules activated (versionbit {})", rule.bit);
                match rule.is_active {
                    true => drop(self.alarm.warn(Warning::UnknownNewRulesActivated, &message)),
                    false => locked_in.push(message),
                }
            }
        }
        locked_in.join(", ")
    }

    /// Warns while the clocks of most outbound peers differ from ours: Core's `WarnIfOutOfSync`.
    pub(super) fn look_at_clock(&self, figures: &SyncFigures) {
        match figures.is_clock_out_of_sync {
            true => drop(self.alarm.warn(Warning::ClockOutOfSync, CLOCK_OUT_OF_SYNC)),
            false => self.alarm.unwarn(Warning::ClockOutOfSync),
        }
    }

    fn check_invalid_chain(&mut self, engine: &Engine) {
        let Some((hash, work)) = self.best_invalid else {
            self.alarm.unwarn(Warning::LargeWorkInvalidChain);
            return;
        };
        let (is_invalid, bound) = engine.with_tree(|tree| {
            let tip = tree.node(tree.tip());
            let ahead = block_proof(tip.header.bits).wrapping_mul_u32(INVALID_CHAIN_BLOCKS);
            (tree.find(&hash).is_some_and(|id| tree.node(id).is_invalid), tip.chain_work.checked_add(ahead))
        });
        if !is_invalid {
            // The operator has reconsidered it.
            self.best_invalid = None;
        }
        if is_invalid && bound.is_some_and(|bound| work > bound) {
            if self.alarm.warn(Warning::LargeWorkInvalidChain, INVALID_CHAIN) {
                self.log.warning(INVALID_CHAIN.trim_start_matches("Warning: "));
            }
        } else {
            self.alarm.unwarn(Warning::LargeWorkInvalidChain);
        }
    }
}

/// The invalid block with the most work, among those whose bytes are stored, as in Core's block index.
fn best_invalid(engine: &Engine) -> Option<(BlockHash, U256)> {
    engine.with_tree(|tree| {
        let nodes = tree.ids().map(|id| tree.node(id));
        let invalid = nodes.filter(|node| node.is_invalid && node.block.is_some());
        invalid.map(|node| (node.hash, node.chain_work)).max_by_key(|(_, work)| *work)
    })
}

/// Core's `SanitizeString`: removes everything that a shell would interpret.
fn sanitized(message: &str) -> String {
    message.chars().filter(|letter| letter.is_ascii_alphanumeric() || SAFE_MARKS.contains(*letter)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The message is passed to a shell between single quotes.
    #[test]
    fn a_message_cannot_end_its_quotes() {
        let message = "Unknown new rules activated (versionbit 3)";
        assert_eq!(sanitized(message), message);
        assert_eq!(sanitized("a'; rm -rf $HOME `b` \"c\" > d\n\\é"), "a; rm -rf HOME b c  d");
    }
}
