//! The results for people: Markdown tables by classes of scripts.
//!
//! Input: results. Output: text. Pure. The classes are those of the published comparison: a wallet's scripts by their
//! number of transactions, and each fat script on its own. Must never: show a figure from wrong answers without saying
//! so.

use super::percentile;
use super::results::{Build, ElectrumResults, Query, ServerResults};
use super::{ESPLORA, WALLET_TRANSACTIONS_MAX};
use std::fmt::Write;

/// The lowest and highest number of transactions of each class.
const CLASSES: &[(u32, u32)] = &[(1, 9), (10, 29), (30, 99), (100, 299), (300, WALLET_TRANSACTIONS_MAX)];
const MIB: u64 = 1 << 20;

/// All tables, followed by the differences and the failures.
pub fn to_markdown(results: &ElectrumResults) -> String {
    let mut text = String::new();
    // Writing to a string cannot fail.
    let _ = head(results, &mut text).and_then(|()| tables(results, &mut text)).and_then(|()| tail(results, &mut text));
    text
}

fn head(results: &ElectrumResults, text: &mut String) -> std::fmt::Result {
    let chain = &results.chain;
    writeln!(
        text,
        "Chain: {}, height {}, {} MiB; {} scripts. Node below: {}. Milliseconds, p50 / p99 of the scripts; a script's warm time is the median of {} passes.\n",
        chain.preset.as_deref().unwrap_or(&chain.network),
        chain.height,
        chain.file_bytes / MIB,
        results.scripts.len(),
        results.daemon.version,
        results.settings.passes
    )?;
    row(text, "", results.servers.iter().map(|server| server.facts.name.clone()))?;
    let rule = "|---".repeat(results.servers.len() + 1);
    writeln!(text, "{rule}|")
}

fn tables(results: &ElectrumResults, text: &mut String) -> std::fmt::Result {
    let servers = &results.servers;
    let version = |server: &ServerResults| match &server.facts.cannot {
        Some(_) => "takes no part".to_owned(),
        None => server.facts.version.clone(),
    };
    row(text, "version", servers.iter().map(version))?;
    builds(servers, text)?;
    let is_measured = |name: &&str| servers.iter().any(|server| query(server, name).is_some());
    for name in ["balance", "history", "utxos"].into_iter().chain(ESPLORA.into_iter().filter(is_measured)) {
        for (label, places) in classes(results) {
            let both = |server: &ServerResults| {
                let of = |is_cold| cell(server, name, is_cold, &places);
                match (of(false), of(true)) {
                    (None, None) => or_none(None),
                    (warm, cold) => format!("{} (cold {})", or_none(warm), or_none(cold)),
                }
            };
            row(text, &format!("{name} {label}"), servers.iter().map(both))?;
        }
    }
    for (name, label) in [("headers", "2,016 headers"), ("merkle", "merkle proof")] {
        let all = |server: &ServerResults| {
            let count = query(server, name).map_or(0, |query| query.warm_ms.len());
            or_none(cell(server, name, false, &(0..count).collect::<Vec<_>>()))
        };
        row(text, label, servers.iter().map(all))?;
    }
    loads(results, text)
}

fn loads(results: &ElectrumResults, text: &mut String) -> std::fmt::Result {
    let servers = &results.servers;
    let with = |errors: u64| if errors > 0 { format!(", {errors} errors") } else { String::new() };
    for &connections in &results.settings.connections {
        let load = |server: &ServerResults| {
            let load = server.loads.iter().find(|load| load.connections == connections);
            or_none(load.map(|load| format!("{:.0}; {}{}", load.per_second, shown(load.p99_ms), with(load.errors))))
        };
        row(text, &format!("{connections} connections: requests/s; p99"), servers.iter().map(load))?;
    }
    let wallet = |server: &ServerResults| {
        or_none(server.wallet.as_ref().map(|wallet| format!("{:.2} s{}", wallet.seconds, with(wallet.errors))))
    };
    let label = format!("wallet: {} subscriptions in batches of {}", results.scripts.len(), results.settings.batch);
    row(text, &label, servers.iter().map(wallet))
}

fn builds(servers: &[ServerResults], text: &mut String) -> std::fmt::Result {
    let mut line = |label: &str, of: &dyn Fn(&Build) -> String| {
        row(text, label, servers.iter().map(|server| server.build.as_ref().map_or("-".to_owned(), of)))
    };
    line("index build s", &|build| {
        let mark = if build.is_disturbed { ", disturbed" } else { "" };
        format!("{:.1}{mark}", build.wall_seconds)
    })?;
    line("CPU s; of the node for it", &|build| format!("{:.1}; {:.1}", build.cpu_seconds, build.daemon_cpu_seconds))?;
    line("index MiB; of the node for it", &|build| {
        format!("{}; {}", build.index_bytes / MIB, build.daemon_index_bytes / MIB)
    })?;
    line("bytes a posting, the node's index included", &|build| {
        let bytes = (build.index_bytes + build.daemon_index_bytes).checked_div(build.postings);
        bytes.map_or("-".to_owned(), |bytes| bytes.to_string())
    })?;
    line("memory MiB while building", &|build| (build.peak_rss_bytes / MIB).to_string())?;
    let serving = |server: &ServerResults| {
        server.serving_peak_rss_bytes.map_or("-".to_owned(), |bytes| (bytes / MIB).to_string())
    };
    row(text, "memory MiB while answering", servers.iter().map(serving))
}

/// The names of the classes that have scripts, with the indexes of these scripts.
pub fn classes(results: &ElectrumResults) -> Vec<(String, Vec<usize>)> {
    let places = |is_in: &dyn Fn(u32) -> bool| -> Vec<usize> {
        results.scripts.iter().enumerate().filter(|(_, script)| is_in(script.transactions)).map(|(at, _)| at).collect()
    };
    let mut found: Vec<(String, Vec<usize>)> = CLASSES
        .iter()
        .map(|&(low, high)| (format!("{low}-{high} txs"), places(&|count| (low..=high).contains(&count))))
        .collect();
    let mut fat = places(&|count| count > WALLET_TRANSACTIONS_MAX);
    fat.sort_by_key(|&at| results.scripts[at].transactions);
    found.extend(fat.into_iter().map(|at| {
        let script = &results.scripts[at];
        (format!("{} txs, {} coins", script.transactions, script.utxos), vec![at])
    }));
    found.retain(|(_, places)| !places.is_empty());
    found
}

fn query<'a>(server: &'a ServerResults, name: &str) -> Option<&'a Query> {
    server.queries.iter().find(|query| query.name == name)
}

/// `p50 / p99`, or the time of a single script; `None` without times.
fn cell(server: &ServerResults, name: &str, is_cold: bool, places: &[usize]) -> Option<String> {
    let query = query(server, name)?;
    let column = if is_cold { &query.cold_ms } else { &query.warm_ms };
    let mut times: Vec<f64> = places.iter().filter_map(|&at| column.get(at).copied().flatten()).collect();
    times.sort_by(f64::total_cmp);
    let median = shown(percentile(&times, 50)?);
    let high = shown(percentile(&times, 99)?);
    Some(if places.len() == 1 { median } else { format!("{median} / {high}") })
}

fn or_none(cell: Option<String>) -> String {
    cell.unwrap_or_else(|| "-".to_owned())
}

/// About three significant digits.
fn shown(milliseconds: f64) -> String {
    match milliseconds {
        ms if ms < 10.0 => format!("{ms:.2}"),
        ms if ms < 100.0 => format!("{ms:.1}"),
        ms => format!("{ms:.0}"),
    }
}

fn row(text: &mut String, label: &str, cells: impl Iterator<Item = String>) -> std::fmt::Result {
    write!(text, "| {label} |")?;
    for cell in cells {
        write!(text, " {cell} |")?;
    }
    writeln!(text)
}

fn tail(results: &ElectrumResults, text: &mut String) -> std::fmt::Result {
    writeln!(text)?;
    for server in &results.servers {
        let name = &server.facts.name;
        server
            .queries
            .iter()
            .filter_map(|query| shortfall(query, results))
            .try_for_each(|line| writeln!(text, "{name}, {line}"))?;
        server.facts.notes.iter().chain(&server.notes).try_for_each(|note| writeln!(text, "{name}: {note}"))?;
        if let Some(failure) = &server.failure {
            writeln!(text, "{name}: {}: {failure}", if server.build.is_some() { "failed" } else { "no figures" })?;
        }
        if server.build.is_some() && server.machine.is_disturbed() {
            let share = server
                .machine
                .others_share
                .map_or("an unknown share".to_owned(), |share| format!("{:.0} %", share * 100.0));
            writeln!(text, "{name}: disturbed: others used {share} of the machine while it was asked")?;
        }
        if let Some(log) = server.log_end.as_ref().filter(|log| !log.is_empty()) {
            writeln!(text, "```\n{log}\n```")?;
        }
    }
    for left in &results.left_out {
        writeln!(text, "{}: {}", left.name, left.reason)?;
    }
    for difference in &results.differences {
        writeln!(text, "difference in {} of {}:", difference.query, difference.what)?;
        difference.answers.iter().try_for_each(|(name, answer)| writeln!(text, "  {name}: {answer}"))?;
    }
    let verdict = match results.is_agreed {
        true => "All answers are those that follow from the blocks.",
        false => "Not all answers are those that follow from the blocks.",
    };
    writeln!(text, "{verdict}")
}

/// What is missing or wrong in a query.
fn shortfall(query: &Query, results: &ElectrumResults) -> Option<String> {
    let mut parts = Vec::new();
    if query.wrong > 0 {
        parts.push(format!("**{} wrong answers**", query.wrong));
    }
    if query.misordered > 0 {
        parts.push(format!("{} lists not in blockchain order", query.misordered));
    }
    if query.not_asked > 0 {
        parts.push(format!("{} not asked for lack of time", query.not_asked));
    }
    if query.passes < results.settings.passes {
        parts.push(format!("{} passes for lack of time", query.passes));
    }
    parts.extend(query.errors.first().cloned());
    (!parts.is_empty()).then(|| format!("{}: {}", query.name, parts.join("; ")))
}
