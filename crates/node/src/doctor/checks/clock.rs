//! The check of the clock: the kernel's state, the peers' median, the time of the tip.

use crate::clock::now;
use crate::doctor::check::Answer;
use crate::doctor::facts::Facts;
use lydian_consensus::limits::MAX_FUTURE_BLOCK_TIME;
use lydian_disk::is_clock_synchronized;

/// Seconds by which the clock may differ from the median of the peers' clocks.
const OFFSET_WARNING: u64 = 60;
const OFFSET_BAD: u64 = 600;

/// 2026-01-01, before this release.
const RELEASE_TIME: u32 = 1_767_225_600;

pub(crate) fn clock(facts: &Facts<'_>) -> Answer {
    let network = facts.answers().ok().map(|answers| &answers.network);
    // Without a peer there is no median.
    let has_peers = network.is_some_and(|network| network["connections"].as_u64() > Some(0));
    let offset = network.filter(|_| has_peers).and_then(|network| network["timeoffset"].as_i64());
    judge(now(), is_clock_synchronized(), offset, facts.status.as_ref().map(|status| status.time))
}

/// `offset`: what the peers' clocks show more than ours, in seconds. `tip`: the time of the last block.
fn judge(now: u32, is_synchronized: Option<bool>, offset: Option<i64>, tip: Option<u32>) -> Answer {
    let differs = offset.unwrap_or(0).unsigned_abs();
    let future = u32::try_from(MAX_FUTURE_BLOCK_TIME).unwrap_or(0);
    match () {
        () if now < RELEASE_TIME => Answer::bad("the clock shows a time before this release"),
        () if tip.is_some_and(|tip| tip > now.saturating_add(future)) => {
            Answer::bad("the last block is more than two hours in the future: the clock is slow")
        }
        () if differs >= OFFSET_BAD => Answer::bad(format!("the clocks of the peers differ by {differs} s")),
        () if differs >= OFFSET_WARNING => Answer::warning(format!("the clocks of the peers differ by {differs} s")),
        () if offset.is_some() => Answer::ok(format!("it differs from the peers' clocks by {differs} s")),
        () => match is_synchronized {
            Some(true) => Answer::ok("a time service keeps it"),
            Some(false) => Answer::warning("no time service keeps it, and no peer was asked"),
            None => Answer::skipped("the system does not say whether a time service keeps it"),
        },
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::doctor::check::Level::{Bad, Ok, Skipped, Warning};

    #[test]
    fn each_state_has_its_level() {
        let now = RELEASE_TIME + 1_000_000;
        for (synchronized, offset, tip, level) in [
            (Some(true), None, None, Ok),
            (Some(false), None, None, Warning),
            (None, None, None, Skipped),
            (Some(false), Some(59), None, Ok),
            (Some(true), Some(-60), None, Warning),
            (Some(true), Some(600), None, Bad),
            (Some(true), Some(0), Some(now + 7_200), Ok),
            (Some(true), Some(0), Some(now + 7_201), Bad),
        ] {
            assert_eq!(judge(now, synchronized, offset, tip).level, level, "{synchronized:?} {offset:?} {tip:?}");
        }
        assert_eq!(judge(RELEASE_TIME - 1, Some(true), Some(0), None).level, Bad);
    }
}
