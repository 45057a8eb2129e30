//! Determines which broken blocks a node accepts: it gets the chain of the preset `validity` block by block, and is
//! asked for its tip after each broken one.
//!
//! Input: an adapter, the chain. Output: one case per rule, with the node's answer. The node is a process of its own on
//! an empty directory, without peers, with its RPC on loopback. Cost: some seconds, most of them for 1,400 small
//! blocks. If a node does not start, dies, hangs or does not return to the valid branch, the reason is recorded, and
//! nothing else fails. The process must never outlive the check, no wait is unbounded, and an inactive rule is never
//! called missing.

pub mod activation;
mod document;
mod table;

pub use document::{Document, Question};
pub use table::to_markdown;

use crate::error::LabError;
use crate::lab_toml::base_kind;
use crate::limits::SAID_CHARS_MAX;
use crate::runs::adapter::{Adapter, Job};
use crate::runs::rpc::{self, Server};
use crate::runs::running::Running;
use crate::runs::{Contender, Folder, capture, log_end, system};
use activation::{active_from, source_of};
use lydian_chains::chain_files::network;
use lydian_chains::presets::validity::{Encoded, Group, Suite, genesis_hash};
use lydian_report::results::{Case, Validation, Validity};
use serde_json::{Value, json};
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::sleep;
use std::time::Duration;

/// Cache size of a node; the chain is small.
const CACHE_MIB: u64 = 300;
const POLL: Duration = Duration::from_millis(50);
/// The most polls for the end of a process that may be about to end.
const ENDS_POLLS_MAX: u32 = 40;

/// The time limits for a node.
#[derive(Clone, Copy, Debug)]
pub struct Patience {
    /// From the start of the process to its first answer.
    pub start: Duration,
    /// For one request.
    pub answer: Duration,
    /// From its answer to a block to the resulting tip, for nodes that answer first.
    pub settle: Duration,
    /// For all blocks together.
    pub total: Duration,
}

impl Default for Patience {
    fn default() -> Patience {
        let seconds = Duration::from_secs;
        Patience { start: seconds(60), answer: seconds(60), settle: seconds(5), total: seconds(600) }
    }
}

/// The parameters common to all nodes.
#[derive(Debug)]
pub struct Terms<'a> {
    pub suite: &'a Suite,
    /// Created for each node, and removed with everything in it.
    pub folder: &'a Path,
    pub threads: usize,
    pub patience: Patience,
    pub interrupted: &'a AtomicBool,
}

/// Sends the blocks to one node and records its verdicts.
pub fn examine(contender: &Contender, terms: &Terms<'_>) -> Validity {
    let mut cases = Vec::new();
    let reason = examined(contender, terms, &mut cases).err().map(|stop| match stop {
        Stop::Because(reason) => reason,
        Stop::Failed(error) => error.to_string(),
    });
    let never = not_asked(contender, terms.suite).filter(|_| !cases.is_empty());
    let reasons: Vec<String> = reason.into_iter().chain(never).collect();
    let reason = (!reasons.is_empty()).then(|| reasons.join("; "));
    let kind = base_kind(&contender.name);
    let active = terms.suite.groups.iter().filter(|group| is_active(kind, group)).count();
    let unasked = active.saturating_sub(cases.len());
    Validity { sha256: terms.suite.sha256.clone(), cases, unasked, reason }
}

/// Why there are no more cases.
enum Stop {
    Because(String),
    Failed(LabError),
}

impl From<LabError> for Stop {
    fn from(error: LabError) -> Stop {
        Stop::Failed(error)
    }
}

fn examined(contender: &Contender, terms: &Terms<'_>, cases: &mut Vec<Case>) -> Result<(), Stop> {
    let adapter = contender.adapter.as_ref();
    if let Some(reason) = adapter.absent() {
        return Err(Stop::Because(reason.to_owned()));
    }
    let folder = Folder::new(terms.folder)?;
    let job = job(contender, terms, &folder.0.join("data"), rpc::free_port()?);
    let Some(job) = job else { return Err(because("there is no regtest".to_owned())) };
    system::create_dir(&job.data)?;
    let Some(mut command) = adapter.offline(&job) else {
        return Err(Stop::Because("it takes no blocks by RPC".to_owned()));
    };
    let output = folder.0.join("output.txt");
    capture(&mut command, &output)?;
    let process = Running::start(command)?;
    let mut session = Session { adapter, job: &job, process: &process, terms, started: system::now(), server: None };
    let done = session.begin().and_then(|()| session.give(base_kind(&contender.name), cases));
    done.map_err(|stop| session.explained(stop, &output))
}

fn job(contender: &Contender, terms: &Terms<'_>, data: &Path, rpc_port: u16) -> Option<Job> {
    Some(Job {
        data: data.to_path_buf(),
        network: network("regtest")?,
        height: 0,
        threads: terms.threads,
        cache_mib: CACHE_MIB,
        peers: Vec::new(),
        time: None,
        validation: Validation::Full,
        next_block: None,
        rpc_port,
        more: contender.more.clone(),
    })
}

/// A sentence on the rules that the node's regtest never enforces.
fn not_asked(contender: &Contender, suite: &Suite) -> Option<String> {
    let kind = base_kind(&contender.name);
    let never: Vec<&str> =
        suite.groups.iter().filter(|group| !is_active(kind, group)).map(|group| group.case.rule.title).collect();
    (!never.is_empty())
        .then(|| format!("not asked for {}: its regtest never enforces it ({})", never.join(", "), source_of(kind)))
}

fn is_active(kind: &str, group: &Group) -> bool {
    let from = group.case.rule.since.map_or(Some(0), |deployment| active_from(kind, deployment));
    from.is_some_and(|from| from <= group.height)
}

/// A running node.
struct Session<'a> {
    adapter: &'a dyn Adapter,
    job: &'a Job,
    process: &'a Running,
    terms: &'a Terms<'a>,
    started: std::time::Instant,
    server: Option<Server>,
}

impl Session<'_> {
    /// Waits until it answers, on the genesis block, and sends it the trunk.
    fn begin(&mut self) -> Result<(), Stop> {
        while self.server.is_none() {
            self.check()?;
            if self.process.has_ended() {
                return Err(because("it ended before it answered".to_owned()));
            }
            if self.started.elapsed() > self.terms.patience.start {
                return Err(because(format!("it does not answer within {:?}", self.terms.patience.start)));
            }
            sleep(POLL);
            self.server = self.adapter.rpc(self.job).filter(|server| best(server, self.terms.patience).is_ok());
        }
        let tip = self.tip("the start")?;
        if tip != genesis_hash().to_string() {
            return Err(because(format!("it starts on {tip}, not on regtest's genesis block")));
        }
        for (height, block) in (1..).zip(&self.terms.suite.trunk) {
            let said = self.submit(block)?;
            if said != ACCEPTED {
                return Err(because(format!("it does not take the valid block at height {height}: {said}")));
            }
        }
        let Some(last) = self.terms.suite.trunk.last() else { return Ok(()) };
        self.ends_on(last, "the valid blocks before the cases")
    }

    /// Sends the groups.
    fn give(&mut self, kind: &str, cases: &mut Vec<Case>) -> Result<(), Stop> {
        for group in &self.terms.suite.groups {
            let name = group.case.rule.name;
            if is_active(kind, group) {
                let said = self.submit(&group.broken)?;
                let is_accepted = self.takes(&group.broken, &said, name)?;
                cases.push(Case {
                    name: name.to_owned(),
                    rule: group.case.rule.title.to_owned(),
                    height: group.height,
                    is_accepted,
                    said,
                });
            }
            let twin = self.submit(&group.twin)?;
            let next = self.submit(&group.next)?;
            let branch = format!("{name}, whose valid branch it answered with `{twin}` and `{next}`");
            self.ends_on(&group.next, &branch)?;
        }
        Ok(())
    }

    /// The node's answer to a block; an RPC error is an answer, too.
    fn submit(&self, block: &Encoded) -> Result<String, Stop> {
        self.check()?;
        let Some(server) = &self.server else { return Err(because("it does not answer".to_owned())) };
        let hex: String = block.bytes.iter().map(|byte| format!("{byte:02x}")).collect();
        let said = match server.call_within("submitblock", &json!([hex]), self.terms.patience.answer) {
            Ok(Value::Null) => ACCEPTED.to_owned(),
            Ok(Value::String(text)) => text,
            Ok(other) => other.to_string(),
            Err(LabError::Program { reason, .. }) => reason,
            Err(error) => error.to_string(),
        };
        Ok(cut(&said))
    }

    /// Whether a broken block became its tip.
    fn takes(&self, block: &Encoded, said: &str, name: &str) -> Result<bool, Stop> {
        let (start, wanted) = (system::now(), block.hash.to_string());
        loop {
            if self.tip(name)? == wanted {
                return Ok(true);
            }
            if said != ACCEPTED || start.elapsed() > self.terms.patience.settle {
                return Ok(false);
            }
            sleep(POLL);
        }
    }

    fn ends_on(&self, block: &Encoded, name: &str) -> Result<(), Stop> {
        let (start, wanted) = (system::now(), block.hash.to_string());
        loop {
            let tip = self.tip(name)?;
            if tip == wanted {
                return Ok(());
            }
            if start.elapsed() > self.terms.patience.settle {
                return Err(because(format!("after {name} its tip is {tip}, not {wanted}: no later case was sent")));
            }
            sleep(POLL);
        }
    }

    fn tip(&self, after: &str) -> Result<String, Stop> {
        self.check()?;
        let Some(server) = &self.server else { return Err(because("it does not answer".to_owned())) };
        best(server, self.terms.patience).map_err(|error| because(format!("after {after} it tells no tip: {error}")))
    }

    fn check(&self) -> Result<(), Stop> {
        if self.terms.interrupted.load(Ordering::Relaxed) {
            return Err(because("it was interrupted".to_owned()));
        }
        if self.started.elapsed() > self.terms.patience.total {
            return Err(because(format!("it did not get through within {:?}", self.terms.patience.total)));
        }
        Ok(())
    }

    /// Adds the end of the process, if it has ended, and of its log.
    fn explained(&self, stop: Stop, output: &Path) -> Stop {
        let text = match stop {
            Stop::Because(text) => text,
            Stop::Failed(error) => return Stop::Failed(error),
        };
        // A process closes its connections a moment before it ends.
        let has_ended = (0..ENDS_POLLS_MAX).any(|_| {
            let has_ended = self.process.has_ended();
            if !has_ended {
                sleep(POLL);
            }
            has_ended
        });
        if !has_ended {
            return Stop::Because(text);
        }
        let said = log_end(&self.adapter.log(self.job), output);
        let last = said.lines().last().unwrap_or("nothing");
        Stop::Because(format!("{text}; the process has ended, its last words: {last}"))
    }
}

/// The text for `submitblock`'s result `null`.
const ACCEPTED: &str = "accepted";

fn best(server: &Server, patience: Patience) -> Result<String, LabError> {
    let best = server.call_within("getbestblockhash", &json!([]), patience.answer)?;
    best.as_str().map(str::to_owned).ok_or_else(|| LabError::program("RPC getbestblockhash", best.to_string()))
}

fn because(reason: String) -> Stop {
    Stop::Because(reason)
}

fn cut(said: &str) -> String {
    said.chars().take(SAID_CHARS_MAX).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// limit: SAID_CHARS_MAX at
    /// limit: SAID_CHARS_MAX above
    #[test]
    fn what_a_node_says_is_cut() {
        let long = "é".repeat(SAID_CHARS_MAX);
        assert_eq!(cut(&long), long);
        assert_eq!(cut(&format!("{long}!")), long);
    }
}
