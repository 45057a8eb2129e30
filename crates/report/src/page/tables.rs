//! Tables and facts shared by several parts of the report.
//!
//! Input: results. Output: tables, facts and sentences. Invariant: a table of contenders lists all systems that took no
//! part, with reason and source.

use super::document::{Block, Cell, Mark, Row, Table};
use super::words::{self, title_of, version_of};
use crate::results::{
    ChainFacts, Experiment, Floor, Lab, LeftOut, MachineFacts, NodeFacts, Outcome, Results, Run, Spread,
};

pub(super) fn experiment(experiment: Experiment) -> &'static str {
    match experiment {
        Experiment::Reindex => "reindex",
        Experiment::Sync => "sync",
    }
}

/// For example `AMD EPYC, 2 cores, 25.3 GB of memory`.
pub(super) fn machine(facts: &MachineFacts) -> String {
    let memory = facts.memory_bytes.map(|bytes| format!(", {:.0} GB of memory", words::as_f64(bytes) / 1e9));
    format!("{}, {} cores{}", facts.cpu, facts.cores, memory.unwrap_or_default())
}

/// For example `550 blocks with mainnet's mix`.
pub(super) fn chain(facts: &ChainFacts) -> String {
    let blocks = words::count(facts.height.into());
    match facts.preset.as_deref() {
        Some("mainnet-mix") => format!("{blocks} blocks with mainnet's mix"),
        Some("empty") => format!("{blocks} empty blocks"),
        Some("worst") => format!("{blocks} blocks, the most expensive that the rules allow"),
        Some("reuse") => format!("{blocks} blocks with addresses used again"),
        Some(preset) => format!("{blocks} blocks of the preset {preset}"),
        None => format!("{blocks} blocks of {}", facts.network),
    }
}

/// The rows of systems without figures.
pub(super) fn absent(nodes: &[NodeFacts], left_out: &[LeftOut]) -> Vec<Row> {
    let cannot = nodes.iter().filter_map(|node| {
        let reason = format!("takes no part: {}", node.cannot.as_ref()?);
        Some(Row::Reason { name: title_of(&node.name), reason, source: None })
    });
    let left_out = left_out.iter().map(|entry| Row::Reason {
        name: entry.name.clone(),
        reason: format!("not measured: {}", entry.reason),
        source: entry.source.clone(),
    });
    cannot.chain(left_out).collect()
}

/// A median with its range, such as `2.01–2.06`, below.
pub(super) fn spread(spread: &Spread, digits: usize) -> Cell {
    let cell = Cell::new(format!("{:.digits$}", spread.median));
    if spread.max > spread.min { cell.note(format!("{:.digits$}–{:.digits$}", spread.min, spread.max)) } else { cell }
}

/// A median of bytes in MB, without its range.
pub(super) fn megabytes(spread: &Spread) -> Cell {
    Cell::new(words::whole(spread.median / 1e6))
}

pub(super) fn outcome(outcome: Outcome) -> &'static str {
    match outcome {
        Outcome::Counted => "counts",
        Outcome::WrongAnswer => "wrong answer",
        Outcome::Failed => "failed",
        Outcome::TimedOut => "took too long",
        Outcome::MemoryExceeded => "took too much memory",
        Outcome::DiskFull => "the disk was full",
    }
}

/// All runs, with the reasons of those that do not count.
pub(super) fn all_runs(results: &Results) -> Table {
    let columns = [
        "node",
        "#run",
        "outcome",
        "#wall s",
        "#tip s",
        "#user s",
        "#system s",
        "#peak MB",
        "#read by calls MB",
        "#written by calls MB",
        "#idle %",
        "#others %",
        "#exit",
    ];
    let mut table = Table::new(
        "Every run. By calls: what the program moved, whether a disk had to or not. Idle and others: share of the machine's time.",
        &columns,
    );
    for run in &results.runs {
        table.push(run_cells(run));
    }
    table
}

fn run_cells(run: &Run) -> Vec<Cell> {
    let share = |share: Option<f64>| Cell::or_none(share.map(|share| format!("{:.1}", share * 100.0)));
    let counts = run.outcome == Outcome::Counted;
    let mut what = Cell::new(outcome(run.outcome)).mark(if counts { Mark::None } else { Mark::Bad });
    if run.is_disturbed {
        what = what.note("busy machine");
    }
    let cache = cache_suffix(run);
    vec![
        Cell::new(format!("{}{cache}", title_of(&run.node))),
        Cell::new(run.number.to_string()),
        what,
        Cell::new(format!("{:.3}", run.wall_seconds)),
        Cell::or_none(run.tip_seconds.map(|seconds| format!("{seconds:.3}"))),
        Cell::new(format!("{:.2}", run.user_seconds)),
        Cell::new(format!("{:.2}", run.system_seconds)),
        Cell::new(words::whole(words::as_f64(run.peak_rss_bytes) / 1e6)),
        Cell::new(words::whole(words::as_f64(run.io.rchar) / 1e6)),
        Cell::new(words::whole(words::as_f64(run.io.wchar) / 1e6)),
        share(run.machine.idle_share),
        share(run.machine.others_share),
        Cell::or_none(run.exit_code.map(|code| code.to_string())),
    ]
}

fn cache_suffix(run: &Run) -> &'static str {
    match run.cache {
        crate::results::Cache::Warm => "",
        crate::results::Cache::Cold => " (cold)",
    }
}

/// Runs that do not count, each with its reason and the end of its log.
pub(super) fn failures(results: &Results) -> Vec<Block> {
    let of = |run: &Run| {
        let reason = run.reason.as_deref().unwrap_or("no reason is known");
        let name = format!("{}{}", title_of(&run.node), cache_suffix(run));
        let summary = format!("{name}, run {}, does not count ({}): {reason}", run.number, outcome(run.outcome));
        match &run.log_end {
            Some(log) => Block::Details { summary, blocks: vec![Block::Output(log.clone())] },
            None => Block::Warning(summary),
        }
    };
    results.runs.iter().filter(|run| run.outcome != Outcome::Counted).map(of).collect()
}

/// Which broken blocks each node accepts; `None` if no node was asked.
pub(super) fn validity(nodes: &[NodeFacts], left_out: &[LeftOut]) -> Option<Table> {
    let asked: Vec<&NodeFacts> = nodes.iter().filter(|node| node.cannot.is_none()).collect();
    let mut rules: Vec<&str> = Vec::new();
    for case in asked.iter().filter_map(|node| node.validity.as_ref()).flat_map(|validity| &validity.cases) {
        if !rules.contains(&case.rule.as_str()) {
            rules.push(&case.rule);
        }
    }
    if asked.iter().all(|node| node.validity.is_none()) {
        return None;
    }
    let names: Vec<String> = asked.iter().map(|node| title_of(&node.name)).collect();
    let columns: Vec<&str> = std::iter::once("a block breaks").chain(names.iter().map(String::as_str)).collect();
    let mut table =
        Table::new("What each node does with a block that breaks one rule; every one must be refused.", &columns);
    for rule in rules {
        let cells = asked.iter().map(|node| verdict(node, rule));
        table.push(std::iter::once(Cell::new(rule)).chain(cells).collect());
    }
    for (node, name) in asked.iter().zip(&names) {
        let reason = match &node.validity {
            None => Some("it was not asked".to_owned()),
            Some(validity) if validity.unasked > 0 && !validity.cases.is_empty() => {
                let reason = validity.reason.as_deref().unwrap_or("no reason is known");
                Some(format!("{} rules not asked: {reason}", validity.unasked))
            }
            Some(validity) => validity.reason.clone(),
        };
        if let Some(reason) = reason {
            table.rows.push(Row::Reason { name: name.clone(), reason, source: None });
        }
    }
    table.rows.extend(absent(nodes, left_out));
    Some(table)
}

fn verdict(node: &NodeFacts, rule: &str) -> Cell {
    let cases: Vec<_> =
        node.validity.iter().flat_map(|validity| &validity.cases).filter(|case| case.rule == rule).collect();
    match (cases.is_empty(), cases.iter().find(|case| case.is_accepted)) {
        (true, _) => Cell::none(),
        (false, Some(case)) => Cell::new("✗ accepts").note(format!("height {}", case.height)).mark(Mark::Bad),
        (false, None) => Cell::new("✓ refuses").mark(Mark::Good),
    }
}

/// The lab and the command of a measurement, to repeat it.
pub(super) fn provenance(lab: &Lab, machine: &MachineFacts, chain: &ChainFacts, started: f64) -> Vec<(String, String)> {
    let fact = |name: &str, value: String| (name.to_owned(), value);
    vec![
        fact("Command", lab.command_line.join(" ")),
        fact("Started", words::date(started)),
        fact("Lab", format!("{} {}", lab.version, lab.commit.as_deref().unwrap_or("(commit not known)"))),
        fact("Machine", self::machine(machine)),
        fact("Kernel", machine.kernel.clone()),
        fact("File system", machine.filesystem.clone().unwrap_or_else(|| "not known".into())),
        fact(
            "Chain",
            format!("{} ({}), {}", self::chain(chain), chain.network, words::bytes(words::as_f64(chain.file_bytes))),
        ),
        fact("In it", contents(chain)),
        fact("Tip", format!("{}, height {}", chain.tip, chain.height)),
        fact("SHA-256 of the files", chain.sha256.clone()),
    ]
}

/// The counts of a chain.
fn contents(chain: &ChainFacts) -> String {
    let counts = [
        (chain.transactions, "transactions"),
        (chain.inputs, "inputs"),
        (chain.outputs, "outputs"),
        (chain.ecdsa_verifications, "ECDSA verifications"),
        (chain.schnorr_verifications, "Schnorr verifications"),
        (chain.tweak_checks, "tweak checks"),
    ];
    let known: Vec<String> =
        counts.iter().filter_map(|(count, of)| Some(format!("{} {of}", words::count((*count)?)))).collect();
    if known.is_empty() { "nobody counted".into() } else { words::list(&known) }
}

/// Versions and arguments.
pub(super) fn programs(nodes: &[NodeFacts]) -> Table {
    let mut table = Table::new(
        "Programs and their arguments. DATADIR stands for the folder of a run.",
        &["node", "version", "arguments"],
    );
    for node in nodes.iter().filter(|node| node.cannot.is_none()) {
        let version = Cell::new(version_of(&node.version)).note(node.version.clone());
        let arguments = Cell::new(node.arguments.join(" "));
        let source = node.source.as_ref().map(|source| format!("the chain comes from {source}"));
        let name = Cell { note: source, ..Cell::new(title_of(&node.name)) };
        table.push(vec![name, version, arguments]);
    }
    table
}

pub(super) fn floor(floor: &Floor) -> String {
    format!(
        "The floor, {}, is what checking every signature one after the other with libsecp256k1 costs on this machine: {:.1} µs for an ECDSA, {:.1} µs for a Schnorr and \
         {:.1} µs for a tweak check, the least of some short measurements before the runs, on {} threads. A node well below it checks many at once; a few percent say nothing, since the machine's speed changes from minute to minute.",
        words::seconds(floor.seconds),
        floor.ecdsa_ns / 1e3,
        floor.schnorr_ns / 1e3,
        floor.tweak_ns / 1e3,
        floor.threads
    )
}
