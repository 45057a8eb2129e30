//! The published yearly benchmarks with their deltas computed again, and, set apart, the projection of our figures to
//! mainnet.
//!
//! Input: the data file of the lab, and results. Output: two sections. Invariant: a figure of an article has its source
//! next to it; a projection is in a section of its own, is drawn hollow, and has bounds. It must never put a projected
//! and a measured figure into one chart.

use super::Colors;
use super::charts::hours::{self, Hours};
use super::document::{Block, Cell, Row, Section, Table};
use super::style::Tone;
use super::words::{self, title_of};
use crate::history::{Certainty, Delta, Edition, Entry, Figure, History, Outcome, deltas};
use crate::project::{NodeProjection, Options, Projection, Range, Target, mixed_builds, project};
use crate::results::Results;
use crate::systems::SYSTEMS;

/// The editions shown, each compared with an earlier one, the newest first.
const YEARS: [(u32, u32); 3] = [(2025, 2023), (2023, 2020), (2020, 2019)];
/// The height of the newest edition.
const TARGET: &str = "mainnet@928000";

/// The section with the articles' figures.
pub(super) fn published(colors: &Colors) -> Section {
    let history = History::load();
    let mut blocks = vec![Block::Text(
        "Whole syncs of mainnet with every signature checked, measured by Jameson Lopp on a six-core Intel Core i7-8700 with 32 GB; none of them is ours. \
         The floor is the article's own: signatures times its time for one."
            .into(),
    )];
    let charts =
        YEARS.iter().filter_map(|(year, _)| history.edition(*year)).map(|edition| chart(history, edition, colors));
    blocks.push(Block::Grid(charts.collect()));
    for (year, previous) in YEARS {
        let lines = deltas(history, year, previous);
        if !lines.is_empty() {
            blocks.push(Block::Table(delta_table(history, year, previous, &lines)));
        }
    }
    let tables: Vec<Block> = history
        .years()
        .into_iter()
        .rev()
        .filter_map(|year| history.edition(year))
        .map(|edition| Block::Table(edition_table(history, edition)))
        .collect();
    let mut details = tables;
    details.push(Block::Text(format!("What was looked for in vain: {}.", history.not_found.join("; "))));
    details.push(Block::Text(history.about.clone()));
    blocks.push(Block::Details {
        summary: "Every published figure with its source, and what was not found".into(),
        blocks: details,
    });
    let first = history.entries(2025).first().map(|entry| {
        format!("2025: {} {:.1} h, the fastest of {}", entry.system, entry.hours(), history.entries(2025).len())
    });
    Section { id: "history".into(), title: "The published yearly benchmarks".into(), answer: first, blocks }
}

fn tone(colors: &Colors, system: &str) -> Tone {
    let kind = SYSTEMS.iter().find(|known| known.title == system).map_or(system, |known| known.kind);
    colors.tone(kind)
}

fn chart(history: &History, edition: &Edition, colors: &Colors) -> super::charts::Chart {
    let of = |entry: &&Entry| Hours {
        name: entry
            .version
            .as_ref()
            .map_or_else(|| entry.system.clone(), |version| format!("{} {version}", entry.system)),
        tone: tone(colors, &entry.system),
        hours: entry.hours(),
        bounds: None,
        is_measured: entry.outcome == Outcome::Finished,
        remark: if entry.outcome == Outcome::Projected { "(expected)".into() } else { String::new() },
    };
    let rows: Vec<Hours> = history.entries(edition.year).iter().map(of).collect();
    let floor = edition.floor.as_ref().map(|floor| floor.hours.value);
    let height = edition.height.as_ref().map(|height| format!(", to height {}", words::whole(height.value)));
    let title = format!("{}{}", edition.year, height.unwrap_or_default());
    hours::chart(format!("history-{}", edition.year), title, floor, &rows)
}

fn delta_table(history: &History, year: u32, previous: u32, lines: &[Delta]) -> Table {
    let caption = format!("Delta of {year} to {previous}, from the two figures; beside it what the article prints.");
    let columns =
        ["", &format!("#{previous}"), &format!("#{year}"), "#change", "#printed", "#beside the chain's growth"];
    let mut table = Table::new(caption, &columns);
    let chain = lines.iter().find(|line| line.subject == "chain");
    for line in lines {
        let value = |value: f64| {
            if line.unit == "minutes" { format!("{:.1}\u{a0}h", value / 60.0) } else { format!("{value:.0}\u{a0}GB") }
        };
        let mut name = Cell::new(if line.subject == "chain" { "the chain's data" } else { &line.subject });
        if line.is_projected {
            name = name.note("one figure is expected, not measured");
        }
        let printed = line.printed.as_ref().map(|figure| {
            let agrees = if line.agrees() == Some(true) { "agrees" } else { "differs" };
            let cell = Cell::new(percent(figure.value)).note(agrees);
            link(history, figure, cell)
        });
        let beside = chain.filter(|_| line.subject != "chain").map(|chain| format!("× {:.2}", line.beside(chain)));
        table.push(vec![
            name,
            Cell::new(value(line.previous)),
            Cell::new(value(line.value)),
            Cell::new(percent(line.change)),
            printed.unwrap_or_else(Cell::none),
            Cell::or_none(beside),
        ]);
    }
    table
}

fn edition_table(history: &History, edition: &Edition) -> Table {
    let known =
        |figure: Option<&Figure>, unit: &str| figure.map(|figure| format!("{} {unit}", words::whole(figure.value)));
    let facts = [known(edition.height.as_ref(), "blocks"), known(edition.chain_gb.as_ref(), "GB")];
    let floor = edition.floor.as_ref().map(|floor| {
        format!(
            "floor {} h as printed; {} signatures at {} ns are {:.3} h",
            floor.hours.value,
            words::whole(floor.signatures.value),
            words::whole(floor.nanoseconds.value),
            floor.hours_computed()
        )
    });
    let facts: Vec<String> = facts.into_iter().flatten().chain(floor).collect();
    let caption = format!("{}: {}. {}", edition.year, edition.machine, facts.join("; "));
    let mut table =
        Table::new(caption, &["system", "version", "#hours", "#memory GB", "#read GB", "#written GB", "source"]);
    for entry in history.entries(edition.year) {
        let mut hours = Cell::new(format!("{:.2}", entry.hours()));
        if entry.outcome == Outcome::Projected {
            hours = hours.note("expected, not reached");
        }
        let amount = |figure: &Option<Figure>| Cell::or_none(figure.as_ref().map(|figure| words::whole(figure.value)));
        let name = Cell { note: entry.note.clone(), ..Cell::new(entry.system.clone()) };
        let source = link(history, &entry.minutes, Cell::new(certainty(entry.minutes.certainty)));
        table.push(vec![
            name,
            Cell::or_none(entry.version.clone()),
            hours,
            amount(&entry.ram_gb),
            amount(&entry.disk_read_gb),
            amount(&entry.disk_written_gb),
            source,
        ]);
    }
    if !edition.not_found.is_empty() {
        table.rows.push(Row::Reason { name: "not found".into(), reason: edition.not_found.join("; "), source: None });
    }
    table
}

fn certainty(certainty: Certainty) -> &'static str {
    match certainty {
        Certainty::Read => "read there",
        Certainty::Restated => "at second hand",
    }
}

fn link(history: &History, figure: &Figure, mut cell: Cell) -> Cell {
    cell.link = history.source(figure).map(|source| source.address.clone());
    cell
}

fn percent(share: f64) -> String {
    format!("{:+.1}\u{a0}%", share * 100.0)
}

/// The section with the projection of one machine's runs to mainnet; `None` without runs.
pub(super) fn projection(results: &[Results], colors: &Colors) -> Option<Section> {
    if results.is_empty() {
        return None;
    }
    let mut section =
        Section { id: "projection".into(), title: "Projection to mainnet: not measured".into(), ..Section::default() };
    let mixed = mixed_builds(results).into_iter().map(|mixed| {
        Block::Warning(format!(
            "The results are not of one build of {} ({}): its projection mixes the costs of both.",
            title_of(&mixed.node),
            mixed.reason
        ))
    });
    let projected = Target::parse(TARGET).and_then(|target| project(results, &target, &Options::default()));
    section.blocks = match projected {
        Ok(projection) => {
            section.answer = projected_answer(&projection);
            projected_blocks(&projection, colors)
        }
        Err(error) => vec![Block::Warning(format!("No projection: {error}."))],
    };
    section.blocks.splice(0..0, mixed);
    Some(section)
}

/// The fastest build of ours and that of Core.
fn projected_answer(projection: &Projection) -> Option<String> {
    let best = |kind: &str| {
        let of_kind = projection.nodes.iter().filter(|node| node.node.split(':').next() == Some(kind));
        of_kind.min_by(|one, other| one.wall_seconds.middle.total_cmp(&other.wall_seconds.middle))
    };
    let words = |node: &NodeProjection| {
        let Range { low, middle, high } = node.wall_seconds.times(1.0 / 3_600.0);
        format!("{} {middle:.1}\u{a0}h ({low:.1}–{high:.1})", title_of(&node.node))
    };
    let both: Vec<String> = ["lydian", "bitcoind"].into_iter().filter_map(best).map(words).collect();
    let cores = projection.nodes.first().map(|node| node.cores)?;
    (!both.is_empty()).then(|| format!("On {cores} cores: {}, projected", both.join(", ")))
}

fn projected_blocks(projection: &Projection, colors: &Colors) -> Vec<Block> {
    let target = &projection.counts.target;
    let mut blocks = vec![Block::Warning(format!(
        "Nothing here was measured: it is what {} up to height {} would take on this machine ({}) at the costs that the runs above show. Whiskers are bounds, not a spread.",
        target.network,
        words::count(target.height.into()),
        projection.cpu
    ))];
    let mut rows: Vec<Hours> = projection.nodes.iter().map(|node| row(node, colors)).collect();
    rows.sort_by(|one, other| one.hours.total_cmp(&other.hours));
    if !rows.is_empty() {
        let title = "Hours of wall time, projected".to_owned();
        blocks.push(Block::Grid(vec![hours::chart("projection-hours".into(), title, None, &rows)]));
    }
    let columns = ["node", "from", "#CPU hours", "#wall hours", "#cores", "formula of the best model"];
    let mut table = Table::new("Projected, with the lowest and the highest bound below.", &columns);
    for node in &projection.nodes {
        let chains: Vec<String> = node.measured.iter().map(|measured| measured.chain.clone()).collect();
        let formula = node.models.first().map(|model| format!("{} ({})", model.formula(), model.kind));
        table.push(vec![
            Cell::new(title_of(&node.node)),
            Cell::new(format!("{} of {}", super::tables::experiment(node.experiment), words::list(&chains))),
            range(node.cpu_seconds),
            range(node.wall_seconds),
            Cell::new(node.cores.to_string()),
            Cell::or_none(formula),
        ]);
    }
    let refused = projection.refused.iter().map(|refused| Row::Reason {
        name: title_of(&refused.node),
        reason: format!("not projected: {}", refused.reason),
        source: None,
    });
    table.rows.extend(refused);
    blocks.push(Block::Table(table));
    blocks.push(Block::Text(format!("Not in it: {}.", projection.not_included.join("; "))));
    blocks
}

fn row(node: &NodeProjection, colors: &Colors) -> Hours {
    let wall = node.wall_seconds.times(1.0 / 3_600.0);
    Hours {
        name: format!("{}, from {}", title_of(&node.node), super::tables::experiment(node.experiment)),
        tone: colors.tone(&node.node),
        hours: wall.middle,
        bounds: Some((wall.low, wall.high)),
        is_measured: false,
        remark: format!("({:.1}–{:.1})", wall.low, wall.high),
    }
}

fn range(seconds: Range) -> Cell {
    let Range { low, middle, high } = seconds.times(1.0 / 3_600.0);
    Cell::new(format!("{middle:.2}")).note(format!("{low:.2}–{high:.2}"))
}
