//! `lydian-lab reindex`: whole nodes as processes on the same block files, in turn, measured from start to exit.
//!
//! Input: a chain, contenders, settings. Output: results, of which a run counts only with the right tip and UTXO hash. Every run has a data
//! directory of its own, made of copies before the clock starts and removed afterwards. A node that fails is recorded and the others go on.
//! Must never: run two nodes at once, or beside another lab (`lock.rs`).

pub mod adapter;
pub mod adapters;
pub mod chain_cache;
pub mod chain_files;
pub mod lock;
pub mod log;
pub mod machine;
pub mod measure;
pub mod procfs;
pub mod results;
pub mod rpc;
pub mod summary;
pub mod system;

pub use machine::{floor, machine_facts};
pub use summary::to_markdown;

use adapter::{Adapter, Job};
use chain_files::ChainFiles;
use measure::{End, Guard, Measured, measure};
use results::{Cache, FORMAT, Floor, Lab, NodeFacts, Outcome, Results, Run, Settings, rounded};
use std::ffi::OsStr;
use std::fs::OpenOptions;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use crate::error::LabError;

/// Of a log, for a run that does not count.
const LOG_END_BYTES: u64 = 2_000;

/// A node with the name that the results give it.
#[derive(Debug)]
pub struct Contender {
    pub name: String,
    pub adapter: Box<dyn Adapter>,
    /// Arguments for this node alone.
    pub more: Vec<String>,
}

/// What a comparison consists of.
#[derive(Debug)]
pub struct Comparison<'a> {
    pub chain: &'a ChainFiles,
    pub contenders: &'a [Contender],
    pub caches: &'a [Cache],
    /// Before a cold run everybody's files may leave the cache, not those of the run alone.
    pub may_drop_caches: bool,
    pub settings: Settings,
    pub floor: Option<Floor>,
    /// Nodes work below it; the folder for a run is made and removed there.
    pub work: &'a Path,
    pub command_line: Vec<String>,
    pub interrupted: &'a AtomicBool,
}

impl Comparison<'_> {
    /// Runs the contenders in turn. After each run `done` gets what there is so far. An interruption ends it and keeps the finished runs.
    pub fn run(&self, done: &mut dyn FnMut(&Results, &Run) -> Result<(), LabError>) -> Result<Results, LabError> {
        let mut results = self.begin()?;
        for &cache in self.caches {
            for number in 1..=self.settings.runs {
                for contender in self.contenders {
                    let Some(run) = self.one(contender, number, cache)? else {
                        results.settle(self.chain.answer.as_ref());
                        return Ok(results);
                    };
                    results.runs.push(run);
                    let mut so_far = results.clone();
                    so_far.settle(self.chain.answer.as_ref());
                    if let Some(run) = so_far.runs.last() {
                        done(&so_far, run)?;
                    }
                }
            }
        }
        results.settle(self.chain.answer.as_ref());
        Ok(results)
    }

    fn begin(&self) -> Result<Results, LabError> {
        let place = self.job(Path::new("DATADIR"), &[]);
        let mut nodes = Vec::new();
        for contender in self.contenders {
            let job = Job { more: contender.more.clone(), ..place.clone() };
            let command = contender.adapter.reindex(&job);
            nodes.push(NodeFacts {
                name: contender.name.clone(),
                program: contender.adapter.program().display().to_string(),
                version: contender.adapter.version()?,
                arguments: command.get_args().map(|argument| argument.to_string_lossy().into_owned()).collect(),
            });
        }
        Ok(Results {
            format: FORMAT,
            lab: Lab {
                version: env!("CARGO_PKG_VERSION").into(),
                commit: machine::commit(),
                command_line: self.command_line.clone(),
            },
            started: system::unix_seconds(),
            machine: machine_facts(self.work),
            chain: self.chain.facts.clone(),
            settings: self.settings.clone(),
            floor: self.floor.clone(),
            nodes,
            expected: None,
            is_agreed: false,
            runs: Vec::new(),
            summary: Vec::new(),
        })
    }

    fn job(&self, data: &Path, more: &[String]) -> Job {
        Job {
            data: data.to_path_buf(),
            network: self.chain.network,
            height: self.chain.facts.height,
            threads: self.settings.threads,
            cache_mib: self.settings.cache_mib,
            more: more.to_vec(),
        }
    }

    /// `None` when it was interrupted.
    fn one(&self, contender: &Contender, number: u32, cache: Cache) -> Result<Option<Run>, LabError> {
        if self.interrupted.load(Ordering::Relaxed) {
            return Ok(None);
        }
        let folder = Folder::new(&self.work.join("run"))?;
        let job = self.job(&folder.0.join("data"), &contender.more);
        let blocks = job.chain_folder().join("blocks");
        system::create_dir(&blocks)?;
        for file in &self.chain.files {
            system::copy_durably(file, &blocks.join(file.file_name().unwrap_or(OsStr::new("blk"))))?;
        }
        let emptied_by = match cache {
            Cache::Cold if self.may_drop_caches && system::drop_caches() => Some("drop_caches"),
            Cache::Cold => {
                system::forget_files(&folder.0);
                Some("posix_fadvise")
            }
            Cache::Warm => {
                system::fill_cache(&blocks);
                None
            }
        };
        let output = folder.0.join("output.txt");
        let mut command = contender.adapter.reindex(&job);
        capture(&mut command, &output)?;
        let guard = Guard {
            timeout: Duration::from_secs(self.settings.timeout_seconds),
            memory_max_bytes: self.settings.memory_max_bytes,
            interrupted: self.interrupted,
        };
        let measured = measure(command, &job.data, &guard)?;
        if measured.end == End::Interrupted {
            return Ok(None);
        }
        let mut run = self.record(&contender.name, number, cache, &job, measured);
        run.cache_emptied_by = emptied_by.map(str::to_owned);
        run.log_end = Some(log_end(&job.log(), &output));
        if run.reason.is_none() {
            match contender.adapter.answer(&job) {
                Ok(answer) => run.answer = Some(answer),
                Err(error) => run.reason = Some(format!("it gives no answer afterwards: {error}")),
            }
        }
        Ok(Some(run))
    }

    fn record(&self, node: &str, number: u32, cache: Cache, job: &Job, measured: Measured) -> Run {
        let tips = log::tip_lines(&job.log());
        let mut samples = measured.samples;
        let mut reached = tips.iter().peekable();
        let mut height = None;
        for sample in &mut samples {
            while let Some(tip) = reached.next_if(|tip| tip.unix_seconds <= measured.started + sample.seconds) {
                height = Some(tip.height);
            }
            sample.height = height;
        }
        let tip = tips.iter().find(|line| line.height == job.height && line.hash == self.chain.facts.tip);
        let (outcome, reason) = self.verdict(measured.end);
        Run {
            node: node.to_owned(),
            number,
            cache,
            cache_emptied_by: None,
            outcome,
            reason,
            log_end: None,
            tip_seconds: tip.map(|line| rounded((line.unix_seconds - measured.started).max(0.0))),
            wall_seconds: rounded(measured.wall_seconds),
            user_seconds: rounded(measured.user_seconds),
            system_seconds: rounded(measured.system_seconds),
            peak_rss_bytes: measured.peak_rss_bytes,
            io: measured.io,
            disk_bytes: system::disk_bytes(&job.data),
            is_disturbed: measured.machine.is_disturbed(),
            machine: measured.machine,
            answer: None,
            samples,
        }
    }

    /// What its end alone tells: no reason where the answer decides.
    fn verdict(&self, end: End) -> (Outcome, Option<String>) {
        match end {
            End::Exited { code: 0 } => (Outcome::Failed, None),
            End::Exited { code } => (Outcome::Failed, Some(format!("it ended with exit code {code}"))),
            End::Killed { signal } => (Outcome::Failed, Some(format!("it was killed by signal {signal}"))),
            End::TimedOut => {
                let seconds = self.settings.timeout_seconds;
                (Outcome::TimedOut, Some(format!("it did not end within {seconds} s and was killed")))
            }
            End::MemoryExceeded => {
                let limit = self.settings.memory_max_bytes;
                (Outcome::MemoryExceeded, Some(format!("it used more than {limit} bytes of memory and was killed")))
            }
            End::Interrupted => (Outcome::Failed, Some("it was interrupted".into())),
        }
    }
}

/// What the program says goes into a file; it may say why it does not start.
fn capture(command: &mut Command, output: &Path) -> Result<(), LabError> {
    let open = OpenOptions::new().create(true).append(true).open(output);
    let file = open.map_err(|error| LabError::io("create", output, error))?;
    let second = file.try_clone().map_err(|error| LabError::io("open", output, error))?;
    command.stdout(file).stderr(second);
    Ok(())
}

fn log_end(log: &Path, output: &Path) -> String {
    let ends = [log::end_of(log, LOG_END_BYTES), log::end_of(output, LOG_END_BYTES)];
    ends.into_iter().filter(|text| !text.is_empty()).collect::<Vec<_>>().join("\n")
}

/// The folder of one run: empty at first, gone afterwards.
struct Folder(PathBuf);

impl Folder {
    fn new(path: &Path) -> Result<Folder, LabError> {
        system::remove_dir(path)?;
        system::create_dir(path)?;
        Ok(Folder(path.to_path_buf()))
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        // The next run removes what is left.
        let _ = system::remove_dir(&self.0);
    }
}
