//! Warnings about the chain, and the commands of `-alertnotify`: Core's `CheckForkWarningConditions`, the second half
//! of its `UpdateTip`, and `AlertNotify`. Input: an engine, looked at a few times a second. Output: [`Warnings`], lines
//! in the log, processes. Cost: a look at the tip; at all headers only after a block was found to be invalid, and at
//! those of the active chain once a period of version bits.

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

/// An invalid chain with more work than this many blocks above the tip is warned of.
const INVALID_CHAIN_BLOCKS: u32 = 6;

/// Core's words, in the log without the first.
const INVALID_CHAIN: &str = "Warning: Found invalid chain more than 6 blocks longer than our best chain. This could be due to database corruption or \
                             consensus incompatibility with peers.";

/// What of Core's `SAFE_CHARS_DEFAULT` is neither letter nor digit.
const SAFE_MARKS: &str = " .,;-_/:?@()";

/// Watches one engine.
#[derive(Debug)]
pub(super) struct Alerts {
    log: Arc<Log>,
    notifier: Notifier,
    commands: Vec<String>,
    warnings: Arc<Warnings>,
    initial_download: Arc<InitialDownload>,
    /// The invalid block with most work: Core's `m_best_invalid`.
    best_invalid: Option<(BlockHash, U256)>,
    rules: UnknownRules,
}

impl Alerts {
    pub(super) fn new(session: &Session<'_>) -> Alerts {
        Alerts {
            log: Arc::clone(&session.log),
            notifier: session.notifier.clone(),
            commands: session.settings.alertnotify.clone(),
            warnings: Arc::clone(&session.warnings),
            initial_download: Arc::clone(&session.initial_download),
            best_invalid: None,
            rules: UnknownRules::default(),
        }
    }

    /// Looks whether a warning begins or ends. `is_invalid_found`: since the last look a block was found to be invalid,
    /// or this is the first look.
    ///
    /// Returns what `UpdateTip` lines say of rules that are locked in.
    pub(super) fn look(&mut self, engine: &Engine, is_invalid_found: bool) -> String {
        if is_invalid_found {
            self.best_invalid = best_invalid(engine);
        }
        self.check_invalid_chain(engine);
        let mut locked_in = Vec::new();
        if !self.initial_download.is_on() {
            for rule in engine.with_tree(|tree| self.rules.find(tree, engine.params().chain)) {
                let message = format!("Unknown new rules activated (versionbit {})", rule.bit);
                match rule.is_active {
                    true => drop(self.warn(Warning::UnknownNewRulesActivated, &message)),
                    false => locked_in.push(message),
                }
            }
        }
        locked_in.join(", ")
    }

    /// Warns as long as the clocks of most outbound peers differ from ours: Core's `WarnIfOutOfSync`.
    pub(super) fn look_at_clock(&self, figures: &SyncFigures) {
        match figures.is_clock_out_of_sync {
            true => drop(self.warn(Warning::ClockOutOfSync, CLOCK_OUT_OF_SYNC)),
            false => drop(self.warnings.unset(Warning::ClockOutOfSync)),
        }
    }

    fn check_invalid_chain(&mut self, engine: &Engine) {
        let Some((hash, work)) = self.best_invalid else {
            self.warnings.unset(Warning::LargeWorkInvalidChain);
            return;
        };
        let (is_invalid, bound) = engine.with_tree(|tree| {
            let tip = tree.node(tree.tip());
            let ahead = block_proof(tip.header.bits).wrapping_mul_u32(INVALID_CHAIN_BLOCKS);
            (tree.find(&hash).is_some_and(|id| tree.node(id).is_invalid), tip.chain_work.checked_add(ahead))
        });
        if !is_invalid {
            // Reconsidered by the operator.
            self.best_invalid = None;
        }
        if is_invalid && bound.is_some_and(|bound| work > bound) {
            if self.warn(Warning::LargeWorkInvalidChain, INVALID_CHAIN) {
                self.log.warning(INVALID_CHAIN.trim_start_matches("Warning: "));
            }
        } else {
            self.warnings.unset(Warning::LargeWorkInvalidChain);
        }
    }

    /// Core's `warningSet`.
    fn warn(&self, id: Warning, message: &str) -> bool {
        let is_new = self.warnings.set(id, message);
        if is_new {
            self.notifier.start(&self.commands, &format!("'{}'", sanitized(message)));
        }
        is_new
    }
}

/// Of the blocks whose bytes are here, as Core's block index remembers them.
fn best_invalid(engine: &Engine) -> Option<(BlockHash, U256)> {
    engine.with_tree(|tree| {
        let nodes = tree.ids().map(|id| tree.node(id));
        let invalid = nodes.filter(|node| node.is_invalid && node.block.is_some());
        invalid.map(|node| (node.hash, node.chain_work)).max_by_key(|(_, work)| *work)
    })
}

/// Core's `SanitizeString`: nothing is left that a shell would understand.
fn sanitized(message: &str) -> String {
    message.chars().filter(|letter| letter.is_ascii_alphanumeric() || SAFE_MARKS.contains(*letter)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The message goes between single quotes to a shell.
    #[test]
    fn a_message_cannot_end_its_quotes() {
        let message = "Unknown new rules activated (versionbit 3)";
        assert_eq!(sanitized(message), message);
        assert_eq!(sanitized("a'; rm -rf $HOME `b` \"c\" > d\n\\é"), "a; rm -rf HOME b c  d");
    }
}
