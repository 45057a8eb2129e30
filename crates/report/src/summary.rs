//! Medians, spreads and ratios of the runs that count, and the Markdown table made of them.
//!
//! Input: results. Output: the summary; a table for people. Must never: include a run that does not count in a figure.

use crate::results::{Cache, Figures, Outcome, Results, Run, Spread, Summary, rounded};
use crate::validity;
use std::fmt::Write;

/// Columns of the table.
const COLUMNS: usize = 16;

/// One entry per node and cache state, in the order of the first runs.
pub fn summarise(results: &Results) -> Vec<Summary> {
    let mut summaries: Vec<Summary> = Vec::new();
    for cache in [Cache::Warm, Cache::Cold] {
        let mut first: Option<(&str, f64, f64)> = None;
        for (index, node) in results.nodes.iter().enumerate() {
            let of_node = |run: &&Run| run.node == node.name && run.cache == cache;
            let all: Vec<&Run> = results.runs.iter().filter(of_node).collect();
            if all.is_empty() {
                continue;
            }
            let counted: Vec<&Run> = all.iter().copied().filter(|run| run.outcome == Outcome::Counted).collect();
            let mut figures = figures(results, &node.name, &counted);
            if let Some(figures) = &mut figures {
                if index == 0 {
                    first = Some((&node.name, figures.wall_seconds.median, figures.cpu_seconds.median));
                }
                let first = first.filter(|(first, ..)| results.is_same_work(first, &node.name));
                figures.wall_ratio = first.and_then(|(_, wall, _)| ratio(figures.wall_seconds.median, wall));
                figures.cpu_ratio = first.and_then(|(.., cpu)| ratio(figures.cpu_seconds.median, cpu));
            }
            summaries.push(Summary {
                node: node.name.clone(),
                cache,
                runs_counted: counted.len(),
                runs_disturbed: counted.iter().filter(|run| run.is_disturbed).count(),
                runs_not_counted: all.len() - counted.len(),
                figures,
            });
        }
    }
    summaries
}

fn figures(results: &Results, name: &str, runs: &[&Run]) -> Option<Figures> {
    let over = |value: fn(&Run) -> f64| Spread::of(runs.iter().map(|run| value(run)).collect());
    let known = |value: fn(&Run) -> Option<f64>| {
        let values: Vec<f64> = runs.iter().filter_map(|run| value(run)).collect();
        if values.len() == runs.len() { Spread::of(values) } else { None }
    };
    let wall_seconds = over(|run| run.wall_seconds)?;
    let rate = |count: f64| ratio(count, wall_seconds.median);
    let is_shared = results.own_chain(name).is_none();
    Some(Figures {
        wall_seconds,
        tip_seconds: known(|run| run.tip_seconds),
        cpu_seconds: over(|run| run.user_seconds + run.system_seconds)?,
        peak_rss_bytes: over(|run| as_f64(run.peak_rss_bytes))?,
        read_bytes: over(|run| as_f64(run.io.read_bytes))?,
        write_bytes: over(|run| as_f64(run.io.write_bytes))?,
        disk_bytes: over(|run| as_f64(run.disk_bytes))?,
        received_bytes: known(|run| run.network.map(|network| as_f64(network.received))),
        idle_share: known(|run| run.machine.idle_share),
        blocks_per_second: rate(f64::from(results.height_of(name)))?,
        inputs_per_second: results.chain.inputs.filter(|_| is_shared).and_then(|inputs| rate(as_f64(inputs))),
        wall_ratio: None,
        cpu_ratio: None,
        floor_ratio: results
            .floor
            .as_ref()
            .filter(|_| is_shared)
            .and_then(|floor| ratio(wall_seconds.median, floor.seconds)),
    })
}

/// The table, followed by failures and by what was measured.
pub fn to_markdown(results: &Results) -> String {
    let mut text = String::from(
        "| node | runs | wall s | to tip s | CPU s | idle | RSS MB | read MB | written MB | disk MB | received MB | blocks/s | inputs/s | wall ratio | CPU ratio | wall / floor |\n",
    );
    let _ = writeln!(text, "|{}", "---|".repeat(COLUMNS));
    for summary in &results.summary {
        // Writing to a string cannot fail.
        let _ = writeln!(text, "{}", row(results, summary));
    }
    for node in &results.nodes {
        if let Some(reason) = &node.cannot {
            let _ = writeln!(text, "| {} | cannot |{} {reason} |", node.name, " - |".repeat(COLUMNS - 3));
        }
    }
    for left in &results.left_out {
        let source = left.source.as_ref().map_or(String::new(), |source| format!(" ({source})"));
        let dashes = " - |".repeat(COLUMNS - 3);
        let _ = writeln!(text, "| {} | left out |{dashes} {}{source} |", left.name, left.reason);
    }
    text.push('\n');
    for line in remarks(results) {
        let _ = writeln!(text, "{line}");
    }
    text
}

fn row(results: &Results, summary: &Summary) -> String {
    let node = results.nodes.iter().find(|node| node.name == summary.node);
    let validity = node.and_then(|node| node.validity.as_ref());
    let remark = validity.and_then(|validity| validity::remark(Some(validity)));
    let mark =
        remark.map_or(String::new(), |remark| format!(", {}", remark.replacen("not validating", "NOT VALIDATING", 1)));
    let cache = match summary.cache {
        Cache::Warm => "",
        Cache::Cold => " (cold)",
    };
    let mut runs = summary.runs_counted.to_string();
    if summary.runs_not_counted > 0 {
        let _ = write!(runs, " of {}", summary.runs_counted + summary.runs_not_counted);
    }
    if summary.runs_disturbed > 0 {
        let _ = write!(runs, ", {} disturbed", summary.runs_disturbed);
    }
    let head = format!("| {}{cache}{mark} | {runs} |", summary.node);
    let Some(figures) = &summary.figures else { return format!("{head}{}", " - |".repeat(COLUMNS - 2)) };
    let spread = |spread: &Spread| format!("{:.2} [{:.2}-{:.2}]", spread.median, spread.min, spread.max);
    let megabytes = |spread: &Spread| format!("{:.0}", spread.median / 1e6);
    let optional = |value: Option<f64>| value.map_or("-".into(), |value| format!("{value:.2}"));
    let cells = [
        spread(&figures.wall_seconds),
        figures.tip_seconds.as_ref().map_or("-".into(), spread),
        spread(&figures.cpu_seconds),
        figures.idle_share.map_or("-".into(), |share| format!("{:.0} %", share.median * 100.0)),
        megabytes(&figures.peak_rss_bytes),
        megabytes(&figures.read_bytes),
        megabytes(&figures.write_bytes),
        megabytes(&figures.disk_bytes),
        figures.received_bytes.as_ref().map_or("-".into(), megabytes),
        format!("{:.0}", figures.blocks_per_second),
        figures.inputs_per_second.map_or("-".into(), |rate| format!("{rate:.0}")),
        optional(figures.wall_ratio),
        optional(figures.cpu_ratio),
        optional(figures.floor_ratio),
    ];
    format!("{head} {} |", cells.join(" | "))
}

fn remarks(results: &Results) -> Vec<String> {
    let mut lines = Vec::new();
    for run in results.runs.iter().filter(|run| run.outcome != Outcome::Counted) {
        let reason = run.reason.as_deref().unwrap_or("no reason known");
        lines.push(format!("NOT COUNTED: {} run {}: {reason}", run.node, run.number));
        lines.extend(run.log_end.iter().flat_map(|log| log.lines()).map(|line| format!("    {line}")));
    }
    if !results.is_agreed {
        lines.push("THE NODES DO NOT AGREE on the tip or the UTXO set: see the runs above".into());
    }
    lines.extend(expected(results));
    for node in &results.nodes {
        let counted = |run: &&Run| run.node == node.name && run.outcome == Outcome::Counted;
        let mut answers = results.runs.iter().filter(counted).filter_map(|run| run.answer.as_ref()).peekable();
        if answers.peek().is_some() && answers.all(|answer| answer.utxo_hash.is_none()) {
            lines.push(format!("{} tells no UTXO hash: its runs count by their tip alone.", node.name));
        }
        if let Some(source) = &node.source {
            lines.push(format!("{} has the chain from {source}.", node.name));
        }
        lines.extend(validity::line_of(node));
        lines.extend(node.notes.iter().map(|note| format!("{}: {note}", node.name)));
    }
    if results.runs.iter().any(|run| run.cache_emptied_by.as_deref() == Some("posix_fadvise")) {
        lines.push(
            "Cold: only the files of the run were dropped from the page cache (posix_fadvise), since emptying it was not permitted or not wanted."
                .into(),
        );
    }
    lines.extend(results.nodes.iter().filter_map(|node| stages(results, &node.name)));
    for server in &results.servers {
        lines.push(format!("Server {}: {}.", server.name, server.version));
    }
    let (machine, settings, chain) = (&results.machine, &results.settings, &results.chain);
    lines.push(format!(
        "{}, {} cores; {} threads and {} MiB of cache for each node; {} {}, {} bytes of block files, SHA-256 {}.",
        machine.cpu,
        machine.cores,
        settings.threads,
        settings.cache_mib,
        chain.preset.as_deref().unwrap_or("files"),
        chain.network,
        chain.file_bytes,
        chain.sha256
    ));
    if let Some(height) = settings.from_height {
        lines.push(format!(
            "Measured from height {height}: the blocks below were validated by a run before that was not measured."
        ));
    }
    if let Some(floor) = &results.floor {
        lines.push(format!(
            "Floor {:.2} s: {:.1} us an ECDSA, {:.1} us a Schnorr and {:.1} us a tweak check, one at a time, on {} threads.",
            floor.seconds,
            floor.ecdsa_ns / 1e3,
            floor.schnorr_ns / 1e3,
            floor.tweak_ns / 1e3,
            floor.threads
        ));
    }
    if results.runs.iter().any(|run| run.is_disturbed) {
        lines.push(
            "Disturbed: others used more than 5 % of the machine during the run; read CPU before wall time.".into(),
        );
    }
    lines
}

/// The end of the chain of the comparison, if a node validated it.
fn expected(results: &Results) -> Option<String> {
    let own = results.nodes.iter().filter(|node| node.own_chain.is_some()).count();
    let expected = results.expected.as_ref().filter(|_| own < results.nodes.len())?;
    let which = if own == 0 { "run" } else { "run on the chain of the comparison" };
    Some(format!("Every {which} that counts ends with {expected}."))
}

/// `lydian's CPU by stage: settle 12.3 s, fund 1.0 s`, the median over the runs that count, the largest first.
fn stages(results: &Results, node: &str) -> Option<String> {
    let counts = |run: &&Run| run.node == node && run.outcome == Outcome::Counted && !run.stages.is_empty();
    let runs: Vec<&Run> = results.runs.iter().filter(counts).collect();
    let mut medians: Vec<(&str, f64)> = Vec::new();
    for stage in &runs.first()?.stages {
        let of_run =
            |run: &&Run| run.stages.iter().find(|other| other.name == stage.name).map(|stage| stage.cpu_seconds);
        medians.push((&stage.name, Spread::of(runs.iter().filter_map(of_run).collect())?.median));
    }
    medians.sort_by(|one, other| other.1.total_cmp(&one.1));
    // Anything less is zero in a table with two decimals.
    let parts: Vec<String> = medians
        .iter()
        .filter(|(_, seconds)| *seconds >= 0.005)
        .map(|(name, seconds)| format!("{name} {seconds:.2} s"))
        .collect();
    Some(format!("{node}'s CPU by stage: {}.", parts.join(", ")))
}

fn ratio(value: f64, of: f64) -> Option<f64> {
    (of > 0.0).then(|| rounded(value / of))
}

#[allow(clippy::cast_precision_loss, reason = "bytes and counts of a run lie below 2^52")]
fn as_f64(count: u64) -> f64 {
    count as f64
}
