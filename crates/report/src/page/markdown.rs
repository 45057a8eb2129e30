//! The report as Markdown, with the charts as separate files.
//!
//! Input: a document. Output: the text. Invariant: it has the same content as the page. The text of a figure must never
//! break a table.

use super::charts::Chart;
use super::document::{Block, Cell, Document, Mark, Row, Table};
use super::words::is_link;
use std::fmt::Write;

pub(super) fn to_markdown(document: &Document) -> String {
    let mut text = String::new();
    // Writing into a string cannot fail, here and below.
    let _ = write!(text, "# {}\n\n", plain(&document.headline));
    for line in &document.lead {
        let _ = write!(text, "{}\n\n", plain(line));
    }
    for section in &document.sections {
        let _ = write!(text, "## {}\n\n", plain(&section.title));
        blocks(&mut text, &section.blocks, section.answer.as_deref());
    }
    text.truncate(text.trim_end().len());
    text.push('\n');
    text
}

fn blocks(text: &mut String, all: &[Block], answer: Option<&str>) {
    for block in all {
        match block {
            Block::Heading(title) => {
                let _ = write!(text, "### {}\n\n", plain(title));
            }
            Block::Text(line) if Some(line.as_str()) == answer => {
                let _ = write!(text, "**{}**\n\n", plain(line));
            }
            Block::Text(line) => {
                let _ = write!(text, "{}\n\n", plain(line));
            }
            Block::Warning(line) => {
                let _ = write!(text, "> **Note:** {}\n\n", plain(line));
            }
            Block::Chart(one) => chart(text, one),
            Block::Grid(several) => several.iter().for_each(|one| chart(text, one)),
            Block::Table(one) => table(text, one),
            Block::Facts(facts) => {
                for (name, value) in facts {
                    let _ = writeln!(text, "- {}: `{}`", plain(name), code(value));
                }
                text.push('\n');
            }
            Block::Output(output) => {
                output.lines().for_each(|line| {
                    let _ = writeln!(text, "    {line}");
                });
                text.push('\n');
            }
            Block::Details { summary, blocks: inner } => {
                let _ = write!(text, "<details><summary>{}</summary>\n\n", plain(summary));
                blocks(text, inner, None);
                text.push_str("</details>\n\n");
            }
        }
    }
}

fn chart(text: &mut String, chart: &Chart) {
    let _ = write!(text, "![{}]({}.svg)\n\n", plain(&chart.title), chart.id);
}

fn table(text: &mut String, table: &Table) {
    let _ = write!(text, "{}\n\n", plain(&table.caption));
    let titles: Vec<String> = table.columns.iter().map(|column| plain(&column.title)).collect();
    let rules: Vec<&str> = table.columns.iter().map(|column| if column.is_number { "---:" } else { "---" }).collect();
    let _ = writeln!(text, "| {} |\n| {} |", titles.join(" | "), rules.join(" | "));
    for row in &table.rows {
        let cells: Vec<String> = match row {
            Row::Cells(cells) => cells.iter().map(cell).collect(),
            Row::Reason { name, reason, source } => {
                let source = source.as_deref().map(source_of).unwrap_or_default();
                let mut cells = vec![plain(name), format!("{}{source}", plain(reason))];
                cells.resize(table.columns.len().max(2), String::new());
                cells
            }
        };
        let _ = writeln!(text, "| {} |", cells.join(" | "));
    }
    text.push('\n');
}

fn cell(cell: &Cell) -> String {
    let text = plain(&cell.text);
    let text = match cell.link.as_deref().filter(|link| is_link(link)) {
        Some(link) => format!("[{text}]({link})"),
        None => text,
    };
    let text = if cell.mark == Mark::Bad { format!("**{text}**") } else { text };
    cell.note.as_deref().map_or_else(|| text.clone(), |note| format!("{text} ({})", plain(note)))
}

fn source_of(source: &str) -> String {
    if is_link(source) { format!(" ([source]({source}))") } else { format!(" ({})", plain(source)) }
}

/// The text on one line, with the special characters of Markdown and HTML escaped.
fn plain(text: &str) -> String {
    let mut safe = String::with_capacity(text.len());
    for c in text.chars() {
        match c {
            '\n' | '\r' | '\t' => safe.push(' '),
            '<' => safe.push_str("&lt;"),
            '|' | '*' | '`' | '[' | ']' | '\\' | '_' => safe.extend(['\\', c]),
            c if c.is_control() => safe.push('\u{fffd}'),
            c => safe.push(c),
        }
    }
    safe
}

/// The text between backticks.
fn code(text: &str) -> String {
    text.replace('`', "'").replace(['\n', '\r'], " ")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn foreign_text_stays_in_its_cell() {
        assert_eq!(plain("a|b\n<script> *x*"), "a\\|b &lt;script> \\*x\\*");
        assert_eq!(code("a`b\nc"), "a'b c");
    }
}
