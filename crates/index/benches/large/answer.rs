//! The process that opens the index after a kill, and what it is asked.
//!
//! Input: a directory, the script of the first question, and commands, one a line. Output: lines for the process that
//! measures. Every answer is compared with what follows from the chain.

use crate::Options;
use crate::build::{Folder, catch_up, open};
use crate::chain::script;
use crate::machine::{CountingDisk, Droppable, cpu, device_bytes, peak_memory, timed};
use crate::watched::{Expected, balance, expected, hash_of, read};
use lydian_engine::Follower;
use lydian_hash::sha256;
use lydian_index::{OutputFate, ScriptHash, ScriptOutput, TxIndexReader};
use lydian_primitives::{Height, Txid};
use lydian_stdx::SplitMix64;
use std::collections::BTreeSet;
use std::time::{Duration, Instant};

/// The classes of scripts, by the number of their transactions.
const CLASSES: [(&str, usize, usize); 6] = [
    ("1-9", 1, 9),
    ("10-29", 10, 29),
    ("30-99", 30, 99),
    ("100-299", 100, 299),
    ("300-999", 300, 999),
    ("1000-", 1_000, usize::MAX),
];

/// Scripts of a class that are asked for.
const SCRIPTS: usize = 400;
/// With nothing cached.
const COLD_SCRIPTS: usize = 100;
const PASSES: usize = 5;

/// With less memory than the index has bytes, so many other scripts are asked for before each.
const OTHERS: usize = 4;
const FIRST_OTHERS: Duration = Duration::from_secs(20);

/// An answer as a digest.
pub(crate) fn digest(outputs: &[ScriptOutput]) -> String {
    sha256(format!("{outputs:?}").as_bytes()).iter().map(|byte| format!("{byte:02x}")).collect()
}

/// Answers a question, then commands.
pub(crate) fn answer(folder: &Folder, options: &Options, number: u32) {
    let disk = CountingDisk::default();
    let (mut index, reader) = open(folder, options.profile, &disk);
    let outputs = reader.outputs(&hash_of(number)).unwrap();
    history(&reader, &outputs.outputs);
    let (tip, (calls, bytes)) = (reader.tip().unwrap(), disk.0.now());
    let digest = digest(&outputs.outputs);
    println!("answered {} {digest} {} {calls} {bytes} {}", tip.height.0, cpu().as_micros(), device_bytes());
    for line in std::io::stdin().lines() {
        match line.unwrap().as_str() {
            "catch up" => {
                let (added, wall, cpu) = timed(|| catch_up(folder, &mut index));
                // As a node does after ten minutes at most: then rows are settled.
                index.checkpoint(reader.tip().unwrap()).unwrap();
                println!("level {added} {} {}", wall.as_millis(), cpu.as_millis());
                let (_, wall, cpu) = timed(|| index.wait_until_idle());
                println!("idle {} {} {}", wall.as_millis(), cpu.as_millis(), peak_memory());
            }
            "ask" => {
                let asking = Asking::new(folder, &reader, &disk, options);
                asking.warm();
                asking.cold();
                println!("asked");
            }
            "ask with little memory" => {
                Asking::new(folder, &reader, &disk, options).with_little_memory();
                println!("asked");
            }
            other => panic!("{other}"),
        }
    }
}

/// The transactions of a script, in the order of the chain; with txids if the index has them.
fn history(reader: &TxIndexReader, outputs: &[ScriptOutput]) -> Vec<(Option<Txid>, Height)> {
    let spenders = outputs.iter().filter_map(|output| match output.fate {
        OutputFate::Spent(spender) => Some(spender),
        OutputFate::Unspent(_) | OutputFate::Overwritten => None,
    });
    let numbers: BTreeSet<u32> = outputs.iter().map(|output| output.number).chain(spenders).collect();
    let numbers: Vec<u32> = numbers.into_iter().collect();
    match reader.txids(&numbers).unwrap() {
        Some(all) => all.into_iter().map(|found| found.map(|(txid, height)| (Some(txid), height)).unwrap()).collect(),
        None => numbers.iter().map(|number| (None, reader.height_of(*number).unwrap())).collect(),
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Question {
    Balance,
    History,
}

/// What questions cost.
#[derive(Debug, Default)]
struct Costs {
    wall: Vec<Duration>,
    cpu: Duration,
    reads: u64,
    bytes: u64,
    device: u64,
    asked: u32,
}

impl Costs {
    fn add(&mut self, other: Costs) {
        self.wall.extend(other.wall);
        self.cpu += other.cpu;
        self.reads += other.reads;
        self.bytes += other.bytes;
        self.device += other.device;
        self.asked += other.asked;
    }

    fn print(&mut self, what: &str, class: &str) {
        if self.wall.is_empty() {
            return;
        }
        self.wall.sort();
        let milliseconds = |share: usize| self.wall[(self.wall.len() - 1) * share / 100].as_secs_f64() * 1e3;
        let each = |count: u64| count as f64 / f64::from(self.asked);
        println!(
            "{what} {class:8} {:4} scripts {:8.3} / {:8.3} ms, CPU {:7.3} ms, {:6.1} reads of {:7.1} kB, {:7.1} kB from the device",
            self.wall.len(),
            milliseconds(50),
            milliseconds(99),
            self.cpu.as_secs_f64() * 1e3 / f64::from(self.asked),
            each(self.reads),
            each(self.bytes) / 1e3,
            each(self.device) / 1e3,
        );
    }
}

struct Asking<'a> {
    folder: &'a Folder,
    reader: &'a TxIndexReader,
    disk: &'a CountingDisk,
    /// Of each class, the scripts in a random order, with what must be answered.
    classes: Vec<Vec<(u32, Expected)>>,
    scripts: u32,
}

impl<'a> Asking<'a> {
    fn new(folder: &'a Folder, reader: &'a TxIndexReader, disk: &'a CountingDisk, options: &Options) -> Asking<'a> {
        let events = read(&folder.events());
        let all = expected(&events, reader.tip().unwrap().height.0);
        // Those that nothing paid to yet have no events; scripts are numbered in the order of their first output.
        let scripts = all.keys().next_back().copied().unwrap_or(0).max(options.services());
        let mut random = SplitMix64::new(2);
        let mut all: Vec<(u64, (u32, Expected))> = all.into_iter().map(|one| (random.next_u64(), one)).collect();
        all.sort_by_key(|(place, _)| *place);
        let mut classes = vec![Vec::new(); CLASSES.len()];
        for (_, (script, expected)) in all {
            let count = expected.history.len();
            let class = CLASSES.iter().position(|(_, least, most)| (*least..=*most).contains(&count)).unwrap();
            if classes[class].len() < SCRIPTS {
                classes[class].push((script, expected));
            }
        }
        Asking { folder, reader, disk, classes, scripts }
    }

    /// Asks once.
    fn ask(&self, question: Question, script: u32, expected: &Expected) -> Costs {
        let hash = hash_of(script);
        let (before, device) = (self.disk.0.now(), device_bytes());
        let (answer, wall, cpu) = timed(|| {
            let outputs = self.reader.outputs(&hash).unwrap().outputs;
            let history = (question == Question::History).then(|| history(self.reader, &outputs));
            (balance(&outputs), outputs, history)
        });
        let (after, device) = (self.disk.0.now(), device_bytes() - device);
        assert_eq!((answer.0, &answer.1), (expected.balance(), &expected.outputs), "script {script}");
        if let Some(history) = answer.2 {
            let expected = expected.history.values();
            let expected =
                expected.map(|(txid, height)| (history.first().and_then(|one| one.0).map(|_| *txid), *height));
            assert!(history.iter().copied().eq(expected), "script {script}");
        }
        Costs { wall: vec![wall], cpu, reads: after.0 - before.0, bytes: after.1 - before.1, device, asked: 1 }
    }

    /// Each script several times: the median of the passes after the first.
    fn warm(&self) {
        for question in [Question::Balance, Question::History] {
            for ((class, ..), scripts) in CLASSES.iter().zip(&self.classes) {
                let mut costs = Costs::default();
                for (script, expected) in scripts {
                    self.ask(question, *script, expected);
                    let mut one = Costs::default();
                    (0..PASSES).for_each(|_| one.add(self.ask(question, *script, expected)));
                    one.wall.sort();
                    one.wall = vec![one.wall[PASSES / 2]];
                    costs.add(one);
                }
                costs.print(&format!("{question:?}, all cached:   "), class);
            }
        }
    }

    /// Each script once, with no page of the index in the page cache.
    fn cold(&self) {
        let files = Droppable::new(&self.folder.index());
        for question in [Question::Balance, Question::History] {
            for ((class, ..), scripts) in CLASSES.iter().zip(&self.classes) {
                let mut costs = Costs::default();
                for (script, expected) in scripts.iter().take(COLD_SCRIPTS) {
                    files.drop_cached();
                    costs.add(self.ask(question, *script, expected));
                }
                costs.print(&format!("{question:?}, nothing cached:"), class);
            }
        }
    }

    /// Scripts of all classes in turn, and others between them, so that the pages that are cached are those of no
    /// script in particular.
    fn with_little_memory(&self) {
        let mut random = SplitMix64::new(3);
        let mut other = || {
            let number = u32::try_from(random.below(self.scripts as usize)).unwrap();
            let outputs = self.reader.outputs(&ScriptHash::of(&script(number))).unwrap();
            history(self.reader, &outputs.outputs);
        };
        let (start, before, mut asked) = (Instant::now(), device_bytes(), 0);
        while start.elapsed() < FIRST_OTHERS {
            other();
            asked += 1;
        }
        let read = (device_bytes() - before) as f64 / 1e3 / f64::from(asked);
        println!("{asked} other scripts in {} s, {read:.1} kB from the device for each", FIRST_OTHERS.as_secs());
        let mut costs: Vec<[Costs; 2]> = CLASSES.iter().map(|_| Default::default()).collect();
        for at in 0..SCRIPTS {
            for (scripts, costs) in self.classes.iter().zip(&mut costs) {
                let Some((script, expected)) = scripts.get(at) else { continue };
                (0..OTHERS).for_each(|_| other());
                let question = [Question::Balance, Question::History][at % 2];
                costs[at % 2].add(self.ask(question, *script, expected));
            }
        }
        for (at, question) in [Question::Balance, Question::History].into_iter().enumerate() {
            for ((class, ..), costs) in CLASSES.iter().zip(&mut costs) {
                costs[at].print(&format!("{question:?}, little memory: "), class);
            }
        }
    }
}
