//! The part of a report on a `reindex` or a `sync`: the result, the ranking, stages, lines over time, validity, and how
//! it was measured.
//!
//! Input: results. Output: blocks. Invariant: figures are of runs that count; each table lists all contenders.

use super::Colors;
use super::charts::lines::{self, Axes, Line};
use super::charts::ranking::{self, Bar, BarFigures};
use super::charts::stages::{self, Stack};
use super::document::{Block, Cell, Mark, Table};
use super::tables;
use super::words::{self, is_ours, title_of, version_of};
use crate::results::{Cache, Experiment, Figures, NodeFacts, Outcome, Results, Run, Summary};

/// Returns title, answer, blocks.
pub(super) fn part(results: &Results, id: &str, colors: &Colors) -> (String, Option<String>, Vec<Block>) {
    let title = match results.experiment {
        Experiment::Reindex => format!("Reindex: {}", tables::chain(&results.chain)),
        Experiment::Sync => format!("Sync from a peer: {}", tables::chain(&results.chain)),
    };
    let mut blocks = vec![Block::Text(method(results))];
    blocks.extend(warnings(results));
    for cache in [Cache::Warm, Cache::Cold] {
        blocks.extend(ranking_of(results, id, cache, colors));
    }
    blocks.extend(results.floor.as_ref().map(|floor| Block::Text(tables::floor(floor))));
    blocks.extend(tables::failures(results));
    blocks.extend(notes(results));
    blocks.extend(stages_of(results, id));
    blocks.extend(over_time(results, id, colors));
    if let Some(table) = tables::validity(&results.nodes, &results.left_out) {
        blocks.push(Block::Heading("Validity".into()));
        blocks.push(Block::Table(table));
    }
    blocks.push(measured(results));
    (title, answer(results), blocks)
}

/// The summaries for one cache state, the fastest first, those without figures last.
fn ranked(results: &Results, cache: Cache) -> Vec<&Summary> {
    let mut of_cache: Vec<&Summary> = results.summary.iter().filter(|summary| summary.cache == cache).collect();
    let wall =
        |summary: &Summary| summary.figures.as_ref().map_or(f64::INFINITY, |figures| figures.wall_seconds.median);
    of_cache.sort_by(|one, other| wall(one).total_cmp(&wall(other)));
    of_cache
}

/// For example `Lydian 2.05 s, Bitcoin Core 14.03 s: 6.8 times as fast; floor 8.41 s`.
fn answer(results: &Results) -> Option<String> {
    let cache = results.summary.first()?.cache;
    let ranked: Vec<(&str, &Figures)> = ranked(results, cache)
        .into_iter()
        .filter_map(|summary| Some((summary.node.as_str(), summary.figures.as_ref()?)))
        .collect();
    let time =
        |entry: &(&str, &Figures)| format!("{} {}", title_of(entry.0), words::seconds(entry.1.wall_seconds.median));
    let floor = results.floor.as_ref().map(|floor| format!("; floor {}", words::seconds(floor.seconds)));
    let first = ranked.iter().find(|entry| is_ours(entry.0)).or_else(|| ranked.first())?;
    let is_rival = |entry: &&(&str, &Figures)| entry.0 != first.0 && results.is_same_work(entry.0, first.0);
    let rival = ranked.iter().find(|entry| entry.0.starts_with("bitcoind") && is_rival(entry));
    let Some(other) = rival.or_else(|| ranked.iter().find(is_rival)) else {
        return Some(time(first) + &floor.unwrap_or_default());
    };
    let (mine, yours) = (first.1.wall_seconds.median, other.1.wall_seconds.median);
    let (factor, how) = if mine <= yours { (yours / mine, "fast") } else { (mine / yours, "slow") };
    Some(format!(
        "{}, {}: {} times as {how}{}",
        time(first),
        time(other),
        words::times(factor),
        floor.unwrap_or_default()
    ))
}

fn method(results: &Results) -> String {
    let from = match (results.experiment, results.settings.from_height) {
        (Experiment::Reindex, Some(height)) => &format!(
            "Each node validates the same block files from height {height}, below which an earlier run of it validated them, from its start to its own clean end"
        ),
        (Experiment::Reindex, None) => "Each node validates the same block files from its start to its own clean end",
        (Experiment::Sync, _) => {
            "Each node takes the same chain from a peer on loopback into an empty directory, from its start to its own clean end"
        }
    };
    let settings = &results.settings;
    format!(
        "{from}, every script checked, {} run{} each in turn, {} threads and {}\u{a0}MiB of cache; bars are medians, whiskers the least and the largest.",
        settings.runs,
        if settings.runs == 1 { "" } else { "s" },
        settings.threads,
        words::count(settings.cache_mib)
    )
}

fn warnings(results: &Results) -> Vec<Block> {
    let mut texts = Vec::new();
    if results.expected.is_some() && !results.is_agreed {
        texts.push("The nodes do not agree on the tip or the UTXO set: see the runs that do not count.".to_owned());
    }
    if results.expected.is_none() {
        texts.push(
            "The right answer was not known in advance and no two nodes agreed on one, so no run counts.".to_owned(),
        );
    }
    let disturbed: Vec<String> = results
        .summary
        .iter()
        .filter(|summary| summary.runs_disturbed > 0)
        .map(|summary| title_of(&summary.node))
        .collect();
    if !disturbed.is_empty() {
        texts.push(format!(
            "The machine was busy with something else during runs of {}: read their CPU time before their wall time.",
            words::list(&disturbed)
        ));
    }
    texts.into_iter().map(Block::Warning).collect()
}

fn ranking_of(results: &Results, id: &str, cache: Cache, colors: &Colors) -> Vec<Block> {
    let ranked = ranked(results, cache);
    if ranked.is_empty() {
        return Vec::new();
    }
    let (suffix, title) = match cache {
        Cache::Warm => ("", "Ranking"),
        Cache::Cold => ("-cold", "Ranking with a cold cache"),
    };
    let bars: Vec<Bar> = ranked.iter().map(|summary| bar(results, summary, colors)).collect();
    let floor = results.floor.as_ref().map(|floor| floor.seconds);
    let chart = ranking::chart(format!("{id}-ranking{suffix}"), title.into(), floor, &bars);
    vec![Block::Heading(title.into()), Block::Chart(chart), Block::Table(table(results, &ranked))]
}

fn bar(results: &Results, summary: &Summary, colors: &Colors) -> Bar {
    let facts = facts(results, &summary.node);
    let figures = summary.figures.as_ref().map(|figures| BarFigures {
        wall: figures.wall_seconds,
        cpu: figures.cpu_seconds,
        floor_ratio: figures.floor_ratio,
    });
    let reason = || {
        let failed = results.runs.iter().find(|run| run.node == summary.node && run.cache == summary.cache);
        let reason = failed.and_then(|run| run.reason.clone()).unwrap_or_else(|| "no reason known".into());
        format!("no run counts: {reason}")
    };
    let busy = (summary.runs_disturbed > 0).then(|| "busy machine".to_owned());
    let validity = crate::validity::remark(facts.and_then(|facts| facts.validity.as_ref()));
    let remarks: Vec<String> = validity.into_iter().chain(busy).collect();
    Bar {
        name: title_of(&summary.node),
        tone: colors.tone(&summary.node),
        version: facts.map_or_else(String::new, |facts| version_of(&facts.version)),
        figures: figures.ok_or_else(reason),
        remark: (!remarks.is_empty()).then(|| remarks.join(", ")),
    }
}

fn facts<'a>(results: &'a Results, name: &str) -> Option<&'a NodeFacts> {
    results.nodes.iter().find(|node| node.name == name)
}

fn table(results: &Results, ranked: &[&Summary]) -> Table {
    let is_sync = results.experiment == Experiment::Sync;
    let mut columns = vec![
        "node",
        "#runs",
        "#wall s",
        "#wall ratio",
        "#wall / floor",
        "#CPU s",
        "#CPU ratio",
        "#to tip s",
        "#peak memory MB",
        "#read MB",
        "#written MB",
        "#disk MB",
    ];
    if is_sync {
        columns.push("#received MB");
    }
    columns.extend(["#blocks/s", "#inputs/s", "#idle %"]);
    let mut table = Table::new(
        "Medians; least and largest below. Ratios are to the first node named on the command line.",
        &columns,
    );
    for summary in ranked {
        table.push(cells(results, summary, is_sync, columns.len()));
    }
    table.rows.extend(tables::absent(&results.nodes, &results.left_out));
    table
}

fn cells(results: &Results, summary: &Summary, is_sync: bool, count: usize) -> Vec<Cell> {
    let mut name = Cell::new(title_of(&summary.node));
    let validity = facts(results, &summary.node).and_then(|facts| facts.validity.as_ref());
    if let Some(remark) = crate::validity::remark(validity) {
        let is_bad = validity.is_some_and(|validity| !validity.not_validated().is_empty());
        name = name.note(remark).mark(if is_bad { Mark::Bad } else { Mark::None });
    }
    let all = summary.runs_counted + summary.runs_not_counted;
    let mut runs = Cell::new(if summary.runs_not_counted > 0 {
        format!("{} of {all}", summary.runs_counted)
    } else {
        all.to_string()
    });
    if summary.runs_disturbed > 0 {
        runs = runs.note(format!("{} busy", summary.runs_disturbed));
    }
    let Some(figures) = &summary.figures else {
        let mut cells = vec![name, runs.mark(Mark::Bad)];
        cells.resize(count, Cell::none());
        return cells;
    };
    let optional = |value: Option<f64>| Cell::or_none(value.map(|value| format!("{value:.2}")));
    let mut cells = vec![
        name,
        runs,
        tables::spread(&figures.wall_seconds, digits(figures)),
        optional(figures.wall_ratio),
        optional(figures.floor_ratio),
        tables::spread(&figures.cpu_seconds, digits(figures)),
        optional(figures.cpu_ratio),
        figures.tip_seconds.as_ref().map_or_else(Cell::none, |tip| tables::spread(tip, digits(figures))),
        tables::megabytes(&figures.peak_rss_bytes),
        tables::megabytes(&figures.read_bytes),
        tables::megabytes(&figures.write_bytes),
        tables::megabytes(&figures.disk_bytes),
    ];
    if is_sync {
        cells.push(figures.received_bytes.as_ref().map_or_else(Cell::none, tables::megabytes));
    }
    cells.extend([
        Cell::new(words::whole(figures.blocks_per_second)),
        Cell::or_none(figures.inputs_per_second.map(words::whole)),
        Cell::or_none(figures.idle_share.as_ref().map(|idle| format!("{:.1}", idle.median * 100.0))),
    ]);
    cells
}

/// Runs of milliseconds need more digits.
fn digits(figures: &Figures) -> usize {
    if figures.wall_seconds.median < 1.0 { 3 } else { 2 }
}

/// Notes on nodes that a reader of the figures must know.
fn notes(results: &Results) -> Vec<Block> {
    let notes = results.nodes.iter().flat_map(|node| {
        let reports_no_set = results
            .runs
            .iter()
            .any(|run| run.node == node.name && run.answer.as_ref().is_some_and(|answer| answer.utxo_hash.is_none()));
        let own = node.notes.iter().map(|note| format!("{}: {note}", title_of(&node.name)));
        let hash = reports_no_set
            .then(|| format!("{} tells no UTXO hash: its runs count by their tip alone.", title_of(&node.name)));
        own.chain(hash).collect::<Vec<_>>()
    });
    notes.map(Block::Text).collect()
}

fn counted<'a>(results: &'a Results, name: &str, cache: Cache) -> Option<&'a Run> {
    let of_node = |run: &&Run| run.node == name && run.cache == cache && run.outcome == Outcome::Counted;
    let mut runs: Vec<&Run> = results.runs.iter().filter(of_node).collect();
    runs.sort_by(|one, other| one.wall_seconds.total_cmp(&other.wall_seconds));
    runs.get(runs.len().saturating_sub(1) / 2).copied()
}

/// The median run of each node that has one, in the order of the nodes; of warm runs if there are any.
fn median_runs(results: &Results) -> Vec<&Run> {
    let of = |node: &NodeFacts| {
        counted(results, &node.name, Cache::Warm).or_else(|| counted(results, &node.name, Cache::Cold))
    };
    results.nodes.iter().filter_map(of).collect()
}

fn stages_of(results: &Results, id: &str) -> Vec<Block> {
    let runs: Vec<&Run> = median_runs(results).into_iter().filter(|run| !run.stages.is_empty()).collect();
    let Some(first) = runs.first() else { return Vec::new() };
    let mut sorted: Vec<(&str, f64)> =
        first.stages.iter().map(|stage| (stage.name.as_str(), stage.cpu_seconds)).collect();
    sorted.sort_by(|one, other| other.1.total_cmp(&one.1));
    let mut names: Vec<String> = sorted.into_iter().map(|(name, _)| name.to_owned()).collect();
    for stage in runs.iter().flat_map(|run| &run.stages) {
        if !names.contains(&stage.name) {
            names.push(stage.name.clone());
        }
    }
    let seconds = |run: &Run, name: &str| {
        run.stages.iter().filter(|stage| stage.name == name).map(|stage| stage.cpu_seconds).sum::<f64>()
    };
    let stack = |run: &&Run| {
        let known: Vec<f64> = names.iter().map(|name| seconds(run, name)).collect();
        let rest = (run.user_seconds + run.system_seconds - known.iter().sum::<f64>()).max(0.0);
        Stack { name: title_of(&run.node), seconds: known.into_iter().chain([rest]).collect() }
    };
    let stacks: Vec<Stack> = runs.iter().map(stack).collect();
    names.push("outside the stages".into());
    let columns: Vec<String> = std::iter::once("stage".to_owned())
        .chain(stacks.iter().flat_map(|stack| [format!("#{} CPU s", stack.name), "#share".into()]))
        .collect();
    let mut table =
        Table::new("CPU time of the median run by stage.", &columns.iter().map(String::as_str).collect::<Vec<_>>());
    for (index, name) in names.iter().enumerate() {
        let cells = stacks.iter().flat_map(|stack| {
            let seconds = stack.seconds.get(index).copied().unwrap_or_default();
            let total: f64 = stack.seconds.iter().sum();
            [Cell::new(format!("{seconds:.2}")), Cell::new(format!("{:.1} %", seconds / total.max(1e-9) * 100.0))]
        });
        table.push(std::iter::once(Cell::new(name.clone())).chain(cells).collect());
    }
    let chart = stages::chart(format!("{id}-stages"), "Where Lydian's CPU time goes".into(), &names, &stacks);
    vec![Block::Heading("Where Lydian's CPU time goes".into()), Block::Chart(chart), Block::Table(table)]
}

fn over_time(results: &Results, id: &str, colors: &Colors) -> Vec<Block> {
    let runs: Vec<&Run> = median_runs(results).into_iter().filter(|run| run.samples.len() > 2).collect();
    let lines = |points: fn(&Run, u32) -> Vec<(f64, f64)>| -> Vec<Line> {
        let of = |run: &&Run| Line {
            name: title_of(&run.node),
            tone: colors.tone(&run.node),
            points: points(run, results.height_of(&run.node)),
        };
        runs.iter().map(of).collect()
    };
    let axes = |y| Axes { x: "seconds", y, is_x_log: false, are_dots: false };
    let charts: Vec<_> = [
        lines::chart(format!("{id}-height"), "Height over time".into(), axes("height"), &lines(heights)),
        lines::chart(format!("{id}-memory"), "Memory over time".into(), axes("MB"), &lines(memory)),
        lines::chart(format!("{id}-cpu"), "Cores at work".into(), axes("cores"), &lines(cores)),
        lines::chart(format!("{id}-disk"), "Size on disk over time".into(), axes("MB"), &lines(disk)),
    ]
    .into_iter()
    .flatten()
    .collect();
    if charts.is_empty() {
        return Vec::new();
    }
    let text = "The median run of each node, four samples a second; a dot marks its end.";
    vec![Block::Heading("Over time".into()), Block::Text(text.into()), Block::Grid(charts)]
}

fn heights(run: &Run, height: u32) -> Vec<(f64, f64)> {
    let known = run.samples.iter().filter_map(|sample| Some((sample.seconds, f64::from(sample.height?))));
    let mut points: Vec<_> = std::iter::once((0.0, 0.0)).chain(known).collect();
    if let Some(tip) = run.tip_seconds {
        points.retain(|point| point.0 < tip);
        points.push((tip, f64::from(height)));
    }
    points
}

fn memory(run: &Run, _: u32) -> Vec<(f64, f64)> {
    run.samples.iter().map(|sample| (sample.seconds, words::as_f64(sample.rss_bytes) / 1e6)).collect()
}

fn disk(run: &Run, _: u32) -> Vec<(f64, f64)> {
    let known = run.samples.iter().filter_map(|sample| Some((sample.seconds, words::as_f64(sample.disk_bytes?) / 1e6)));
    known.chain([(run.wall_seconds, words::as_f64(run.disk_bytes) / 1e6)]).collect()
}

/// CPU time over steps of at least 0.4 seconds: the kernel counts in hundredths.
fn cores(run: &Run, _: u32) -> Vec<(f64, f64)> {
    let mut points = Vec::new();
    let (mut time, mut cpu) = (0.0, 0.0);
    for sample in &run.samples {
        if sample.seconds - time >= 0.4 {
            points.push(((sample.seconds + time) / 2.0, (sample.cpu_seconds - cpu).max(0.0) / (sample.seconds - time)));
            (time, cpu) = (sample.seconds, sample.cpu_seconds);
        }
    }
    points
}

fn measured(results: &Results) -> Block {
    let mut facts = tables::provenance(&results.lab, &results.machine, &results.chain, results.started);
    let settings = &results.settings;
    facts.push((
        "Settings".into(),
        format!(
            "{} runs, {} threads, {} MiB of cache, at most {} and {} of memory a run",
            settings.runs,
            settings.threads,
            settings.cache_mib,
            words::seconds(words::as_f64(settings.timeout_seconds)),
            words::bytes(words::as_f64(settings.memory_max_bytes))
        ),
    ));
    if let Some(expected) = &results.expected {
        facts.push(("Every run that counts ends with".into(), expected.to_string()));
    }
    let mut blocks = vec![Block::Facts(facts), Block::Table(tables::programs(&results.nodes))];
    if !results.servers.is_empty() {
        blocks.push(Block::Text("Servers of the chain:".into()));
        blocks.push(Block::Table(tables::programs(&results.servers)));
    }
    blocks.push(Block::Table(tables::all_runs(results)));
    Block::Details { summary: "How this was measured: machine, chain, command, versions, every run".into(), blocks }
}
