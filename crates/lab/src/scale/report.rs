//! The table of `lydian-lab scale`: a row for each figure, with its target.
//!
//! Input: results. Output: Markdown. Medians with the highest value; memory in MiB. Must never: show a figure of a row
//! that was not measured.

use super::ScaleResults;
use std::fmt::Write;

/// Bytes of a MiB.
const MIB: f64 = 1_048_576.0;

struct Table(String);

impl Table {
    fn row(&mut self, what: &str, figure: &str, target: &str) {
        // Writing to a text does not fail.
        let _ = writeln!(self.0, "| {what} | {figure} | {target} |");
    }
}

pub(super) fn to_markdown(results: &ScaleResults) -> String {
    let (node, machine, chain) = (&results.facts.node, &results.facts.machine, &results.facts.chain);
    let mut text = format!("# What one Electrum server bears\n\n{}, {}\n", node.version, node.program);
    let _ = writeln!(text, "{}, {} cores, kernel {}", machine.cpu, machine.cores, machine.kernel);
    let (height, transactions) = (chain.height, chain.transactions.unwrap_or(0));
    let _ = writeln!(text, "chain: {height} blocks, {transactions} transactions\n");
    let mut table = Table("| measure | median (highest) | target |\n|---|---|---|\n".to_owned());
    history(results, &mut table);
    restarts(results, &mut table);
    connections(results, &mut table);
    notifications(results, &mut table);
    under_load(results, &mut table);
    text.push_str(&table.0);
    text.push_str(match results.is_right {
        true => "\nEvery answer and every notification was right.\n",
        false => "\nWRONG: some answers or notifications do not follow from the blocks; see --json.\n",
    });
    text
}

fn history(results: &ScaleResults, table: &mut Table) {
    for query in &results.history {
        let name = format!("{} of {} entries, {:.1} MB", query.name, query.entries, mega(query.bytes));
        let target = if query.name == "history" { "1,000 ms for 1,000,000 transactions" } else { "" };
        table.row(&format!("{name}: first byte"), &milliseconds(&query.first_byte_ms), "");
        table.row(&format!("{name}: all"), &milliseconds(&query.all_ms), target);
        table.row(&format!("{name}: growth of memory"), &spread_of(&query.growth_bytes), "64 MB");
    }
}

fn restarts(results: &ScaleResults, table: &mut Table) {
    let Some(restarts) = &results.restarts else { return };
    table.row("index on disk", &mib(restarts.index_bytes), "");
    table.row("start until a wallet is answered", &seconds(&restarts.port_seconds), "");
    table.row("start until a script is answered", &seconds(&restarts.index_seconds), "");
    table.row("stop", &seconds(&restarts.stop_seconds), "");
    let heights: Vec<String> = restarts.killed_at.iter().map(u32::to_string).collect();
    let killed = format!("start after a kill with the index at height {}", heights.join(", "));
    table.row(&format!("{killed}: until a wallet is answered"), &seconds(&restarts.killed_port_seconds), "");
    table.row(&format!("{killed}: until the index is complete"), &seconds(&restarts.killed_index_seconds), "");
}

fn connections(results: &ScaleResults, table: &mut Table) {
    let Some(all) = &results.connections else { return };
    let name = format!("{} connections, {} at once", all.connections, all.at_once);
    table.row(&format!("{name}: opened and closed"), &format!("{:.1} s", all.seconds), "");
    let memory = |bytes: u64| mib(bytes);
    table.row(&format!("{name}: memory before"), &memory(all.before_bytes), "");
    table.row(&format!("{name}: memory with the first wave open"), &memory(all.first_wave_bytes), "");
    table.row(&format!("{name}: memory with the last wave open"), &memory(all.last_wave_bytes), "");
    table.row(&format!("{name}: memory after"), &memory(all.after_bytes), "");
    table.row(&format!("{name}: not answered; left open"), &format!("{}; {}", all.failed, all.left), "0; 0");
    let wallet = format!("{:.2} ms ({:.2} ms)", all.wallet_p50_ms, all.wallet_max_ms);
    table.row(&format!("{name}: a wallet's balance meanwhile"), &wallet, "");
}

fn notifications(results: &ScaleResults, table: &mut Table) {
    if let Some(subscribed) = &results.subscribed {
        let name = format!("{} subscriptions on one connection", subscribed.subscriptions);
        table.row(&name, &format!("{:.2} s", subscribed.seconds), "");
        let bytes = format!("{:.0} bytes", subscribed.bytes_per_subscription);
        table.row(&format!("{name}: memory of each"), &bytes, "200 bytes");
    }
    for notified in &results.notified {
        let mut changed = notified.changed.clone();
        changed.sort_unstable();
        let changed = changed.get(changed.len() / 2).copied().unwrap_or(0);
        let name = format!("block that changes {changed} of them");
        table.row(&format!("{name}: submitblock returns"), &milliseconds(&notified.submit_ms), "");
        table.row(&format!("{name}: header announced"), &milliseconds(&notified.header_ms), "");
        table.row(&format!("{name}: first script announced"), &milliseconds(&notified.first_ms), "");
        table.row(&format!("{name}: last script announced"), &milliseconds(&notified.last_ms), "");
        table.row(
            &format!("{name}: the same after submitblock returned"),
            &milliseconds(&notified.connected_ms),
            "100 ms",
        );
        let counts = format!("{}; {}", notified.repeated, notified.wrong);
        table.row(&format!("{name}: announced again; wrong"), &counts, "; 0");
    }
}

fn under_load(results: &ScaleResults, table: &mut Table) {
    let Some(all) = &results.under_load else { return };
    let name = format!("block that touches about {} scripts", all.idle.touched);
    let load = format!("{} connections with {:.0} answers/s", all.connections, all.per_second);
    for (what, notified) in [("alone", &all.idle), (load.as_str(), &all.loaded)] {
        table.row(&format!("{name}, {what}: submitblock returns"), &milliseconds(&notified.submit_ms), "");
        table.row(&format!("{name}, {what}: last script announced"), &milliseconds(&notified.last_ms), "");
    }
    table.row(&format!("{load}: failed"), &all.failed.to_string(), "0");
}

fn milliseconds(values: &[f64]) -> String {
    spread(values, |value| format!("{value:.1} ms"))
}

fn seconds(values: &[f64]) -> String {
    spread(values, |value| format!("{value:.3} s"))
}

fn spread(values: &[f64], show: impl Fn(f64) -> String) -> String {
    let mut sorted = values.to_vec();
    sorted.sort_by(f64::total_cmp);
    match (sorted.get(sorted.len() / 2), sorted.last()) {
        (Some(median), Some(highest)) => format!("{} ({})", show(*median), show(*highest)),
        _ => "-".to_owned(),
    }
}

#[allow(clippy::cast_precision_loss, reason = "bytes of a process lie far below 2^52")]
fn mib(bytes: u64) -> String {
    format!("{:.1} MiB", bytes as f64 / MIB)
}

fn spread_of(bytes: &[u64]) -> String {
    let mut sorted = bytes.to_vec();
    sorted.sort_unstable();
    match (sorted.get(sorted.len() / 2), sorted.last()) {
        (Some(median), Some(highest)) => format!("{} ({})", mib(*median), mib(*highest)),
        _ => "-".to_owned(),
    }
}

#[allow(clippy::cast_precision_loss, reason = "bytes of an answer lie far below 2^52")]
fn mega(bytes: usize) -> f64 {
    bytes as f64 / 1e6
}
