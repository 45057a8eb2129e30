//! A large index: how long a start takes after a kill, and what answers cost if the index is larger than memory.
//!
//! `cargo bench -p lydian-index --bench large -- [--blocks N] [--transactions N] [--large-blocks N] [--compact]
//! [--memory-mb N] [--rounds N] [--dir DIR [--keep | --kept]]`. A process makes a chain ([`chain`]) and feeds the index
//! with it ([`build`]). It is killed while segments become a larger one. Then processes open the index: the time from
//! their start to the first answer, from the page cache and without it, each killed in turn. The last one gets the
//! blocks that were lost, and is asked about many scripts ([`answer`]): with everything in the page cache, with
//! nothing, and, with `--memory-mb`, while so much memory is left for all of this machine. Every answer is compared
//! with the chain ([`watched`]). With `--keep` the directory stays, and with `--kept` only the questions are asked
//! again.
#![allow(clippy::unwrap_used, clippy::print_stdout, reason = "a benchmark fails at once, and prints")]
#![allow(clippy::disallowed_methods, reason = "a benchmark reads the clock, and files beside the index")]

mod answer;
mod build;
mod chain;
mod machine;
mod watched;

use build::Folder;
use lydian_index::Profile;
use machine::{drop_cached, files, size_of};
use std::collections::BTreeMap;
use std::io::{BufRead, BufReader, Write};
use std::path::PathBuf;
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};
use std::time::{Duration, Instant};
use watched::{Event, Watched, expected, read};

#[derive(Clone, Debug)]
struct Options {
    blocks: u32,
    transactions: usize,
    /// So many blocks at the end are as large as mainnet's today.
    large_blocks: u32,
    profile: Profile,
    memory_mb: Option<u64>,
    rounds: usize,
    dir: PathBuf,
    /// The directory stays afterwards.
    keeps: bool,
    /// It is from an earlier run.
    is_kept: bool,
}

/// The transactions of a block of mainnet in 2025.
const TRANSACTIONS_LARGE: usize = 3_500;
/// A chain with more transactions has the shares of mainnet.
const TRANSACTIONS_MANY: usize = 1_000_000;
/// Blocks whose merge begins 1,088 blocks above them.
const MERGED_BLOCKS: u32 = 2_048;
const UNSEALED_BLOCKS: u32 = 1_088;
/// Events of the script of the first question.
const FIRST_EVENTS: usize = 300;
const WAIT: Duration = Duration::from_secs(120);

impl Options {
    fn from_arguments() -> Options {
        let arguments: Vec<String> = std::env::args().collect();
        let has = |name: &str| arguments.iter().any(|argument| argument == name);
        let value = |name: &str| arguments.get(arguments.iter().position(|argument| argument == name)? + 1);
        let number = |name: &str, default: u32| value(name).map_or(default, |text| text.parse().unwrap());
        let is_test = !has("--bench") || has("--test");
        let count = |name: &str, default: u32| usize::try_from(number(name, default)).unwrap();
        let scratch = std::env::temp_dir().join(format!("lydian-large-{}", std::process::id()));
        Options {
            blocks: number("--blocks", MERGED_BLOCKS + UNSEALED_BLOCKS + 10),
            transactions: count("--transactions", if is_test { 4 } else { 300 }),
            large_blocks: number("--large-blocks", 0),
            profile: Profile { has_scripts: true, has_txids: !has("--compact") },
            memory_mb: value("--memory-mb").map(|text| text.parse().unwrap()),
            rounds: count("--rounds", if is_test { 1 } else { 5 }),
            dir: value("--dir").map_or(scratch, PathBuf::from),
            keeps: has("--keep") || has("--kept"),
            is_kept: has("--kept"),
        }
    }

    fn has_many(&self) -> bool {
        self.transactions * self.blocks as usize > TRANSACTIONS_MANY
    }

    fn services(&self) -> u32 {
        if self.has_many() { 500_000 } else { 1_000 }
    }

    fn sizes(&self) -> chain::Sizes {
        let transactions_large = if self.large_blocks > 0 { TRANSACTIONS_LARGE } else { self.transactions };
        let large_from = self.blocks.saturating_sub(self.large_blocks);
        chain::Sizes { large_from, transactions: self.transactions, transactions_large, services: self.services() }
    }

    fn watched(&self) -> Watched {
        let (one_of_services, one_of_others) = if self.has_many() { (61, 20_011) } else { (7, 101) };
        Watched { services: self.services(), one_of_services, one_of_others }
    }

    /// The heights of the last segment that is made of others once there are so many blocks.
    fn last_merge(&self) -> (u32, u32) {
        let end = self.blocks.saturating_sub(UNSEALED_BLOCKS) / MERGED_BLOCKS * MERGED_BLOCKS;
        let mut size = MERGED_BLOCKS;
        while end.is_multiple_of(size * 8) && end > 0 {
            size *= 8;
        }
        (end - size.min(end), end)
    }
}

fn main() {
    let options = Options::from_arguments();
    let folder = Folder(options.dir.clone());
    match std::env::var("LYDIAN_LARGE_ROLE").as_deref() {
        Ok("build") => build::build(&folder, &options),
        Ok("memory") => machine::take_memory(options.memory_mb.unwrap() << 20),
        Ok(script) => answer::answer(&folder, &options, script.parse().unwrap()),
        Err(_) => measure(&folder, &options),
    }
}

/// A process of this program, with its lines.
struct Process {
    child: Child,
    input: ChildStdin,
    output: BufReader<ChildStdout>,
}

impl Process {
    fn start(role: &str, options: &Options) -> Process {
        let mut command = Command::new(std::env::current_exe().unwrap());
        command.args(std::env::args().skip(1)).arg("--dir").arg(&options.dir).env("LYDIAN_LARGE_ROLE", role);
        let mut child = command.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().unwrap();
        let (input, output) = (child.stdin.take().unwrap(), BufReader::new(child.stdout.take().unwrap()));
        Process { child, input, output }
    }

    /// The next line that begins with a word; those before are printed. Its other words.
    fn line(&mut self, word: &str) -> Vec<String> {
        loop {
            let mut line = String::new();
            assert_ne!(self.output.read_line(&mut line).unwrap(), 0, "a process ended before it said {word}");
            let mut words = line.split_whitespace().map(str::to_owned);
            if words.next().as_deref() == Some(word) {
                return words.collect();
            }
            print!("{line}");
        }
    }

    fn say(&mut self, line: &str) {
        writeln!(self.input, "{line}").unwrap();
    }

    fn kill(mut self) {
        self.child.kill().unwrap();
        self.child.wait().unwrap();
    }

    fn end(self) {
        let Process { mut child, input, .. } = self;
        drop(input);
        assert!(child.wait().unwrap().success());
    }
}

fn number(word: &str) -> u64 {
    word.parse().unwrap()
}

fn seconds(milliseconds: &str) -> f64 {
    number(milliseconds) as f64 / 1e3
}

fn mb(bytes: u64) -> f64 {
    bytes as f64 / 1e6
}

fn measure(folder: &Folder, options: &Options) {
    if !options.is_kept {
        std::fs::create_dir(&folder.0).unwrap();
        build_and_kill(folder, options);
    }
    let events = read(&folder.events());
    if !options.is_kept {
        measure_starts(folder, options, &events);
    }
    let mut process = Process::start(&first_script(&events), options);
    process.line("answered");
    if !options.is_kept {
        process.say("catch up");
        let level = process.line("level");
        println!("{} blocks that were lost: {:.2} s, CPU {:.2} s", level[0], seconds(&level[1]), seconds(&level[2]));
        let idle = process.line("idle");
        let peak = mb(number(&idle[2]));
        println!(
            "all merged: {:.2} s later, CPU {:.2} s; most memory {peak:.1} MB",
            seconds(&idle[0]),
            seconds(&idle[1])
        );
    }
    println!("index of {:.1} MB", mb(size_of(&folder.index())));
    process.say("ask");
    process.line("asked");
    if options.memory_mb.is_some() && machine::has_swap() {
        println!("not measured with little memory: this machine has swap space");
    } else if options.memory_mb.is_some() {
        let mut memory = Process::start("memory", options);
        println!("{:.1} MB of memory taken", mb(number(&memory.line("taken")[0])));
        process.say("ask with little memory");
        process.line("asked");
        memory.end();
    }
    process.end();
    if !options.keeps {
        std::fs::remove_dir_all(&folder.0).unwrap();
    }
}

/// The time to the first answer, a few times from the page cache and without it.
fn measure_starts(folder: &Folder, options: &Options, events: &[Event]) {
    let index = folder.index();
    println!("killed with {} files of {:.1} MB", files(&index).len(), mb(size_of(&index)));
    for is_cached in [false, true] {
        let mut starts: Vec<Start> = (0..options.rounds).map(|_| start(folder, options, events, is_cached)).collect();
        starts.sort_by_key(|start| start.wall);
        let Start { wall, cpu, reads, bytes, device, left } = starts[starts.len() / 2];
        println!(
            "start to first answer, {}: {:.3} s (most {:.3}), CPU {:.3} s, {reads} reads of {:.1} MB, {:.1} MB from the device, {:.1} MB of files",
            if is_cached { "all cached" } else { "nothing cached" },
            wall.as_secs_f64(),
            starts.last().unwrap().wall.as_secs_f64(),
            cpu.as_secs_f64(),
            mb(bytes),
            mb(device),
            mb(left),
        );
    }
}

/// Kills the process that builds the index while it writes a segment that is made of others.
fn build_and_kill(folder: &Folder, options: &Options) {
    let mut process = Process::start("build", options);
    let built = process.line("built");
    let inputs = number(&built[0]);
    let each = number(&built[2]) as f64 * 1e6 / inputs as f64;
    println!(
        "{} blocks, {inputs} inputs: {:.1} s, CPU {:.1} s, {each:.0} ns for an input",
        options.blocks,
        seconds(&built[1]),
        seconds(&built[2]),
    );
    let (from, end) = options.last_merge();
    let path = folder.index().join(format!("{from:07}-{end:07}.numbers"));
    let start = Instant::now();
    while !path.exists() && start.elapsed() < WAIT {
        std::thread::sleep(Duration::from_millis(1));
    }
    // In the middle of it, if it takes long.
    std::thread::sleep(Duration::from_millis(if options.has_many() { 1_000 } else { 1 }));
    process.kill();
    let is_whole = path.with_extension("lists").exists();
    println!("killed at the segment {from}-{end}, {}", if is_whole { "at its end or behind it" } else { "unfinished" });
}

/// What a start took.
#[derive(Clone, Copy, Debug)]
struct Start {
    wall: Duration,
    cpu: Duration,
    reads: u64,
    bytes: u64,
    device: u64,
    /// Bytes of the files once it was open.
    left: u64,
}

/// One with some hundred outputs, which has events in most segments.
fn first_script(events: &[Event]) -> String {
    let mut counts: BTreeMap<u32, usize> = BTreeMap::new();
    events.iter().for_each(|event| *counts.entry(event.script).or_default() += 1);
    let (script, _) = counts.iter().min_by_key(|(_, count)| count.abs_diff(FIRST_EVENTS)).unwrap();
    script.to_string()
}

fn start(folder: &Folder, options: &Options, events: &[Event], is_cached: bool) -> Start {
    let script = first_script(events);
    if !is_cached {
        drop_cached(&folder.index());
    }
    let begin = Instant::now();
    let mut process = Process::start(&script, options);
    let words = process.line("answered");
    let wall = begin.elapsed();
    let left = size_of(&folder.index());
    process.kill();
    let height = u32::try_from(number(&words[0])).unwrap();
    let all = expected(events, height);
    let expected = &all[&script.parse::<u32>().unwrap()].outputs;
    assert_eq!(words[1], answer::digest(expected), "the first answer");
    let cpu = Duration::from_micros(number(&words[2]));
    Start { wall, cpu, reads: number(&words[3]), bytes: number(&words[4]), device: number(&words[5]), left }
}
