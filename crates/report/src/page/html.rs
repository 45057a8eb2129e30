//! The report as one HTML page.
//!
//! Input: a document. Output: the page, including its style sheet and charts. Invariants: no script; its policy forbids
//! every request, so that the page looks the same wherever it is stored; the colour scheme follows the reader's system
//! and can be switched; nothing is wider than a phone, except what scrolls in a box of its own.

use super::charts::Chart;
use super::document::{Block, Cell, Document, Mark, Row, Section, Table};
use super::style;
use super::words::{escape, is_link};
use std::fmt::Write;

pub(super) fn to_html(document: &Document) -> String {
    let mut html = String::new();
    let title = escape(&document.headline);
    // Writing into a string cannot fail, here and below.
    let _ = write!(
        html,
        "<!doctype html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n\
         <meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n\
         <meta http-equiv=\"Content-Security-Policy\" content=\"default-src 'none'; style-src 'unsafe-inline'\">\n\
         <title>{title}</title>\n<style>\n{}</style>\n</head>\n<body>\n",
        style::page_sheet()
    );
    html.push_str(SCHEME);
    let _ = write!(html, "<header>\n<p class=\"kicker\">Bitcoin nodes, measured side by side</p>\n<h1>{title}</h1>\n");
    for text in &document.lead {
        let _ = writeln!(html, "<p class=\"lead\">{}</p>", escape(text));
    }
    if document.sections.len() > 1 {
        contents(&mut html, &document.sections);
    }
    html.push_str("</header>\n<main>\n");
    for section in &document.sections {
        let _ = write!(html, "<section id=\"{0}\">\n<h2>{1}</h2>\n", escape(&section.id), escape(&section.title));
        blocks(&mut html, &section.blocks, section.answer.as_deref());
        html.push_str("</section>\n");
    }
    html.push_str("</main>\n<footer><p>Made by <code>lydian-lab report</code>. Every figure comes from the files of results; the same charts lie beside this page as files.</p></footer>\n</body>\n</html>\n");
    html
}

/// Works without scripts: the style sheet depends on which input is checked.
const SCHEME: &str = "<fieldset class=\"scheme\"><legend>Colours</legend>\
<label><input type=\"radio\" name=\"scheme\" id=\"scheme-auto\" checked><span>Auto</span></label>\
<label><input type=\"radio\" name=\"scheme\" id=\"scheme-light\"><span>Light</span></label>\
<label><input type=\"radio\" name=\"scheme\" id=\"scheme-dark\"><span>Dark</span></label></fieldset>\n";

fn contents(html: &mut String, sections: &[Section]) {
    html.push_str("<nav aria-label=\"Parts of this page\"><ul>\n");
    for section in sections {
        let answer = section.answer.as_deref().map(|answer| format!("<span>{}</span>", escape(answer)));
        let _ = writeln!(
            html,
            "<li><a href=\"#{}\">{}</a>{}</li>",
            escape(&section.id),
            escape(&section.title),
            answer.unwrap_or_default()
        );
    }
    html.push_str("</ul></nav>\n");
}

fn blocks(html: &mut String, all: &[Block], answer: Option<&str>) {
    for block in all {
        match block {
            Block::Heading(text) => {
                let _ = writeln!(html, "<h3>{}</h3>", escape(text));
            }
            Block::Text(text) => {
                let class = if Some(text.as_str()) == answer { " class=\"answer\"" } else { "" };
                let _ = writeln!(html, "<p{class}>{}</p>", escape(text));
            }
            Block::Warning(text) => {
                let _ = writeln!(html, "<p class=\"warning\">{}</p>", escape(text));
            }
            Block::Chart(one) => chart(html, one, ""),
            Block::Grid(several) => {
                html.push_str("<div class=\"grid\">\n");
                several.iter().for_each(|one| chart(html, one, &one.title));
                html.push_str("</div>\n");
            }
            Block::Table(one) => table(html, one),
            Block::Facts(facts) => {
                html.push_str("<dl>\n");
                for (name, value) in facts {
                    let _ = writeln!(html, "<div><dt>{}</dt><dd>{}</dd></div>", escape(name), escape(value));
                }
                html.push_str("</dl>\n");
            }
            Block::Output(text) => {
                let _ = writeln!(html, "<div class=\"box\" tabindex=\"0\"><pre>{}</pre></div>", escape(text));
            }
            Block::Details { summary, blocks: inner } => {
                let _ = writeln!(html, "<details><summary>{}</summary>", escape(summary));
                blocks(html, inner, None);
                html.push_str("</details>\n");
            }
        }
    }
}

fn chart(html: &mut String, chart: &Chart, caption: &str) {
    let caption =
        if caption.is_empty() { String::new() } else { format!("<figcaption>{}</figcaption>\n", escape(caption)) };
    let _ = writeln!(html, "<figure id=\"{}\">\n{caption}{}</figure>", escape(&chart.id), chart.inline());
}

fn table(html: &mut String, table: &Table) {
    let _ = write!(
        html,
        "<p class=\"caption\" aria-hidden=\"true\">{0}</p>\n<div class=\"box\" tabindex=\"0\" role=\"region\" aria-label=\"{0}\">\n<table>\n<thead><tr>",
        escape(&table.caption)
    );
    for column in &table.columns {
        let _ = write!(html, "<th scope=\"col\"{}>{}</th>", number_class(column.is_number), escape(&column.title));
    }
    html.push_str("</tr></thead>\n<tbody>\n");
    for row in &table.rows {
        match row {
            Row::Cells(cells) => cells_of(html, table, cells),
            Row::Reason { name, reason, source } => {
                let _ = writeln!(
                    html,
                    "<tr class=\"absent\"><th scope=\"row\">{}</th><td colspan=\"{}\"><span>{}{}</span></td></tr>",
                    escape(name),
                    table.columns.len().saturating_sub(1).max(1),
                    escape(reason),
                    source.as_deref().map(source_of).unwrap_or_default()
                );
            }
        }
    }
    html.push_str("</tbody>\n</table>\n</div>\n");
}

fn cells_of(html: &mut String, table: &Table, cells: &[Cell]) {
    html.push_str("<tr>");
    for (index, cell) in cells.iter().enumerate() {
        let is_number = table.columns.get(index).is_some_and(|column| column.is_number);
        let tag = if index == 0 { "th scope=\"row\"" } else { "td" };
        let mark = match cell.mark {
            Mark::None => "",
            Mark::Good => " good",
            Mark::Bad => " bad",
        };
        let class = format!("{}{mark}", if is_number { "number" } else { "" });
        let class = if class.is_empty() { String::new() } else { format!(" class=\"{}\"", class.trim()) };
        let note = cell.note.as_deref().map(|note| format!("<small>{}</small>", escape(note)));
        let end = if index == 0 { "th" } else { "td" };
        let text = escape(&cell.text);
        let text = match cell.link.as_deref().filter(|link| is_link(link)) {
            Some(link) => format!("<a href=\"{}\" rel=\"noreferrer\">{text}</a>", escape(link)),
            None => text,
        };
        let _ = write!(html, "<{tag}{class}>{text}{}</{end}>", note.unwrap_or_default());
    }
    html.push_str("</tr>\n");
}

fn number_class(is_number: bool) -> &'static str {
    if is_number { " class=\"number\"" } else { "" }
}

/// A link only if the source is one.
fn source_of(source: &str) -> String {
    let text = escape(source);
    if is_link(source) { format!(" (<a href=\"{text}\" rel=\"noreferrer\">source</a>)") } else { format!(" ({text})") }
}
