//! Runs whole nodes as processes on the same chain, in turn, measured from start to exit.
//!
//! `lydian-lab reindex` starts from block files, `lydian-lab sync` from peers. Input: a chain, contenders, settings.
//! Output: results; a run counts only with the right tip and UTXO hash. Every run has its own data directory, made
//! before the clock starts and removed afterwards; in a reindex it holds copies of the block files. A node that fails
//! or is not installed is recorded, and the others continue. Must never: run two contenders at once, or beside another
//! lab (`lock.rs`).

pub mod adapter;
pub mod adapters;
pub mod cgroup;
pub mod chain;
pub mod chain_cache;
mod keeper;
mod left_out;
pub mod lock;
pub mod log;
pub mod machine;
pub mod measure;
pub mod own_chain;
pub mod procfs;
pub mod progress;
mod record;
pub mod resume;
pub mod rpc;
pub(crate) mod running;
pub mod sources;
pub mod system;
pub mod traffic;

pub use left_out::left_out;
pub use machine::{ProgramFile, floor, machine_facts};
pub(crate) use machine::{program_facts, version_or_reason};

use adapter::{Adapter, Job};
use cgroup::Group;
use keeper::keep;
use lydian_chains::chain_files::ChainFiles;
use lydian_report::results::{
    Answer, Cache, Experiment, FORMAT, Floor, Lab, LeftOut, NetworkBytes, NodeFacts, Outcome, Results, Run, Settings,
    Validity,
};
use measure::{End, Guard, measure};
use own_chain::{NotMined, OwnChain};
use progress::{Live, Plan, Progress, Step};
use std::fs::OpenOptions;
use std::net::SocketAddrV4;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use crate::error::LabError;
use traffic::Traffic;

/// Bytes kept of a log, for a run that does not count.
const LOG_END_BYTES: u64 = 2_000;

/// A node with its name in the results.
#[derive(Debug)]
pub struct Contender {
    pub name: String,
    pub adapter: Box<dyn Adapter>,
    /// Arguments for this node only.
    pub more: Vec<String>,
    /// Sync only.
    pub source: Option<Source>,
}

impl Contender {
    /// The facts that do not depend on the runs.
    pub(crate) fn facts(&self) -> NodeFacts {
        let adapter = self.adapter.as_ref();
        program_facts(&self.name, adapter.program(), version_or_reason(adapter.version()), adapter.notes())
    }
}

/// Where a node gets the chain from in a sync.
#[derive(Clone, Debug)]
pub struct Source {
    /// Its name in the results.
    pub name: String,
    pub peers: Vec<SocketAddrV4>,
    pub counter: Option<Counter>,
}

/// What reports how many bytes the server sent and received.
#[derive(Clone, Debug)]
pub enum Counter {
    /// The server's RPC.
    Rpc(rpc::Server),
    /// The lab, through which the bytes of an external peer pass, one counter per connection.
    Proxies(Vec<Arc<Traffic>>),
}

impl Counter {
    fn totals(&self) -> Option<NetworkBytes> {
        match self {
            Counter::Rpc(server) => server.net_totals(),
            Counter::Proxies(all) => {
                let add = |sum: NetworkBytes, one: NetworkBytes| NetworkBytes {
                    received: sum.received + one.received,
                    sent: sum.sent + one.sent,
                };
                Some(all.iter().map(|traffic| traffic.totals()).fold(NetworkBytes { received: 0, sent: 0 }, add))
            }
        }
    }
}

/// The processes that serve the chain in a sync; they run beside every contender.
#[derive(Clone, Debug, Default)]
pub struct Servers {
    pub facts: Vec<NodeFacts>,
    pub pids: Vec<u32>,
}

/// The inputs of a comparison.
#[derive(Debug)]
pub struct Comparison<'a> {
    pub experiment: Experiment,
    pub servers: Servers,
    pub chain: &'a ChainFiles,
    pub contenders: &'a [Contender],
    pub caches: &'a [Cache],
    /// Whether a cold run may empty the whole page cache, instead of dropping only the files of the run.
    pub may_drop_caches: bool,
    pub settings: Settings,
    pub floor: Option<Floor>,
    /// Nodes work below this folder; the folder of each run is made and removed there.
    pub work: &'a Path,
    pub command_line: Vec<String>,
    pub interrupted: &'a AtomicBool,
    pub more: More<'a>,
}

/// The optional parts of a comparison.
#[derive(Clone, Default)]
pub struct More<'a> {
    /// Systems that do not take part, for the table.
    pub left_out: Vec<LeftOut>,
    /// An earlier file of the same comparison ([`resume::kept`]): its runs that count are kept and not repeated.
    pub earlier: Option<&'a Results>,
    pub progress: Option<&'a dyn Progress>,
    /// For a peer whose chain goes on: the hashes from the last height of the comparison on, as displayed. A node that
    /// does not stop by itself is then judged by the block that it reached, and recorded at the last height.
    pub beyond: &'a [String],
    /// For a reindex: the chains that nodes mined for themselves, by the name of the node.
    pub own: &'a [(String, Result<OwnChain, NotMined>)],
    /// Called once for every installed node, after all runs: finds out which broken blocks it accepts.
    pub examine: Option<&'a dyn Fn(&Contender) -> Validity>,
}

impl std::fmt::Debug for More<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("More").field("left_out", &self.left_out).field("earlier", &self.earlier).finish_non_exhaustive()
    }
}

impl Comparison<'_> {
    /// Runs the contenders in turn. After each run `done` receives the results so far. An interruption stops the
    /// comparison and keeps the finished runs.
    pub fn run(&self, done: &mut dyn FnMut(&Results, &Run) -> Result<(), LabError>) -> Result<Results, LabError> {
        let mut results = self.begin()?;
        if let Some(earlier) = self.more.earlier {
            results.runs = resume::kept(earlier, &results, self.caches).map_err(LabError::Resume)?;
            results.take_over(earlier);
        }
        let steps: Vec<(&Contender, Step)> = self.steps(&results.runs);
        let names = steps.iter().map(|(_, step)| step.clone()).collect();
        let mut plan = Plan::new(names, &results.runs, self.chain.facts.height, &self.chain.bytes_at);
        for (contender, step) in &steps {
            let Some(run) = self.one(contender, step, &plan)? else {
                results.settle(chain::answer(self.chain).as_ref());
                return Ok(results);
            };
            plan.ended(&run);
            results.runs.push(run);
            let mut so_far = results.clone();
            so_far.settle(chain::answer(self.chain).as_ref());
            if let Some(run) = so_far.runs.last() {
                done(&so_far, run)?;
            }
        }
        self.examine(&mut results);
        results.settle(chain::answer(self.chain).as_ref());
        Ok(results)
    }

    /// The runs to be made, in order: A B C, A B C, first in one cache state, then in the other.
    fn steps(&self, kept: &[Run]) -> Vec<(&Contender, Step)> {
        let of = self.settings.runs;
        let mut steps = Vec::new();
        for &cache in self.caches {
            for number in 1..=of {
                for contender in self.contenders.iter().filter(|one| one.adapter.cannot(self.experiment).is_none()) {
                    if resume::find(kept, &contender.name, number, cache).is_none() {
                        let own_height = self.own(&contender.name).map(|own| own.answer.height);
                        steps.push((contender, Step { node: contender.name.clone(), cache, number, of, own_height }));
                    }
                }
            }
        }
        steps
    }

    fn examine(&self, results: &mut Results) {
        let Some(examine) = self.more.examine else { return };
        for (contender, node) in self.contenders.iter().zip(&mut results.nodes) {
            let is_over = self.interrupted.load(Ordering::Relaxed);
            // The broken blocks break the rules of Bitcoin's regtest, and are none on another chain.
            let is_own = self.more.own.iter().any(|(name, _)| *name == contender.name);
            if !is_over && !is_own && node.validity.is_none() && contender.adapter.absent().is_none() {
                let validity = examine(contender);
                // An interrupted examination is repeated when the comparison is resumed.
                node.validity = (!self.interrupted.load(Ordering::Relaxed)).then_some(validity);
            }
        }
    }

    fn begin(&self) -> Result<Results, LabError> {
        let facts = |contender: &Contender| {
            let adapter = contender.adapter.as_ref();
            let cannot = adapter.cannot(self.experiment);
            let own = self.own(&contender.name);
            let mut program = contender.facts();
            program.notes.extend(own.map(|own| format!("validates its own chain, which ends with {}", own.answer)));
            let takes_part = cannot.is_none() && adapter.absent().is_none();
            let command = takes_part.then(|| self.command(contender, &self.job(Path::new("DATADIR"), contender)));
            NodeFacts {
                arguments: command.as_ref().map_or(Vec::new(), arguments_of),
                source: contender.source.as_ref().map(|source| source.name.clone()),
                cannot: cannot.map(|reason| sources::with_source(&contender.name, reason)),
                own_chain: own.map(|own| own.answer.clone()),
                ..program
            }
        };
        let nodes: Vec<NodeFacts> = self.contenders.iter().map(facts).collect();
        Ok(Results {
            format: FORMAT,
            lab: Lab {
                version: env!("CARGO_PKG_VERSION").into(),
                commit: machine::commit(),
                command_line: self.command_line.clone(),
            },
            experiment: self.experiment,
            started: system::unix_seconds(),
            machine: machine_facts(self.work),
            chain: chain::facts(self.chain),
            settings: self.settings.clone(),
            floor: self.floor.clone(),
            nodes,
            servers: self.servers.facts.clone(),
            left_out: self.more.left_out.clone(),
            expected: None,
            is_agreed: false,
            runs: Vec::new(),
            summary: Vec::new(),
            thinned: None,
        })
    }

    fn command(&self, contender: &Contender, job: &Job) -> Command {
        let adapter = &contender.adapter;
        match self.experiment {
            Experiment::Reindex => {
                let go_on = self.settings.from_height.and_then(|_| adapter.go_on(job));
                go_on.unwrap_or_else(|| adapter.reindex(job))
            }
            Experiment::Sync => contender.adapter.sync(job),
        }
    }

    fn mined(&self, name: &str) -> Option<&Result<OwnChain, NotMined>> {
        self.more.own.iter().find(|(node, _)| node == name).map(|(_, mined)| mined)
    }

    fn own(&self, name: &str) -> Option<&OwnChain> {
        self.mined(name)?.as_ref().ok()
    }

    fn job(&self, data: &Path, contender: &Contender) -> Job {
        Job {
            data: data.to_path_buf(),
            network: self.chain.network,
            height: self.own(&contender.name).map_or(self.chain.facts.height, |own| own.answer.height),
            threads: self.settings.threads,
            cache_mib: self.settings.cache_mib,
            peers: contender.source.as_ref().map_or(Vec::new(), |source| source.peers.clone()),
            time: contender.source.as_ref().filter(|source| source.peers.len() > 1).map(|_| self.chain.last_time),
            rpc_port: 0,
            validation: self.settings.validation,
            next_block: self.more.beyond.get(1).cloned(),
            more: contender.more.clone(),
        }
    }

    /// `None` if it was interrupted.
    fn one(&self, contender: &Contender, step: &Step, plan: &Plan) -> Result<Option<Run>, LabError> {
        if self.interrupted.load(Ordering::Relaxed) {
            return Ok(None);
        }
        let adapter = contender.adapter.as_ref();
        let not_started = |reason: String| Ok(Some(Run::not_started(&step.node, step.number, step.cache, reason)));
        if let Some(reason) = adapter.absent().map(str::to_owned).or_else(|| adapter.refuses(self.chain.network)) {
            return not_started(reason);
        }
        if let Some(Err(failure)) = self.mined(&contender.name) {
            let run = Run::not_started(&step.node, step.number, step.cache, failure.reason.clone());
            return Ok(Some(Run { log_end: failure.log_end.clone(), ..run }));
        }
        let folder = Folder::new(&self.work.join("run"))?;
        let job = Job { rpc_port: rpc::free_port()?, ..self.job(&folder.0.join("data"), contender) };
        let emptied_by = match self.prepare(contender, &job, &folder.0, step.cache) {
            Ok(emptied_by) => emptied_by,
            Err(_) if self.interrupted.load(Ordering::Relaxed) => return Ok(None),
            Err(error) => return not_started(format!("cannot make its data directory: {error}")),
        };
        let output = folder.0.join("output.txt");
        let mut command = self.command(contender, &job);
        capture(&mut command, &output)?;
        let guard = self.guard();
        let counter = contender.source.as_ref().and_then(|source| source.counter.as_ref());
        let before = counter.and_then(Counter::totals);
        let live = Live::new(adapter.log(&job));
        let group = match self.settings.cgroup_memory_bytes.map(Group::with_memory).transpose() {
            Ok(group) => group,
            Err(error) => return not_started(error.to_string()),
        };
        if let Some(group) = &group {
            command = group.command(&command);
            capture(&mut command, &output)?;
        }
        let runs = || keep(adapter, &job, &live, || measure(command, &job.data, &guard));
        let (measured, mut kept) = plan.watch(self.more.progress, &live, runs);
        let after = counter.and_then(Counter::totals);
        let measured = match measured {
            Ok(measured) => measured,
            Err(error) => return not_started(error.to_string()),
        };
        if measured.end == End::Interrupted {
            return Ok(None);
        }
        kept.end = kept.end.map(|(seconds, answer)| (seconds, self.at_last_height(answer)));
        let mut run = self.record(contender, step, &job, measured, &kept);
        if group.is_some_and(|group| group.has_killed()) {
            let limit = self.settings.cgroup_memory_bytes.unwrap_or_default();
            run.outcome = Outcome::MemoryExceeded;
            run.reason = Some(format!("the kernel killed it: it needed more than {limit} bytes with its page cache"));
        }
        run.cache_emptied_by = emptied_by.map(str::to_owned);
        run.network = record::network_between(before, after);
        run.log_end = Some(log_end(&adapter.log(&job), &output));
        if run.reason.is_none() {
            run.stages = adapter.stages(&job);
            match (kept.is_asked, kept.end) {
                (true, Some((_, answer))) => run.answer = Some(answer),
                (true, None) => run.reason = Some("it ended before the tip".to_owned()),
                (false, _) => match adapter.answer(&job) {
                    Ok(answer) => run.answer = Some(answer),
                    // Not the node's fault: the run is discarded.
                    Err(_) if self.interrupted.load(Ordering::Relaxed) => return Ok(None),
                    Err(error) => run.reason = Some(format!("no answer after the run: {error}")),
                },
            }
        }
        Ok(Some(run))
    }

    /// Lets the node validate the blocks up to this height, before the run that is measured.
    fn go_ahead(&self, adapter: &dyn Adapter, job: &Job, height: u32, output: &Path) -> Result<(), LabError> {
        let name = adapter.program().display().to_string();
        if adapter.go_on(job).is_none() {
            return Err(LabError::program(name, "it cannot go on from a height, so --from-height leaves it out"));
        }
        let first = Job { height, ..job.clone() };
        match validate((&name, "before --from-height, it"), adapter, &first, output, &self.guard())? {
            true => Ok(()),
            false => Err(LabError::program(name, "interrupted before --from-height")),
        }
    }

    /// A tip that is one of the blocks after the last one counts as the last one: the node reached it and went on.
    fn at_last_height(&self, answer: Answer) -> Answer {
        let above = answer.height.checked_sub(self.chain.facts.height).and_then(|above| usize::try_from(above).ok());
        let is_known = above.and_then(|above| self.more.beyond.get(above)).is_some_and(|hash| *hash == answer.tip);
        match self.more.beyond.first() {
            Some(tip) if is_known => Answer { height: self.chain.facts.height, tip: tip.clone(), ..answer },
            _ => answer,
        }
    }

    fn guard(&self) -> Guard<'_> {
        Guard {
            timeout: Duration::from_secs(self.settings.timeout_seconds),
            memory_max_bytes: self.settings.memory_max_bytes,
            disk_free_min_bytes: self.settings.disk_free_min_bytes,
            interrupted: self.interrupted,
            servers: &self.servers.pids,
        }
    }

    /// Makes the data directory. Returns how the page cache was emptied.
    fn prepare(
        &self,
        contender: &Contender,
        job: &Job,
        folder: &Path,
        cache: Cache,
    ) -> Result<Option<&'static str>, LabError> {
        let blocks = job.chain_folder().join("blocks");
        if self.experiment == Experiment::Sync {
            system::create_dir(&job.data)?;
            return Ok(None);
        }
        chain::copy_files(self.own(&contender.name).map_or(&self.chain.files, |own| &own.files), &blocks)?;
        let adapter = contender.adapter.as_ref();
        adapter.take_over(job)?;
        if let Some(height) = self.settings.from_height {
            self.go_ahead(adapter, job, height, &folder.join("before.txt"))?;
        }
        Ok(match cache {
            Cache::Cold if self.may_drop_caches && system::drop_caches(Path::new(system::DROP_CACHES)) => {
                Some("drop_caches")
            }
            Cache::Cold => {
                system::forget_files(folder);
                Some("posix_fadvise")
            }
            Cache::Warm => {
                system::fill_cache(&blocks);
                None
            }
        })
    }
}

/// The arguments of a command, for the results.
pub fn arguments_of(command: &Command) -> Vec<String> {
    command.get_args().map(|argument| argument.to_string_lossy().into_owned()).collect()
}

/// Lets a node validate the chain in its data directory until it exits. `it` names the node in the message of an error.
/// Returns `false` after an interruption.
pub(crate) fn validate(
    (name, it): (&str, &str),
    adapter: &dyn Adapter,
    job: &Job,
    output: &Path,
    guard: &Guard<'_>,
) -> Result<bool, LabError> {
    let mut command = adapter.reindex(job);
    capture(&mut command, output)?;
    match measure(command, &job.data, guard)?.end {
        End::Exited { code: 0 } => Ok(true),
        End::Interrupted => Ok(false),
        end => {
            let said = log_end(&adapter.log(job), output);
            Err(LabError::program(name, format!("{it} does not validate the chain ({end:?}); its log ends:\n{said}")))
        }
    }
}

/// Redirects the program's output to a file; it may say why the program does not start.
pub(crate) fn capture(command: &mut Command, output: &Path) -> Result<(), LabError> {
    let open = OpenOptions::new().create(true).append(true).open(output);
    let file = open.map_err(|error| LabError::io("create", output, error))?;
    let second = file.try_clone().map_err(|error| LabError::io("open", output, error))?;
    command.stdout(file).stderr(second);
    Ok(())
}

pub(crate) fn log_end(log: &Path, output: &Path) -> String {
    let ends = [log::end_of(log, LOG_END_BYTES), log::end_of(output, LOG_END_BYTES)];
    ends.into_iter().filter(|text| !text.is_empty()).collect::<Vec<_>>().join("\n")
}

/// The folder of one run: empty at first, removed afterwards.
#[derive(Debug)]
pub(crate) struct Folder(pub(crate) PathBuf);

impl Folder {
    pub(crate) fn new(path: &Path) -> Result<Folder, LabError> {
        system::remove_dir(path)?;
        system::create_dir(path)?;
        Ok(Folder(path.to_path_buf()))
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        // The next run removes any leftovers.
        let _ = system::remove_dir(&self.0);
    }
}
