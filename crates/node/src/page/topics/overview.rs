//! The topic `overview`: one sentence about the node, its tip, peers and warnings.
//!
//! The sentence is made here, from the figures of the display, so that the page and the terminal say the same.

use super::object;
use crate::display::{Figures, Late, Seen, Sync, duration};
use crate::page::PageNode;
use crate::status::MempoolStatus;
use crate::warnings;
use lydian_engine::Stage;
use serde_json::{Map, Value, json};

/// A tip of this age without peers means that the node is offline.
const OFFLINE_SECONDS: u32 = 60 * 60;

/// The state of the node, for the colour and the sign beside the sentence.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum State {
    Starting,
    Headers,
    Validating,
    InSync,
    Offline,
    Waiting,
}

impl State {
    fn name(self) -> &'static str {
        match self {
            State::Starting => "starting",
            State::Headers => "headers",
            State::Validating => "validating",
            State::InSync => "in sync",
            State::Offline => "offline",
            State::Waiting => "waiting",
        }
    }
}

pub(super) fn read(node: &PageNode) -> Map<String, Value> {
    let seen = node.sight.get();
    let (state, sentence) = sentence(&seen, node.now());
    let (share, left) = progress(&seen);
    let mut values = object(json!({
        "state": state.name(),
        "sentence": sentence,
        "share": share,
        "secondsLeft": left,
        "chain": node.chain.name(),
        "version": env!("CARGO_PKG_VERSION"),
        "uptime": node.uptime_seconds(),
        "now": node.now(),
        "warnings": warnings::shown(&node.warnings),
    }));
    if let Some(engine) = node.engine() {
        let tip = engine.tip_update();
        values.extend(object(json!({
            "height": tip.height.0,
            "hash": tip.hash.to_string(),
            "time": tip.header.time,
            "headers": engine.best_header_height().0,
        })));
    }
    if let Some(mempool) = node.mempool() {
        let MempoolStatus { transactions, vbytes, usage_bytes, min_fee } = MempoolStatus::of(&mempool);
        let mempool =
            json!({ "transactions": transactions, "vbytes": vbytes, "usage": usage_bytes, "minFee": min_fee });
        values.insert("mempool".to_owned(), mempool);
    }
    if let Seen::Syncing(syncing) = &seen {
        let net = &syncing.0.net;
        values.extend(object(json!({ "outbound": net.outbound, "inbound": net.inbound })));
    }
    values
}

/// The share of the work that is done, and the seconds that are left.
pub(in crate::page) fn progress(seen: &Seen) -> (Option<f64>, Option<f64>) {
    match seen {
        Seen::Nothing | Seen::Something(_) => (None, None),
        Seen::Validating(validating) => {
            let (now, late) = &**validating;
            (Some(now.share_done()), late.seconds_for(now.bytes_left(), &now.prices()))
        }
        Seen::Syncing(syncing) => {
            let (sync, now, late) = &**syncing;
            match sync.blocks_left() {
                0 => (Some(1.0).filter(|_| sync.is_in_step()), None),
                _ => sync.share_and_seconds(now, late),
            }
        }
    }
}

fn sentence(seen: &Seen, now: u64) -> (State, String) {
    match seen {
        Seen::Nothing => (State::Starting, "starting".to_owned()),
        Seen::Something(words) => (State::Starting, format!("starting: {words}")),
        Seen::Validating(validating) => {
            let (figures, late) = &**validating;
            let what = "validating blocks on disk";
            (State::Validating, work(what, Some(figures.share_done()), progress(seen).1, late, false))
        }
        Seen::Syncing(syncing) => {
            let (sync, figures, late) = &**syncing;
            syncing_sentence(sync, figures, late, now)
        }
    }
}

fn syncing_sentence(sync: &Sync, figures: &Figures, late: &Late, now: u64) -> (State, String) {
    let peers = sync.net.outbound + sync.net.inbound;
    let age = u32::try_from(now).unwrap_or(u32::MAX).saturating_sub(sync.tip_time);
    if sync.net.presync.is_some() {
        return (State::Headers, "downloading headers".to_owned());
    }
    if peers == 0 && sync.height > 0 && age >= OFFLINE_SECONDS {
        return (State::Offline, format!("offline, tip {} old", spoken(age)));
    }
    if sync.blocks_left() > 0 {
        let (share, left) = sync.share_and_seconds(figures, late);
        return (State::Validating, work("validating", share, left, late, true));
    }
    match sync.is_in_step() {
        true => (State::InSync, format!("in sync, last block {} ago", spoken(age))),
        false if peers == 0 => (State::Waiting, "waiting for peers".to_owned()),
        false => (State::Headers, "asking peers for headers".to_owned()),
    }
}

/// Such as `validating, 61 % of the work, signatures limit it, about 3 h left`.
fn work(what: &str, share: Option<f64>, left: Option<f64>, late: &Late, is_guess: bool) -> String {
    let mut words = what.to_owned();
    if let Some(share) = share {
        words += &format!(", {:.0} % of the work", (share * 100.0).floor());
    }
    if late.rates.working_seconds() > 0.0 {
        words += &format!(", {} it", limit(&late.rates));
    }
    if let Some(left) = left {
        words += &format!(", {}{} left", if is_guess { "about " } else { "" }, duration(left));
    }
    words
}

/// What limits the work, in words that a user knows.
fn limit(rates: &Figures) -> &'static str {
    use crate::display::Bottleneck;
    match rates.bottleneck() {
        Bottleneck::Disk => "the disk limits",
        Bottleneck::Network => "the network limits",
        Bottleneck::Input => "the order of blocks limits",
        Bottleneck::Cpu => match rates.shares().first() {
            Some((Stage::Settle, _)) => "signatures limit",
            _ => "the processor limits",
        },
    }
}

/// An age in the largest unit that fits.
fn spoken(seconds: u32) -> String {
    let unit = |count: u32, name: &str| format!("{count} {name}{}", if count == 1 { "" } else { "s" });
    match seconds {
        0..60 => unit(seconds, "second"),
        60..3_600 => format!("{} min", seconds / 60),
        3_600..86_400 => unit(seconds / 3_600, "hour"),
        _ => unit(seconds / 86_400, "day"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::display::StageFigures;
    use lydian_p2p::manager::SyncFigures;

    fn late(stages: &[(Stage, f64, f64)]) -> Late {
        let stage = |(stage, wall_seconds, cpu_seconds): &(Stage, f64, f64)| StageFigures {
            stage: *stage,
            wall_seconds: *wall_seconds,
            cpu_seconds: *cpu_seconds,
        };
        let rates = Figures { wall_seconds: 1.0, stages: stages.iter().map(stage).collect(), ..Figures::default() };
        Late { rates: rates.clone(), pace: rates.clone(), blocks: rates }
    }

    #[test]
    fn the_sentence_says_what_the_node_does() {
        let of = |sync: Sync, late: &Late| {
            let (state, words) = syncing_sentence(&sync, &Figures::default(), late, 1_000_000);
            (state.name(), words)
        };
        let net = SyncFigures { outbound: 2, headers_height: 100, ..SyncFigures::default() };
        let sync = Sync { net, height: 100, tip_time: 1_000_000 - 250, ..Sync::default() };
        let nothing = late(&[]);
        assert_eq!(of(sync, &nothing), ("in sync", "in sync, last block 4 min ago".to_owned()));
        let alone = SyncFigures { outbound: 0, ..net };
        let old = Sync { net: alone, tip_time: 1_000_000 - 2 * 86_400 - 5, ..sync };
        assert_eq!(of(old, &nothing), ("offline", "offline, tip 2 days old".to_owned()));
        assert_eq!(of(Sync { net: alone, ..sync }, &nothing), ("waiting", "waiting for peers".to_owned()));
        let behind = Sync { height: 61, share: Some(0.613), ..sync };
        let signatures = late(&[(Stage::Settle, 3.0, 3.0), (Stage::Parse, 1.0, 1.0)]);
        let words = "validating, 61 % of the work, signatures limit it".to_owned();
        assert_eq!(of(behind, &signatures), ("validating", words));
        let disk = late(&[(Stage::Fund, 3.0, 0.1)]);
        assert_eq!(of(behind, &disk).1, "validating, 61 % of the work, the disk limits it");
    }

    #[test]
    fn the_sentence_has_the_time_left() {
        let signatures = late(&[(Stage::Settle, 3.0, 3.0)]);
        let of = |left, is_guess| work("validating", Some(0.619), Some(left), &signatures, is_guess);
        assert_eq!(of(3.0 * 3_600.0, true), "validating, 61 % of the work, signatures limit it, about 3h 0m left");
        assert!(!of(3.0 * 3_600.0, false).contains("about"));
    }

    #[test]
    fn an_age_has_one_unit() {
        let expected = ["1 second", "59 seconds", "1 min", "59 min", "1 hour", "23 hours", "1 day", "3 days"];
        let ages = [1, 59, 60, 3_599, 3_600, 86_399, 86_400, 300_000];
        assert_eq!(ages.map(spoken), expected);
    }
}
