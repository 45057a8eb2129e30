//! A comparison as Markdown.
//!
//! Input: a comparison. Output: the table, followed by the totals and warnings.

use super::{Comparison, Figure, Line, Verdict};
use crate::results::{Cache, Spread};
use std::fmt::Write;

pub(super) fn to_markdown(comparison: &Comparison) -> String {
    if !comparison.refusals.is_empty() {
        let lines: Vec<String> = comparison.refusals.iter().map(|line| format!("* {line}\n")).collect();
        return format!("NOT COMPARABLE:\n\n{}", lines.concat());
    }
    let mut text =
        String::from("| node | figure | old | new | change | verdict | why |\n|---|---|---|---|---|---|---|\n");
    for line in &comparison.lines {
        let cache = if line.cache == Cache::Cold { " (cold)" } else { "" };
        let change = line.change.map_or("-".into(), |change| format!("{:+.1} %", change * 100.0));
        // Writing into a string cannot fail.
        let _ = writeln!(
            text,
            "| {}{cache} | {} | {} | {} | {change} | {} | {} |",
            line.node,
            name(line.figure),
            spread(line.figure, line.old.as_ref(), line.runs_old),
            spread(line.figure, line.new.as_ref(), line.runs_new),
            word(line),
            line.reason
        );
    }
    let count = |verdict| comparison.lines.iter().filter(|line| line.verdict == verdict).count();
    let _ = writeln!(
        text,
        "\n{} worse, {} better, {} without difference, {} of which the runs cannot tell; changes up to {:.1} % are none.",
        count(Verdict::Worse),
        count(Verdict::Better),
        count(Verdict::NoDifference),
        count(Verdict::CannotTell),
        comparison.threshold * 100.0
    );
    for warning in &comparison.warnings {
        let _ = writeln!(text, "WARNING: {warning}");
    }
    text
}

fn name(figure: Figure) -> &'static str {
    match figure {
        Figure::Runs => "runs that count",
        Figure::WallSeconds => "wall s",
        Figure::CpuSeconds => "CPU s",
        Figure::PeakRssBytes => "RSS MB",
        Figure::ReadBytes => "read MB",
        Figure::WriteBytes => "written MB",
        Figure::DiskBytes => "disk MB",
        Figure::ReceivedBytes => "received MB",
    }
}

fn spread(figure: Figure, spread: Option<&Spread>, runs: usize) -> String {
    if figure == Figure::Runs {
        return format!("of {runs}");
    }
    let Some(Spread { median, min, max }) = spread else { return "-".into() };
    match figure {
        Figure::WallSeconds | Figure::CpuSeconds => format!("{median:.2} [{min:.2}-{max:.2}], {runs}"),
        _ => format!("{:.1} [{:.1}-{:.1}], {runs}", median / 1e6, min / 1e6, max / 1e6),
    }
}

fn word(line: &Line) -> &'static str {
    let is_time = matches!(line.figure, Figure::WallSeconds | Figure::CpuSeconds);
    match line.verdict {
        Verdict::Better if is_time => "faster",
        Verdict::Better => "less",
        Verdict::Worse if line.new.is_none() || line.figure == Figure::Runs => "**FAILS**",
        Verdict::Worse if is_time => "**slower**",
        Verdict::Worse => "**more**",
        Verdict::NoDifference => "no difference",
        Verdict::CannotTell => "cannot tell",
    }
}
