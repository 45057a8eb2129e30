//! `lydian-lab mempool`: the same mempool in every node, in turn, in one run.
//!
//! Input: data, contenders, settings. Output: figures of each row, in sessions of one process each; the nodes alternate
//! within a session and the sessions within a run. A session that fails is recorded with its reason and the end of the
//! log, and the others continue. Invariant: after the import every node reports the same content, otherwise the session
//! fails. Must never: run two nodes at once, or beside another lab.

pub mod cluster;
pub mod data;
pub mod loaded;
pub mod node;
pub mod pairs;
pub mod peer;
pub mod relay;
pub mod rows;

pub use data::Data;
pub use rows::{Row, Session};

use crate::electrum::process::Shares;
use crate::error::LabError;
use crate::lab_toml::base_kind;
use crate::runs::{Contender, Folder, log_end, machine, machine_facts, system};
use lydian_disk::{Disk, RealDisk};
use lydian_report::mempool::{self as report, MempoolResults, MempoolSettings};
use lydian_report::results::{Lab, NodeFacts};
use node::{Common, Node, options};
use rows::Measured;
use std::path::{Path, PathBuf};
use std::sync::atomic::AtomicBool;

/// The option of Lydian that verifies signatures with libsecp256k1 only.
const REFERENCE: &str = "-sigengine=reference";
const LYDIAN: &str = "lydian";
/// Seconds after the chain's last block at which the clock of a session with blocks stands: a node processes compact
/// blocks only if its tip is less than 20 blocks old, and accepts blocks at most two hours in the future.
const MOCK_SECONDS: u32 = 3_600;

/// The inputs of a comparison.
#[derive(Debug)]
pub struct Comparison<'a> {
    pub data: &'a Data,
    pub contenders: &'a [Contender],
    pub rows: &'a [Row],
    pub settings: MempoolSettings,
    /// Nodes work below this folder; what is made there is removed.
    pub work: &'a Path,
    pub command_line: Vec<String>,
    pub interrupted: &'a AtomicBool,
}

/// A contender with a session's additional arguments.
struct Entrant<'a> {
    name: String,
    contender: &'a Contender,
    more: Vec<String>,
    prepared: PathBuf,
}

impl Comparison<'_> {
    /// After each session `done` receives the results so far. An interruption stops the comparison and keeps the
    /// finished sessions.
    pub fn run(
        &self,
        print_progress: &mut dyn FnMut(&str),
        done: &mut dyn FnMut(&MempoolResults) -> Result<(), LabError>,
    ) -> Result<MempoolResults, LabError> {
        let folder = Folder::new(&self.work.join("mempool"))?;
        let common =
            Common { data: self.data, settings: &self.settings, work: &folder.0, interrupted: self.interrupted };
        let files = [folder.0.join("mempool.dat"), folder.0.join("cluster.dat")];
        RealDisk.write_whole(&files[0], &data::mempool_dat(&self.data.waiting.txs))?;
        RealDisk.write_whole(&files[1], &data::mempool_dat(&self.data.waiting.cluster))?;
        let entrants = self.prepare(&common, print_progress)?;
        let mut results = self.begin(&entrants);
        for number in 1..=self.settings.runs {
            for session in
                Session::ALL.into_iter().filter(|session| self.rows.iter().any(|row| row.session() == *session))
            {
                for entrant in entrants.iter().filter(|entrant| entrant.takes_part(session)) {
                    if common.is_interrupted() {
                        return Ok(results);
                    }
                    print_progress(&format!("run {number}: {} {}", entrant.name, session.name()));
                    let Some(ended) = self.one(&common, entrant, session, number, &files, &mut results) else {
                        return Ok(results);
                    };
                    if let Some(failure) = &ended.failure {
                        print_progress(&format!("{} {}: {failure}", entrant.name, session.name()));
                    }
                    results.sessions.push(ended);
                    self.settle(&mut results);
                    done(&results)?;
                }
            }
        }
        Ok(results)
    }

    /// Lets each node validate the chain once.
    fn prepare(&self, common: &Common<'_>, print_progress: &mut dyn FnMut(&str)) -> Result<Vec<Entrant<'_>>, LabError> {
        let mut entrants = Vec::new();
        for (number, contender) in self.contenders.iter().enumerate() {
            if let Some(reason) = contender.adapter.absent() {
                return Err(LabError::NotInstalled(reason.to_owned()));
            }
            print_progress(&format!("{} validates the chain", contender.name));
            let prepared = common.work.join(format!("prepared-{number}"));
            system::create_dir(&prepared)?;
            if !node::prepare(common, contender, &prepared)? {
                return Err(LabError::Usage("interrupted before the first session".to_owned()));
            }
            let name = contender.name.clone();
            entrants.push(Entrant { name, contender, more: contender.more.clone(), prepared: prepared.clone() });
            if is_lydian(contender) && self.rows.contains(&Row::ImportReference) {
                let more = contender.more.iter().cloned().chain([REFERENCE.to_owned()]).collect();
                let name = format!("{} {REFERENCE}", contender.name);
                entrants.push(Entrant { name, contender, more, prepared });
            }
        }
        Ok(entrants)
    }

    fn begin(&self, entrants: &[Entrant<'_>]) -> MempoolResults {
        let facts = |entrant: &Entrant<'_>| NodeFacts {
            name: entrant.name.clone(),
            arguments: options(&entrant.more),
            ..entrant.contender.facts()
        };
        MempoolResults {
            format: report::FORMAT,
            lab: Lab {
                version: env!("CARGO_PKG_VERSION").into(),
                commit: machine::commit(),
                command_line: self.command_line.clone(),
            },
            experiment: report::EXPERIMENT.to_owned(),
            started: system::unix_seconds(),
            machine: machine_facts(self.work),
            data: self.data.facts.clone(),
            settings: self.settings.clone(),
            nodes: entrants.iter().map(facts).collect(),
            sessions: Vec::new(),
            figures: Vec::new(),
            content: None,
            is_agreed: false,
        }
    }

    /// Runs one session and adds its figures. `None` after an interruption.
    fn one(
        &self,
        common: &Common<'_>,
        entrant: &Entrant<'_>,
        session: Session,
        number: u32,
        files: &[PathBuf; 2],
        results: &mut MempoolResults,
    ) -> Option<report::Session> {
        let shares = Shares::now();
        let mut measured = Measured::default();
        let mut log = None;
        let mut used = 0.0;
        let mut more = entrant.more.clone();
        if session == Session::Loaded {
            more.push(format!("-mocktime={}", self.data.chain.last_time + MOCK_SECONDS));
        }
        if session == Session::Tx {
            more.extend(relay::TX_OPTIONS.iter().map(|option| (*option).to_owned()));
        }
        let ended = Node::start(common, entrant.contender, &more, &entrant.prepared).and_then(|node| {
            let ended = self.measure(common, &node, session, files, &mut measured);
            used = node.cpu_seconds();
            let file = entrant.contender.adapter.log(node.job());
            log = ended.is_err().then(|| log_end(&file, Path::new("")));
            ended
        });
        if common.is_interrupted() {
            return None;
        }
        let machine = shares.until_now(used);
        let mut failure = ended.err().map(|error| error.to_string());
        if let Some(content) = measured.content {
            failure = failure.or(differs(results, &entrant.name, content));
        }
        for (row, what, unit, value) in measured.values {
            let is_wanted = self.rows.contains(&row) || (session == Session::Reference && row == Row::Import);
            if is_wanted {
                results.add(&entrant.name, row.name(), what, unit, value);
            }
        }
        Some(report::Session {
            node: entrant.name.clone(),
            session: session.name().to_owned(),
            number,
            is_disturbed: machine.is_disturbed(),
            machine,
            failure,
            log_end: log,
        })
    }

    fn measure(
        &self,
        common: &Common<'_>,
        node: &Node,
        session: Session,
        files: &[PathBuf; 2],
        measured: &mut Measured,
    ) -> Result<(), LabError> {
        match session {
            Session::Loaded => loaded::loaded(common, node, &files[0], self.rows, measured),
            Session::Reference => loaded::import(common, node, &files[0], measured).map(|_| ()),
            Session::Tx => relay::tx(common, node, measured),
            Session::Peers => relay::peers(common, node, measured),
            Session::Pairs => pairs::pairs(common, node, measured),
            Session::Cluster => cluster::cluster(common, node, &files[1], measured),
        }
    }

    fn settle(&self, results: &mut MempoolResults) {
        results.is_agreed = results.sessions.iter().all(|session| session.failure.is_none());
    }
}

impl Entrant<'_> {
    /// The reference engine is measured in its own session only, and takes part in no other.
    fn takes_part(&self, session: Session) -> bool {
        let is_reference = self.more.len() > self.contender.more.len();
        is_reference == (session == Session::Reference)
    }
}

/// The reason if this content is not that of an earlier import; the first content is the expected one.
fn differs(results: &mut MempoolResults, name: &str, content: report::Content) -> Option<String> {
    match results.content {
        None => {
            results.content = Some(content);
            None
        }
        Some(expected) if expected == content => None,
        Some(expected) => {
            let first = results.nodes.first().map_or("the first node", |node| node.name.as_str());
            Some(format!(
                "the mempool of {name} after the import ({content}) differs from that of {first} ({expected})"
            ))
        }
    }
}

fn is_lydian(contender: &Contender) -> bool {
    base_kind(&contender.name) == LYDIAN
}
