//! The part of a report on an `electrum` comparison: building of the indexes, Casa's charts, load, differences.
//!
//! Input: results. Output: blocks. Invariant: a dot is an answer; queries without one are counted in the table.

use super::Colors;
use super::charts::lines::{self, Axes, Line};
use super::charts::scatter::{self, Dots};
use super::document::{Block, Cell, Mark, Row, Table};
use super::tables;
use super::words::{self, title_of};
use crate::electrum::results::{ElectrumResults, Query, ScriptFacts, ServerResults};
use crate::results::NodeFacts;

/// Servers that answered a smaller share are not in the headline.
const ANSWERED_SHARE_MIN: f64 = 0.5;

/// Returns title, answer, blocks.
pub(super) fn part(results: &ElectrumResults, id: &str, colors: &Colors) -> (String, Option<String>, Vec<Block>) {
    let title = format!("Electrum servers: {}", tables::chain(&results.chain));
    let mut blocks = vec![Block::Text(method(results))];
    if !results.is_agreed {
        blocks.push(Block::Warning("The servers do not give the same answers: see the differences below.".into()));
    }
    blocks.extend(failures(results));
    blocks.push(Block::Heading("Time to answer".into()));
    for name in query_names(results) {
        blocks.extend(question(results, id, &name, colors));
    }
    blocks.extend(builds(results));
    blocks.extend(load(results, id, colors));
    blocks.extend(differences(results));
    blocks.push(measured(results));
    (title, answer(results), blocks)
}

/// The median time for the history of a script, of each server whose answers are right, over the scripts that all of
/// these servers answered.
fn answer(results: &ElectrumResults) -> Option<String> {
    let asked = |server| query(server, "history").filter(|query| query.warm_ms.iter().any(Option::is_some));
    let is_ranked = |query: &Query| query.wrong == 0 && answered_share(query) >= ANSWERED_SHARE_MIN;
    let (ranked, others): (Vec<_>, Vec<_>) = results
        .servers
        .iter()
        .filter_map(|server| Some((title_of(&server.facts.name), asked(server)?)))
        .partition(|(_, query)| is_ranked(query));
    let all = (0..results.scripts.len())
        .filter(|&script| ranked.iter().all(|(_, query)| query.warm_ms.get(script).copied().flatten().is_some()));
    let scripts: Vec<usize> = all.collect();
    let median = |(name, query): &(String, &Query)| {
        let times: Vec<_> = scripts.iter().map(|&script| query.warm_ms.get(script).copied().flatten()).collect();
        Some((name.clone(), quantile(&sorted(&times), 0.5)?))
    };
    let mut times: Vec<(String, f64)> = ranked.iter().filter_map(median).collect();
    times.sort_by(|one, other| one.1.total_cmp(&other.1));
    let words: Vec<String> =
        times.iter().map(|(name, time)| format!("{name} {} ms", words::milliseconds(*time))).collect();
    let not_ranked: Vec<String> = others.into_iter().map(|(name, _)| name).collect();
    let not_ranked = (!not_ranked.is_empty())
        .then(|| format!("; not ranked, since answers are wrong or missing: {}", words::list(&not_ranked)));
    (!words.is_empty()).then(|| {
        format!(
            "A script's history, median of the {} of {} scripts that all of these answered: {}{}",
            words::count(count(scripts.len())),
            words::count(count(results.scripts.len())),
            words.join(", "),
            not_ranked.unwrap_or_default()
        )
    })
}

/// The share of answered scripts among those that it was or should have been asked for.
fn answered_share(query: &Query) -> f64 {
    let answered = query.warm_ms.iter().filter(|time| time.is_some()).count();
    words::as_f64(count(answered)) / words::as_f64(count(query.warm_ms.len().max(1)))
}

fn method(results: &ElectrumResults) -> String {
    let settings = &results.settings;
    let emptied = match &settings.cache_emptied_by {
        Some(how) => format!("the system's cache emptied before the first ({how})"),
        None => "the system's cache not emptied, so that the first is cold for the server alone".into(),
    };
    format!(
        "Each server indexes the same chain, then one connection asks about {} scripts one after the other: a first, cold pass, {emptied}, and {} more, of \
         which each script's median counts.",
        words::count(count(results.scripts.len())),
        settings.passes
    )
}

fn failures(results: &ElectrumResults) -> Vec<Block> {
    let of = |server: &ServerResults| {
        let summary = format!("{}: {}", title_of(&server.facts.name), server.failure.as_ref()?);
        Some(match &server.log_end {
            Some(log) => Block::Details { summary, blocks: vec![Block::Output(log.clone())] },
            None => Block::Warning(summary),
        })
    };
    results.servers.iter().filter_map(of).collect()
}

fn query_names(results: &ElectrumResults) -> Vec<String> {
    let mut names: Vec<String> = Vec::new();
    for query in results.servers.iter().flat_map(|server| &server.queries) {
        if !names.contains(&query.name) {
            names.push(query.name.clone());
        }
    }
    names
}

fn query<'a>(server: &'a ServerResults, name: &str) -> Option<&'a Query> {
    server.queries.iter().find(|query| query.name == name)
}

fn title(name: &str) -> String {
    match name {
        "balance" => "Balance of a script".into(),
        "history" => "History of a script".into(),
        "utxos" => "Coins of a script".into(),
        "headers" => "Headers".into(),
        "merkle" => "Merkle proof of a transaction".into(),
        "esplora-script" => "Esplora: counts and sums of a script".into(),
        "esplora-txs" => "Esplora: newest transactions of a script".into(),
        "esplora-utxo" => "Esplora: coins of a script".into(),
        "esplora-outspends" => "Esplora: spenders of a transaction of a script".into(),
        other => other.to_owned(),
    }
}

/// Two charts and a table for one query.
fn question(results: &ElectrumResults, id: &str, name: &str, colors: &Colors) -> Vec<Block> {
    let title = title(name);
    let is_of_scripts = |query: &Query| query.heights.is_empty();
    let dots = |what: fn(&ScriptFacts) -> u32| -> Vec<Dots> {
        let of = |server: &ServerResults| {
            let query = query(server, name).filter(|query| is_of_scripts(query))?;
            let times = results.scripts.iter().zip(&query.warm_ms);
            let points = times.filter_map(|(script, time)| Some((f64::from(what(script)), (*time)?))).collect();
            Some(Dots { name: title_of(&server.facts.name), tone: colors.tone(&server.facts.name), points })
        };
        results.servers.iter().filter_map(of).collect()
    };
    let by_transactions = scatter::chart(
        format!("{id}-{name}-transactions"),
        format!("{title}: time against transactions"),
        "transactions of the script",
        &dots(|script| script.transactions),
    );
    let by_utxos = scatter::chart(
        format!("{id}-{name}-utxos"),
        format!("{title}: time against coins"),
        "unspent outputs of the script",
        &dots(|script| script.utxos),
    );
    let charts: Vec<_> = by_transactions.into_iter().chain(by_utxos).collect();
    let mut blocks = Vec::new();
    if !charts.is_empty() {
        blocks.push(Block::Grid(charts));
    }
    blocks.push(Block::Table(times_table(results, name, title)));
    blocks
}

fn times_table(results: &ElectrumResults, name: &str, title: String) -> Table {
    let columns = [
        "server",
        "#warm p50 ms",
        "#p90 ms",
        "#p99 ms",
        "#max ms",
        "#cold p50 ms",
        "#p99 ms",
        "#max ms",
        "#unanswered",
        "#wrong",
        "answers",
    ];
    let mut table = Table::new(format!("{title}, milliseconds."), &columns);
    for server in &results.servers {
        let Some(query) = query(server, name) else { continue };
        let (warm, cold) = (sorted(&query.warm_ms), sorted(&query.cold_ms));
        let at = |times: &[f64], share: f64| Cell::or_none(quantile(times, share).map(words::milliseconds));
        let missing = unanswered(query);
        let wrong = Cell::new(words::count(query.wrong.into())).mark(bad_if(query.wrong > 0));
        table.push(vec![
            Cell::new(title_of(&server.facts.name)),
            at(&warm, 0.5),
            at(&warm, 0.9),
            at(&warm, 0.99),
            at(&warm, 1.0),
            at(&cold, 0.5),
            at(&cold, 0.99),
            at(&cold, 1.0),
            missing,
            wrong,
            Cell::or_none(query.answer_sha256.as_ref().map(|hash| hash.chars().take(12).collect())),
        ]);
    }
    let unasked = results.servers.iter().filter(|server| query(server, name).is_none());
    table.rows.extend(unasked.filter(|server| server.facts.cannot.is_none()).map(no_figures));
    table.rows.extend(absent(results));
    table
}

/// The number of queries without an answer; those skipped for lack of time are counted separately.
fn unanswered(query: &Query) -> Cell {
    let missing = count(query.warm_ms.iter().filter(|time| time.is_none()).count());
    let failed = missing.saturating_sub(query.not_asked.into());
    let mut cell = Cell::new(words::count(failed)).mark(bad_if(failed > 0));
    cell.note = query.errors.first().cloned();
    if query.not_asked > 0 {
        cell = cell.note(format!("{} not asked, no time", words::count(query.not_asked.into())));
    }
    cell
}

fn bad_if(is_bad: bool) -> Mark {
    if is_bad { Mark::Bad } else { Mark::None }
}

fn no_figures(server: &ServerResults) -> Row {
    let reason = server.failure.clone().unwrap_or_else(|| "was not asked".into());
    Row::Reason { name: title_of(&server.facts.name), reason, source: None }
}

fn absent(results: &ElectrumResults) -> Vec<Row> {
    let facts: Vec<NodeFacts> = results.servers.iter().map(|server| server.facts.clone()).collect();
    tables::absent(&facts, &results.left_out)
}

fn builds(results: &ElectrumResults) -> Vec<Block> {
    let columns = [
        "server",
        "#build s",
        "#server CPU s",
        "#node CPU s",
        "#peak memory MB",
        "#serving MB",
        "#index MB",
        "#node's index MB",
        "#bytes a posting",
    ];
    let mut table =
        Table::new("From an empty index to the tip. A posting is a pair of script and transaction.", &columns);
    for server in &results.servers {
        let Some(build) = &server.build else {
            if server.facts.cannot.is_none() {
                table.rows.push(no_figures(server));
            }
            continue;
        };
        let megabytes = |bytes: u64| Cell::new(words::whole(words::as_f64(bytes) / 1e6));
        let mut name = Cell::new(title_of(&server.facts.name));
        if build.is_disturbed {
            name = name.note("busy machine");
        }
        let posting =
            words::as_f64(build.index_bytes + build.daemon_index_bytes) / words::as_f64(build.postings.max(1));
        table.push(vec![
            name,
            Cell::new(format!("{:.1}", build.wall_seconds)),
            Cell::new(format!("{:.1}", build.cpu_seconds)),
            Cell::new(format!("{:.1}", build.daemon_cpu_seconds)),
            megabytes(build.peak_rss_bytes),
            server.serving_peak_rss_bytes.map_or_else(Cell::none, megabytes),
            megabytes(build.index_bytes),
            megabytes(build.daemon_index_bytes),
            Cell::new(format!("{posting:.1}")),
        ]);
    }
    table.rows.extend(absent(results));
    vec![Block::Heading("Building the index".into()), Block::Table(table)]
}

fn load(results: &ElectrumResults, id: &str, colors: &Colors) -> Vec<Block> {
    if results.servers.iter().all(|server| server.loads.is_empty() && server.wallet.is_none()) {
        return Vec::new();
    }
    let line = |server: &ServerResults| Line {
        name: title_of(&server.facts.name),
        tone: colors.tone(&server.facts.name),
        points: server.loads.iter().map(|load| (f64::from(load.connections), load.per_second)).collect(),
    };
    let lines: Vec<Line> = results.servers.iter().map(line).collect();
    let axes = Axes { x: "connections", y: "answers a second", is_x_log: true, are_dots: true };
    let chart = lines::chart(format!("{id}-load"), "Answers a second by connections".into(), axes, &lines);
    let columns = ["server", "#connections", "#answers/s", "#p50 ms", "#p90 ms", "#p99 ms", "#max ms", "#errors"];
    let mut table = Table::new("Balance, history and coins of random scripts, by many connections at once.", &columns);
    let mut wallets = Table::new(
        "A wallet subscribes to its scripts in batches.",
        &["server", "#scripts", "#in a batch", "#seconds", "#errors"],
    );
    for server in &results.servers {
        let name = title_of(&server.facts.name);
        for load in &server.loads {
            let times =
                [load.p50_ms, load.p90_ms, load.p99_ms, load.max_ms].map(|time| Cell::new(words::milliseconds(time)));
            let head = [
                Cell::new(name.clone()),
                Cell::new(load.connections.to_string()),
                Cell::new(words::whole(load.per_second)),
            ];
            let errors = Cell::new(words::count(load.errors)).mark(bad_if(load.errors > 0));
            table.push(head.into_iter().chain(times).chain([errors]).collect());
        }
        if let Some(wallet) = &server.wallet {
            let counts =
                [u64::from(wallet.scripts), u64::from(wallet.batch)].map(|value| Cell::new(words::count(value)));
            let end = [Cell::new(format!("{:.2}", wallet.seconds)), Cell::new(words::count(wallet.errors))];
            wallets.push(std::iter::once(Cell::new(name)).chain(counts).chain(end).collect());
        }
    }
    let mut blocks = vec![Block::Heading("Under load".into())];
    blocks.extend(chart.map(|chart| Block::Grid(vec![chart])));
    for mut table in [table, wallets] {
        if !table.rows.is_empty() {
            table.rows.extend(absent(results));
            blocks.push(Block::Table(table));
        }
    }
    blocks
}

fn differences(results: &ElectrumResults) -> Vec<Block> {
    if results.differences.is_empty() {
        return Vec::new();
    }
    let mut table = Table::new("Answers that are not the same, shortened.", &["question", "of", "answers"]);
    for difference in &results.differences {
        let answers: Vec<String> =
            difference.answers.iter().map(|(server, answer)| format!("{}: {answer}", title_of(server))).collect();
        table.push(vec![
            Cell::new(difference.query.clone()),
            Cell::new(difference.what.clone()),
            Cell::new(answers.join("; ")),
        ]);
    }
    let summary = format!("Differences between answers: {}", results.differences.len());
    vec![Block::Details { summary, blocks: vec![Block::Table(table)] }]
}

fn measured(results: &ElectrumResults) -> Block {
    let mut facts = tables::provenance(&results.lab, &results.machine, &results.chain, results.started);
    let settings = &results.settings;
    facts.push((
        "Settings".into(),
        format!(
            "{} passes after the first, load of {} s a step, batches of {}",
            settings.passes, settings.load_seconds, settings.batch
        ),
    ));
    let programs: Vec<NodeFacts> =
        std::iter::once(&results.daemon).chain(results.servers.iter().map(|server| &server.facts)).cloned().collect();
    let mut notes = results
        .servers
        .iter()
        .flat_map(|server| server.facts.notes.iter().map(|note| format!("{}: {note}", title_of(&server.facts.name))))
        .map(Block::Text)
        .collect::<Vec<_>>();
    let mut blocks = vec![Block::Facts(facts), Block::Table(tables::programs(&programs))];
    blocks.append(&mut notes);
    Block::Details { summary: "How this was measured: machine, chain, command, versions".into(), blocks }
}

fn sorted(times: &[Option<f64>]) -> Vec<f64> {
    let mut known: Vec<f64> = times.iter().copied().flatten().collect();
    known.sort_by(f64::total_cmp);
    known
}

/// The smallest value with at least this share of all values at or below it.
fn quantile(sorted: &[f64], share: f64) -> Option<f64> {
    let last = sorted.len().checked_sub(1)?;
    (0..=last)
        .find(|index| words::as_f64(count(index + 1)) >= share * words::as_f64(count(sorted.len())) - 1e-9)
        .and_then(|index| sorted.get(index).copied())
}

fn count(length: usize) -> u64 {
    u64::try_from(length).unwrap_or(u64::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn quantiles_are_values_that_occurred() {
        let values: Vec<f64> = (1..=100).map(f64::from).collect();
        assert_eq!([0.5, 0.99, 1.0].map(|share| quantile(&values, share).unwrap()), [50.0, 99.0, 100.0]);
        assert_eq!((quantile(&[7.0], 0.5), quantile(&[], 0.5)), (Some(7.0), None));
    }
}
