//! The figures of a run: of its phases, of the kinds of requests, of notifications.
//!
//! Input: what clients saw, what servers announced, what processes used. Output: [`ClusterResults`], as JSON or
//! Markdown. Pure except for [`begin`] and [`Mark::now`].

use super::changes::{Change, Touched};
use super::commits::Commits;
use super::wallet::{Kind, Seen};
use super::watch::Heard;
use super::world::{Role, World};
use super::{Measurement, Settings, report};
use crate::runs::system;
use crate::scale::balancer::BackendFigures;
use crate::scale::facts::{RunFacts, ScaleReport};
use crate::scale::project::Costs;
use lydian_report::electrum::percentile;
use lydian_report::results::rounded;
use serde::Serialize;
use serde_json::Value;
use std::collections::{BTreeMap, HashMap};
use std::time::{Duration, Instant};

#[derive(Clone, Debug, Serialize)]
pub struct ClusterResults {
    #[serde(flatten)]
    pub facts: RunFacts,
    pub settings: Settings,
    /// `lydian index load` of the chain.
    pub load_seconds: Option<f64>,
    /// Of each front end, from the start of its process.
    pub first_answer_seconds: Vec<f64>,
    pub phases: Vec<PhaseResults>,
    /// In the phases without a failure.
    pub kinds: Vec<KindResults>,
    pub notified: Notified,
    /// The commit row of the store; `None` for whole nodes.
    pub commits: Option<Commits>,
    /// Failures that this machine cannot have, and why.
    pub left_out: Vec<String>,
    pub backends: Vec<BackendFigures>,
    /// What `lydian-lab scale project` uses.
    pub costs: Costs,
    /// No answer was wrong, no acknowledged commit was lost, no notification was missed, and no request failed unless
    /// most nodes of the store were down.
    pub is_right: bool,
}

#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct PhaseResults {
    pub name: String,
    /// Requests may fail: most nodes of the store are down.
    pub may_fail: bool,
    /// Reorganisations of six blocks that were completed in it.
    pub reorganisations: u32,
    /// Processes that were killed, paused or restarted.
    pub strikes: u32,
    pub seconds: f64,
    pub requests: u64,
    pub per_second: f64,
    /// Answered by an error, or not at all.
    pub failed: u64,
    /// Tries after a connection ended or was refused.
    pub repeated: u64,
    /// Errors that ask for another try because the chain is being reorganised: the client repeats the request.
    pub moving: u64,
    /// Answers that the node never gave.
    pub wrong: u64,
    /// Answers that the node gave until before the question was sent, and the longest time before.
    pub stale: u64,
    pub stale_max_ms: f64,
    /// Answers of an earlier state than one before them on the same connection.
    pub back: u64,
    pub latencies: Option<Latencies>,
    /// The longest time in which no client got an answer.
    pub gap_ms: f64,
    pub cpu_seconds: BTreeMap<Role, f64>,
    /// Keys that front ends asked of the store.
    pub reads: Option<f64>,
    /// From the beginning of the repair until everything ran and every server had the tip of the chain.
    pub recovered_seconds: Option<f64>,
    /// The first failed request or wrong answer.
    pub example: Option<String>,
}

#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Latencies {
    pub p50_ms: f64,
    pub p99_ms: f64,
    pub max_ms: f64,
}

#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct KindResults {
    pub kind: Kind,
    pub count: u64,
    pub latencies: Latencies,
}

/// From the moment when a node had connected a block, or accepted a transaction, until a server announced it, over all
/// servers. The node of a block is the one that writes the index, that of a transaction the one whose mempool is
/// followed; a whole node is its own.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct Notified {
    /// The header of a block, and the first, the middle and the last of the scripts that it touched, in phases without
    /// a failure.
    pub header: Option<Latencies>,
    pub block_first: Option<Latencies>,
    pub block_median: Option<Latencies>,
    pub block: Option<Latencies>,
    /// That last one from the call of `submitblock`, so with the validation of the block.
    pub block_submitted: Option<Latencies>,
    /// That last one in phases with a failure, and with reorganisations.
    pub block_with_failures: Option<Latencies>,
    /// The last of the scripts that transactions of the mempool touched.
    pub pool: Option<Latencies>,
    /// Changes that a connected server did not announce.
    pub missed: u64,
    /// The first of these.
    pub missed_example: Option<String>,
}

/// What a server announced, and the numbers of the nodes from which it has blocks and the mempool.
#[derive(Clone, Debug)]
pub(super) struct Announced {
    pub heard: Heard,
    pub block_node: usize,
    pub pool_node: usize,
}

/// What was used up to a moment.
#[derive(Clone, Debug)]
pub struct Mark {
    at: Instant,
    cpu: BTreeMap<Role, f64>,
    reads: Option<f64>,
}

impl Mark {
    pub fn now(world: &World<'_>) -> Mark {
        Mark { at: system::now(), cpu: world.cpu(), reads: world.reads() }
    }
}

impl Latencies {
    pub fn of(mut milliseconds: Vec<f64>) -> Option<Latencies> {
        milliseconds.sort_by(f64::total_cmp);
        let at = |per_cent| percentile(&milliseconds, per_cent).map(rounded);
        Some(Latencies { p50_ms: at(50)?, p99_ms: at(99)?, max_ms: at(100)? })
    }
}

impl PhaseResults {
    pub fn new(name: String, number: usize, seen: &[Seen], before: &Mark, after: &Mark) -> PhaseResults {
        let samples = || seen.iter().flat_map(|seen| &seen.samples).filter(|sample| sample.phase == number);
        let seconds = after.at.saturating_duration_since(before.at).as_secs_f64();
        let requests = samples().count() as u64;
        let mut phase = PhaseResults {
            name,
            seconds: rounded(seconds),
            requests,
            per_second: rounded(to_f64(requests) / seconds.max(1e-3)),
            latencies: Latencies::of(samples().map(|sample| sample.milliseconds).collect()),
            gap_ms: longest_gap(before.at, after.at, samples().map(|sample| sample.at).collect()),
            ..PhaseResults::default()
        };
        for trouble in seen.iter().filter_map(|seen| seen.trouble.get(number)) {
            phase.failed += trouble.failed;
            phase.repeated += trouble.repeated;
            phase.moving += trouble.moving;
            phase.wrong += trouble.wrong;
            phase.stale += trouble.stale;
            phase.back += trouble.back;
            phase.stale_max_ms = phase.stale_max_ms.max(rounded(trouble.stale_max.as_secs_f64() * 1e3));
            phase.example = phase.example.or_else(|| trouble.example.clone());
        }
        for role in Role::ALL {
            let at = |mark: &Mark| mark.cpu.get(&role).copied().unwrap_or(0.0);
            phase.cpu_seconds.insert(role, rounded((at(after) - at(before)).max(0.0)));
        }
        // The counters of a front end that was started again are new.
        phase.reads = after.reads.zip(before.reads).map(|(after, before)| after - before).filter(|reads| *reads >= 0.0);
        phase
    }

    /// No wrong answer, and no failed request unless it may fail.
    pub fn is_right(&self) -> bool {
        self.requests > 0 && self.wrong == 0 && (self.may_fail || self.failed == 0)
    }

    pub fn cpu_us_per_request(&self, role: Role) -> Option<f64> {
        let seconds = self.cpu_seconds.get(&role)?;
        (self.requests > 0).then(|| rounded(seconds * 1e6 / to_f64(self.requests)))
    }

    pub fn reads_per_request(&self) -> Option<f64> {
        (self.requests > 0).then_some(self.reads? / to_f64(self.requests)).map(rounded)
    }

    pub fn store_us_per_read(&self) -> Option<f64> {
        let reads = self.reads.filter(|reads| *reads > 0.0)?;
        Some(rounded(self.cpu_seconds.get(&Role::Store)? * 1e6 / reads))
    }
}

/// The times of each kind of request.
pub(super) fn by_kind(seen: &[Seen], is_quiet: &[bool]) -> Vec<KindResults> {
    let of = |kind: Kind| {
        let is_it = |phase: usize| is_quiet.get(phase).copied().unwrap_or(false);
        let samples = seen.iter().flat_map(|seen| &seen.samples);
        let times: Vec<f64> = samples
            .filter(|sample| sample.kind == kind && is_it(sample.phase))
            .map(|sample| sample.milliseconds)
            .collect();
        let count = times.len() as u64;
        Latencies::of(times).map(|latencies| KindResults { kind, count, latencies })
    };
    Kind::ALL.into_iter().filter_map(of).collect()
}

/// The longest time between two of these moments, in milliseconds.
fn longest_gap(from: Instant, until: Instant, mut answers: Vec<Instant>) -> f64 {
    answers.sort_unstable();
    let (mut longest, mut last) = (Duration::ZERO, from);
    for at in answers.into_iter().map(|at| at.min(until)).chain([until]) {
        longest = longest.max(at.saturating_duration_since(last));
        last = last.max(at);
    }
    rounded(longest.as_secs_f64() * 1e3)
}

/// When servers announced the changes; `patience` is the time after a change in which a connection must last, so that a
/// missing announcement counts. A server that was away may announce a later status of a script at once, and nothing if
/// the script has its old status again.
pub(super) fn notified(
    changes: &[(usize, Change)],
    announced: &[Announced],
    is_quiet: &[bool],
    patience: Duration,
) -> Notified {
    let mut found = Found::default();
    for (at, (phase, change)) in changes.iter().enumerate() {
        let is_quiet = is_quiet.get(*phase).copied().unwrap_or(false);
        // The statuses that each touched script has from this change on.
        let later = changes.get(at..).unwrap_or_default().iter().flat_map(|(_, change)| &change.scripts);
        let mut statuses: HashMap<&str, Vec<&Value>> = HashMap::new();
        later.for_each(|touched| statuses.entry(&touched.hash).or_default().push(&touched.status));
        for (server, Announced { heard, block_node, pool_node }) in announced.iter().enumerate() {
            let taken = change.taken_by(if change.height.is_some() { *block_node } else { *pool_node });
            let mut times = Vec::new();
            let mut missing = None;
            for touched in &change.scripts {
                let statuses = statuses.get(touched.hash.as_str()).map(Vec::as_slice).unwrap_or_default();
                match heard.script(&touched.hash, statuses, change.start) {
                    Some(at) => times.push(at),
                    None if statuses.contains(&known(heard, touched, &changes[..at], change.start)) => {}
                    None => missing = Some(touched.hash.as_str()),
                }
            }
            let head = change.height.map(|height| heard.header(u64::from(height), change.start));
            if head == Some(None) {
                missing = missing.or(Some("the header"));
            }
            match missing {
                Some(missing) if heard.lasted(change.start, taken + patience) => {
                    found.missed += 1;
                    let what =
                        change.height.map_or_else(|| "the mempool".to_owned(), |height| format!("block {height}"));
                    let example = || format!("server {server}, phase {phase}: {missing} after a change of {what}");
                    found.example.get_or_insert_with(example);
                }
                Some(_) => {}
                None if heard.lasted(change.start, taken) => {
                    times.sort_unstable();
                    found.add(change, is_quiet, taken, head.flatten(), &times);
                }
                None => {}
            }
        }
    }
    found.finish()
}

/// The status that a server had announced before this moment; without one, that of before the first change.
fn known<'a>(heard: &'a Heard, touched: &'a Touched, before: &'a [(usize, Change)], from: Instant) -> &'a Value {
    let earlier = || before.iter().flat_map(|(_, change)| &change.scripts).find(|one| one.hash == touched.hash);
    heard.known(&touched.hash, from).unwrap_or_else(|| &earlier().unwrap_or(touched).before)
}

/// Milliseconds, as in [`Notified`].
#[derive(Debug, Default)]
struct Found {
    header: Vec<f64>,
    first: Vec<f64>,
    median: Vec<f64>,
    block: Vec<f64>,
    submitted: Vec<f64>,
    with_failures: Vec<f64>,
    pool: Vec<f64>,
    missed: u64,
    example: Option<String>,
}

impl Found {
    /// `times` of the announced scripts, in their order.
    fn add(&mut self, change: &Change, is_quiet: bool, taken: Instant, head: Option<Instant>, times: &[Instant]) {
        let since = |from: Instant, at: Instant| at.saturating_duration_since(from).as_secs_f64() * 1e3;
        let (Some(first), Some(median), Some(last)) = (times.first(), times.get(times.len() / 2), times.last()) else {
            return;
        };
        match (change.height, is_quiet) {
            (Some(_), true) => {
                self.header.extend(head.map(|head| since(taken, head)));
                self.first.push(since(taken, *first));
                self.median.push(since(taken, *median));
                self.block.push(since(taken, *last));
                self.submitted.push(since(change.start, *last));
            }
            (Some(_), false) => self.with_failures.push(since(taken, *last)),
            (None, true) => self.pool.push(since(taken, *last)),
            (None, false) => {}
        }
    }

    fn finish(self) -> Notified {
        Notified {
            header: Latencies::of(self.header),
            block_first: Latencies::of(self.first),
            block_median: Latencies::of(self.median),
            block: Latencies::of(self.block),
            block_submitted: Latencies::of(self.submitted),
            block_with_failures: Latencies::of(self.with_failures),
            pool: Latencies::of(self.pool),
            missed: self.missed,
            missed_example: self.example,
        }
    }
}

pub(super) fn begin(measurement: &Measurement<'_>) -> ClusterResults {
    ClusterResults {
        facts: RunFacts::of(
            measurement.chain,
            measurement.program,
            measurement.node_arguments,
            measurement.work,
            &measurement.command_line,
        ),
        settings: measurement.settings.clone(),
        load_seconds: None,
        first_answer_seconds: Vec::new(),
        phases: Vec::new(),
        kinds: Vec::new(),
        notified: Notified::default(),
        commits: None,
        left_out: Vec::new(),
        backends: Vec::new(),
        costs: Costs::default(),
        is_right: false,
    }
}

impl ScaleReport for ClusterResults {
    fn to_markdown(&self) -> String {
        report::to_markdown(self)
    }

    fn is_right(&self) -> bool {
        self.is_right
    }
}

#[allow(clippy::cast_precision_loss, reason = "requests of a run lie far below 2^52")]
fn to_f64(count: u64) -> f64 {
    count as f64
}

#[cfg(test)]
mod tests {
    use super::super::wallet::{Sample, Trouble};
    use super::super::watch::Event;
    use super::*;

    #[test]
    fn a_phase_counts_what_began_in_it() {
        let start = system::now();
        let mark = |seconds: u64, front: f64, reads: f64| Mark {
            at: start + Duration::from_secs(seconds),
            cpu: BTreeMap::from([(Role::Front, front), (Role::Store, 2.0 * front)]),
            reads: Some(reads),
        };
        let sample = |phase, milliseconds: f64| {
            let at = start + Duration::from_secs(10) + Duration::from_secs_f64(milliseconds / 1e3);
            Sample { phase, kind: Kind::Balance, milliseconds, at }
        };
        let trouble = Trouble { failed: 1, stale: 2, stale_max: Duration::from_millis(70), ..Trouble::default() };
        let mut seen = Seen::default();
        seen.samples = (1..=100).map(|ms| sample(1, f64::from(ms))).chain([sample(0, 999.0)]).collect();
        seen.trouble = vec![Trouble::default(), trouble];
        let seen = [seen];
        let phase = PhaseResults::new("x".into(), 1, &seen, &mark(10, 1.0, 50.0), &mark(20, 1.5, 250.0));
        assert_eq!((phase.requests, phase.per_second, phase.failed, phase.stale), (100, 10.0, 1, 2));
        assert_eq!(phase.gap_ms, 9_900.0, "from the last answer to the end");
        assert_eq!(phase.latencies, Some(Latencies { p50_ms: 50.5, p99_ms: 99.0, max_ms: 100.0 }));
        assert_eq!((phase.stale_max_ms, phase.cpu_us_per_request(Role::Front)), (70.0, Some(5_000.0)));
        assert_eq!((phase.reads_per_request(), phase.store_us_per_read()), (Some(2.0), Some(5_000.0)));
        let again = PhaseResults::new("x".into(), 1, &seen, &mark(10, 1.0, 50.0), &mark(20, 1.5, 20.0));
        assert_eq!(again.reads, None, "a front end began to count anew");
        let kinds = by_kind(&seen, &[true, false]);
        assert_eq!((kinds.len(), kinds[0].count, kinds[0].latencies.p50_ms), (1, 1, 999.0));
    }

    #[test]
    fn announcements_are_found_or_missed() {
        let start = system::now();
        let at = |ms: u64| start + Duration::from_millis(ms);
        let touched = |hash: &str, before: u64, status: u64| Touched {
            hash: hash.into(),
            before: before.into(),
            status: status.into(),
        };
        let change = |height, begin: u64| Change {
            height,
            start: at(begin),
            taken: vec![None, Some(at(begin + 10)), Some(at(begin + 13))],
            scripts: vec![touched("a", 0, begin), touched("b", 0, begin)],
        };
        let of = |heard: &Heard| Announced { heard: heard.clone(), block_node: 1, pool_node: 2 };
        let script = |hash: &str, status: u64| Event::Script { hash: hash.into(), status: status.into() };
        let whole = Heard(vec![
            (at(0), Event::Ready),
            (at(120), script("a", 100)),
            (at(130), script("b", 100)),
            (at(210), Event::Header(5)),
            (at(240), script("a", 200)),
            (at(260), script("b", 200)),
        ]);
        let lacks_one = Heard(whole.0[..5].to_vec());
        let was_away = Heard(vec![(at(0), Event::Ready), (at(205), Event::Gap)]);
        let changes = [(0, change(None, 100)), (0, change(Some(5), 200))];
        let patience = Duration::from_millis(5);
        let found = notified(&changes, &[of(&whole)], &[true], patience);
        let same = |ms| Some(Latencies { p50_ms: ms, p99_ms: ms, max_ms: ms });
        assert_eq!((found.header, found.block, found.pool, found.missed), (same(0.0), same(50.0), same(17.0), 0));
        assert_eq!((found.block_first, found.block_median), (same(30.0), same(50.0)));
        let missed = notified(&changes, &[of(&lacks_one)], &[true], patience);
        assert_eq!(missed.missed, 1);
        assert_eq!(missed.missed_example.as_deref(), Some("server 0, phase 0: b after a change of block 5"));
        // It was busy and announces only the last status of each script.
        let skips = Heard([&whole.0[..1], &whole.0[3..]].concat());
        let skipped = notified(&changes, &[of(&skips)], &[true], patience);
        assert_eq!((skipped.pool, skipped.missed), (same(147.0), 0));
        assert_eq!(skipped.block_submitted, same(60.0));
        let away = notified(&changes[1..], &[of(&was_away)], &[true], patience);
        assert_eq!((away.missed, away.block), (0, None), "it was not connected");
        let failing = notified(&changes, &[of(&whole)], &[false], patience);
        assert_eq!((failing.block, failing.block_with_failures), (None, same(50.0)));
        // A reorganisation took `b` back to the status that the server had announced before.
        let mut back = changes.to_vec();
        back.push((0, Change { scripts: vec![touched("b", 200, 100)], ..change(Some(6), 300) }));
        let heard = Heard([&lacks_one.0[..], &[(at(310), Event::Header(6))]].concat());
        assert_eq!(notified(&back, &[of(&heard)], &[true], patience).missed, 0);
        back[2].1.scripts[0].status = 300.into();
        assert_eq!(notified(&back, &[of(&heard)], &[true], patience).missed, 2);
        assert_eq!(change(None, 7).taken_by(0), at(20), "of the last one");
    }
}
