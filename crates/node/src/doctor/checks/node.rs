//! Checks of the running node by its answers: peers, the age of the tip, warnings, the lag of indexes.

use super::with_settings;
use crate::clock::now;
use crate::display::duration;
use crate::doctor::check::Answer;
use crate::doctor::facts::Facts;
use crate::doctor::rpc::Answers;
use crate::screen::{commas, count};
use crate::settings::Settings;
use lydian_consensus::Chain;
use serde_json::Value;

/// Asks the running node; skipped if none runs, a warning if it does not answer.
fn with_answers(facts: &Facts<'_>, ask: impl FnOnce(&Settings, &Answers) -> Answer) -> Answer {
    with_settings(facts, |settings| match facts.answers() {
        Ok(answers) => ask(settings, answers),
        Err(words) => Answer::skipped(words),
    })
}

pub(crate) fn answers(facts: &Facts<'_>) -> Answer {
    match (&facts.answers, facts.answers()) {
        (None, _) => Answer::skipped("no node runs"),
        (Some(_), Ok(answers)) => {
            let uptime = span(u32::try_from(answers.uptime_seconds).unwrap_or(u32::MAX));
            Answer::ok(format!("the node answers; it runs for {uptime}"))
        }
        (Some(_), Err(words)) => Answer::warning(words),
    }
}

/// A node that has run this long should have found peers.
const PEERS_AFTER_SECONDS: u64 = 600;

pub(crate) fn peers(facts: &Facts<'_>) -> Answer {
    with_answers(facts, |settings, answers| {
        let number = |name: &str| answers.network[name].as_u64().unwrap_or(0);
        let (inbound, outbound) = (number("connections_in"), number("connections_out"));
        let words = format!("{} to and {} from other nodes", count(outbound, "connection"), commas(inbound));
        let wants_none = settings.net.connect.as_ref().is_some_and(Vec::is_empty) && settings.net.added.is_empty();
        match () {
            () if wants_none => Answer::ok(format!("{words}; these settings make none (-connect=0)")),
            () if answers.network["networkactive"] == false => {
                Answer::warning("the network is switched off (setnetworkactive)")
            }
            () if outbound == 0 && inbound == 0 && answers.uptime_seconds >= PEERS_AFTER_SECONDS => Answer::bad(words),
            () if outbound == 0 => Answer::warning(words),
            () => Answer::ok(words),
        }
    })
}

/// A span of time in words. The days of a very old tip, such as a genesis block, say nothing.
fn span(seconds: u32) -> String {
    const YEAR: u32 = 365 * 24 * 3_600;
    if seconds < YEAR { duration(f64::from(seconds)) } else { "over a year".to_owned() }
}

/// Three hours without a block are once in 65 million blocks; a day is never.
const TIP_WARNING_SECONDS: u32 = 3 * 3_600;
const TIP_BAD_SECONDS: u32 = 24 * 3_600;

pub(crate) fn tip(facts: &Facts<'_>) -> Answer {
    with_answers(facts, |settings, answers| judge_tip(settings.params.chain, &answers.chain, now()))
}

/// `chain` is the answer of `getblockchaininfo`.
fn judge_tip(name: Chain, chain: &Value, now: u32) -> Answer {
    let number = |name: &str| chain[name].as_u64().unwrap_or(0);
    let (blocks, headers) = (number("blocks"), number("headers"));
    let age = now.saturating_sub(u32::try_from(number("time")).unwrap_or(0));
    let words = format!("the tip is at height {} of {}, {} old", commas(blocks), commas(headers), span(age));
    match () {
        () if name == Chain::Regtest => Answer::ok(words),
        () if chain["initialblockdownload"] == true && blocks < headers => {
            Answer::ok(format!("the node syncs: {words}"))
        }
        () if age >= TIP_BAD_SECONDS => Answer::bad(words),
        () if age >= TIP_WARNING_SECONDS => Answer::warning(words),
        () => Answer::ok(words),
    }
}

pub(crate) fn warnings(facts: &Facts<'_>) -> Answer {
    with_answers(facts, |_, answers| {
        let of = |value: &Value| match value {
            Value::String(text) => vec![text.clone()],
            Value::Array(texts) => texts.iter().filter_map(|text| Some(text.as_str()?.to_owned())).collect(),
            _ => Vec::new(),
        };
        let texts = of(&answers.chain["warnings"]).into_iter().filter(|text| !text.is_empty());
        Answer::worst(texts.map(Answer::warning).collect(), || Answer::ok("the node has no warning"))
    })
}

/// Blocks that an index may be behind.
const LAG_MAX: u64 = 6;

pub(crate) fn indexes(facts: &Facts<'_>) -> Answer {
    let stopped = facts.status.iter().filter(|_| facts.is_running()).flat_map(|status| &status.indexes);
    let mut findings: Vec<Answer> = stopped
        .filter_map(|index| Some(Answer::bad(format!("{} is stopped: {}", index.name, index.error.as_ref()?))))
        .collect();
    let asked = with_answers(facts, |_, answers| {
        let blocks = answers.chain["blocks"].as_u64().unwrap_or(0);
        let Some(indexes) = answers.indexes.as_object() else { return Answer::skipped("the node has no index") };
        let behind = indexes.iter().filter_map(|(name, index)| {
            let height = index["best_block_height"].as_u64().unwrap_or(0);
            let lag = blocks.saturating_sub(height);
            (lag > LAG_MAX).then(|| Answer::warning(format!("{name} is {} behind", count(lag, "block"))))
        });
        Answer::worst(behind.collect(), || match indexes.len() {
            0 => Answer::ok("the node has no index"),
            some => Answer::ok(format!("{} at the tip", count(some as u64, "index").replace("indexs", "indexes"))),
        })
    });
    findings.push(asked);
    Answer::worst(findings, || Answer::skipped("no node runs"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::doctor::check::Level;
    use serde_json::json;

    #[test]
    fn an_old_tip_is_a_fault_after_the_sync() {
        const NOW: u32 = 2_000_000_000;
        let level = |name, age: u32, headers: u32, syncs: bool| {
            let chain = json!({"blocks": 10, "headers": headers, "time": NOW - age, "initialblockdownload": syncs});
            judge_tip(name, &chain, NOW).level
        };
        let of_main = |age| level(Chain::Main, age, 10, false);
        assert_eq!([0, TIP_WARNING_SECONDS - 1].map(of_main), [Level::Ok; 2]);
        assert_eq!([TIP_WARNING_SECONDS, TIP_BAD_SECONDS - 1].map(of_main), [Level::Warning; 2]);
        assert_eq!([TIP_BAD_SECONDS, NOW].map(of_main), [Level::Bad; 2]);
        assert_eq!(level(Chain::Main, TIP_BAD_SECONDS, 11, true), Level::Ok, "it syncs");
        assert_eq!(level(Chain::Main, TIP_BAD_SECONDS, 10, true), Level::Bad, "it has no headers to sync to");
        assert_eq!(level(Chain::Regtest, TIP_BAD_SECONDS, 10, false), Level::Ok, "blocks are made on request");
    }
}
