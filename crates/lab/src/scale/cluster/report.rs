//! The tables of `lydian-lab scale cluster`.
//!
//! Input: results. Output: Markdown. Must never: show a figure that was not measured.

use super::commits::Commits;
use super::results::{ClusterResults, Latencies, PhaseResults};
use super::world::Role;
use std::fmt::Write;

/// Targets of the issue, beside the figures that they are for.
const FIRST_ANSWER: &str = "3 s";
const BLOCK: &str = "300 ms p99";

pub(super) fn to_markdown(results: &ClusterResults) -> String {
    let (facts, settings) = (&results.facts, &results.settings);
    let (node, machine, chain) = (&facts.node, &facts.machine, &facts.chain);
    let what = match settings.is_whole {
        true => format!("{} whole nodes", settings.servers),
        false => format!("{} front ends, {} nodes of the store", settings.servers, settings.store_nodes),
    };
    let mut text = format!("# {} clients at {what}\n\n{}, {}\n", settings.clients, node.version, node.program);
    // Writing to a text does not fail.
    let _ = writeln!(text, "{}, {} cores for everything, kernel {}", machine.cpu, machine.cores, machine.kernel);
    let (height, transactions) = (chain.height, chain.transactions.unwrap_or(0));
    let _ = writeln!(
        text,
        "chain: {height} blocks, {transactions} transactions; then a block in {} s, whose",
        settings.block_seconds
    );
    let _ = writeln!(text, "transactions touch {} scripts, half of them out of the mempool\n", 2 * settings.touched);
    phases(&mut text, results);
    cpu(&mut text, results);
    kinds(&mut text, results);
    others(&mut text, results);
    for PhaseResults { name, example, .. } in &results.phases {
        if let Some(example) = example {
            let _ = writeln!(text, "\n{name}: {example}");
        }
    }
    if let Some(example) = &results.notified.missed_example {
        let _ = writeln!(text, "\nnot announced: {example}");
    }
    text.push_str(match results.is_right {
        true => {
            "\nEvery answer and notification was right, no acknowledged commit was lost, and no request failed unless \
             most nodes of the store were down.\n"
        }
        false => {
            "\nNOT RIGHT: answers are wrong, requests failed, a commit was lost, or notifications were missed; see \
             --json.\n"
        }
    });
    text
}

fn phases(text: &mut String, results: &ClusterResults) {
    text.push_str(
        "| phase | s | requests | /s | failed | wrong | repeated | moving | stale (longest) | p50 | p99 | longest | \
         gap | repair | strikes | reorganisations |\n\
         |---|---|---|---|---|---|---|---|---|---|---|---|---|---|---|---|\n",
    );
    for phase in &results.phases {
        let [p50, p99, most] = show(phase.latencies);
        let repair = phase.recovered_seconds.map_or_else(String::new, |seconds| format!("{seconds:.1} s"));
        let stale = format!("{} ({:.0} ms)", phase.stale, phase.stale_max_ms);
        let failed = format!("{}{}", phase.failed, if phase.may_fail { " (may)" } else { "" });
        let _ = writeln!(
            text,
            "| {} | {:.0} | {} | {:.0} | {failed} | {} | {} | {} | {stale} | {p50} | {p99} | {most} | {:.1} ms | \
             {repair} | {} | {} |",
            phase.name,
            phase.seconds,
            phase.requests,
            phase.per_second,
            phase.wrong,
            phase.repeated,
            phase.moving,
            phase.gap_ms,
            phase.strikes,
            phase.reorganisations,
        );
    }
    text.push_str("\nGap: the longest time in which no client got an answer. May: most nodes of the store are down.\n");
    for left_out in &results.left_out {
        let _ = writeln!(text, "Left out: {left_out}");
    }
}

fn cpu(text: &mut String, results: &ClusterResults) {
    let roles: Vec<Role> = Role::ALL
        .into_iter()
        .filter(|role| match role {
            Role::Store | Role::Front => !results.settings.is_whole,
            Role::Node | Role::Lab => true,
        })
        .collect();
    let names: Vec<&str> = roles.iter().map(|role| role.name()).collect();
    let _ = writeln!(text, "\n| CPU seconds | {} | store reads |", names.join(" | "));
    let _ = writeln!(text, "|---|{}---|", "---|".repeat(roles.len()));
    for phase in &results.phases {
        let used = roles.iter().map(|role| {
            let seconds = phase.cpu_seconds.get(role).copied().unwrap_or(0.0);
            let each = phase.cpu_us_per_request(*role).unwrap_or(0.0);
            format!("{seconds:.1} ({each:.0} us each)")
        });
        let reads = phase.reads.map_or_else(
            || "-".to_owned(),
            |reads| format!("{reads:.0} ({:.2} each)", phase.reads_per_request().unwrap_or(0.0)),
        );
        let _ = writeln!(text, "| {} | {} | {reads} |", phase.name, used.collect::<Vec<_>>().join(" | "));
    }
    text.push_str("\nEach: for one request. A part of it is for blocks and for keeping alive.\n");
}

fn kinds(text: &mut String, results: &ClusterResults) {
    text.push_str("\n| request, without failures | count | p50 | p99 | longest |\n|---|---|---|---|---|\n");
    for one in &results.kinds {
        let [p50, p99, most] = show(Some(one.latencies));
        let _ = writeln!(text, "| {} | {} | {p50} | {p99} | {most} |", one.kind.name(), one.count);
    }
}

fn others(text: &mut String, results: &ClusterResults) {
    let notified = &results.notified;
    text.push_str("\n| other figures | p50 | p99 | longest | target |\n|---|---|---|---|---|\n");
    let mut row = |what: &str, latencies: Option<Latencies>, target: &str| {
        let [p50, p99, most] = show(latencies);
        let _ = writeln!(text, "| {what} | {p50} | {p99} | {most} | {target} |");
    };
    row("block connected to header announced", notified.header, "");
    row("block connected to first script announced", notified.block_first, "");
    row("block connected to middle script announced", notified.block_median, "");
    row("block connected to last script announced", notified.block, BLOCK);
    row("block submitted to last script announced", notified.block_submitted, "");
    row("block connected to last script announced, with the failures", notified.block_with_failures, "");
    row("transaction accepted to script announced", notified.pool, "");
    if !results.first_answer_seconds.is_empty() {
        let milliseconds = results.first_answer_seconds.iter().map(|seconds| seconds * 1e3).collect();
        row("front end started to first answer", Latencies::of(milliseconds), FIRST_ANSWER);
    }
    let _ = writeln!(text, "\nNotifications missed: {}", notified.missed);
    if let Some(commits) = &results.commits {
        let Commits { seen, lost, .. } = commits;
        let _ = writeln!(text, "Commits seen in the store: {seen}, of which {lost} were lost");
    }
    if let Some(seconds) = results.load_seconds {
        let _ = writeln!(text, "`lydian index load`: {seconds:.1} s");
    }
}

fn show(latencies: Option<Latencies>) -> [String; 3] {
    let milliseconds = |value: f64| format!("{value:.1} ms");
    match latencies {
        Some(Latencies { p50_ms, p99_ms, max_ms }) => [p50_ms, p99_ms, max_ms].map(milliseconds),
        None => ["-", "-", "-"].map(str::to_owned),
    }
}
