//! A projection as Markdown.
//!
//! Input: a projection. Output: text whose first words state that nothing in it was measured.

use super::{NodeProjection, Projection, Range};
use std::fmt::Write;

/// The most models shown for each node.
const MODELS_SHOWN: usize = 8;

pub(super) fn to_markdown(projection: &Projection) -> String {
    let target = &projection.counts.target;
    let mut text = format!(
        "PROJECTION, not a measurement: {} up to height {}, from costs measured on {}.\n\n\
         | node | from | CPU hours | cores | wall hours |\n|---|---|---|---|---|\n",
        target.network, target.height, projection.cpu
    );
    for node in &projection.nodes {
        let chains: Vec<&str> = node.measured.iter().map(|row| row.chain.as_str()).collect();
        // Writing into a string cannot fail.
        let _ = writeln!(
            text,
            "| {} | {} on {} | {} | {} | {} |",
            node.node,
            format!("{:?}", node.experiment).to_lowercase(),
            chains.join(", "),
            hours(node.cpu_seconds),
            node.cores,
            hours(node.wall_seconds)
        );
    }
    for refused in &projection.refused {
        let _ = writeln!(text, "| {} | not projected: {} | - | - | - |", refused.node, refused.reason);
    }
    text.push_str("\nEach value stands before its bounds.\n");
    for node in &projection.nodes {
        of_node(&mut text, node);
    }
    other_machines(&mut text, projection);
    text.push_str("\nCounts of the target:\n\n| | low | middle | high | source |\n|---|---|---|---|---|\n");
    for quantity in &projection.counts.quantities {
        let Range { low, middle, high } = quantity.range;
        let note = quantity.note.as_ref().map_or(String::new(), |note| format!(" ({note})"));
        let (low, middle, high) = (count(low), count(middle), count(high));
        let _ = writeln!(text, "| {} | {low} | {middle} | {high} | {}{note} |", quantity.name, quantity.source);
    }
    text.push_str("\nNot in it:\n\n");
    for line in &projection.not_included {
        let _ = writeln!(text, "* {line}");
    }
    text
}

/// The nodes on machines other than that of the runs.
fn other_machines(text: &mut String, projection: &Projection) {
    if projection.nodes.iter().all(|node| node.machines.is_empty()) {
        return;
    }
    text.push_str("\nOn other machines, none of them measured here:\n\n| node | machine | wall hours | formula |\n|---|---|---|---|\n");
    for (node, on) in projection.nodes.iter().flat_map(|node| node.machines.iter().map(move |on| (node, on))) {
        let _ = writeln!(text, "| {} | {} | {} | {} |", node.node, on.machine, hours(on.wall_seconds), on.formula);
    }
}

fn of_node(text: &mut String, node: &NodeProjection) {
    let _ = writeln!(text, "\n{} ({}), CPU seconds:\n", node.node, node.version);
    for model in node.models.iter().take(MODELS_SHOWN) {
        let Range { low, middle, high } = model.cpu_seconds;
        let _ = writeln!(
            text,
            "* {} = {middle:.0} [{low:.0}-{high:.0}] ({}, {:.1} % unexplained)",
            model.formula(),
            model.kind,
            model.residual * 100.0
        );
    }
    if node.models.len() > MODELS_SHOWN {
        let _ = writeln!(text, "* and {} more models within the bounds", node.models.len() - MODELS_SHOWN);
    }
    for row in &node.measured {
        let _ = writeln!(
            text,
            "* measured on {}: {:.2} s of CPU, {:.2} s of wall time, runs: {}, threads: {}, +-{:.1} %",
            row.chain,
            row.cpu_seconds,
            row.wall_seconds,
            row.runs,
            row.threads,
            row.noise * 100.0
        );
    }
    for note in &node.notes {
        let _ = writeln!(text, "* {note}");
    }
}

fn hours(range: Range) -> String {
    let Range { low, middle, high } = range.times(1.0 / 3600.0);
    format!("{middle:.2} [{low:.2}-{high:.2}]")
}

fn count(value: f64) -> String {
    if value < 1000.0 { format!("{value:.3}") } else { format!("{:.4} bn", value / 1e9) }
}
