//! The content of a report before it is HTML or Markdown: sections of sentences, charts and tables.
//!
//! Output: the types that the parts of the report fill in and the two writers traverse. Invariant: both writers show
//! the same content.

use super::charts::Chart;

/// The whole report.
#[derive(Clone, Debug, Default)]
pub(super) struct Document {
    /// The result, in one line.
    pub(super) headline: String,
    /// Where and when it was measured.
    pub(super) lead: Vec<String>,
    pub(super) sections: Vec<Section>,
}

/// One experiment, or another part.
#[derive(Clone, Debug, Default)]
pub(super) struct Section {
    /// For links and file names, such as `reindex-1`.
    pub(super) id: String,
    pub(super) title: String,
    /// Its result, in one line; also shown in the list at the top.
    pub(super) answer: Option<String>,
    pub(super) blocks: Vec<Block>,
}

#[derive(Clone, Debug)]
pub(super) enum Block {
    Heading(String),
    Text(String),
    /// Something to know before reading the figures.
    Warning(String),
    Chart(Chart),
    /// Small charts, side by side if there is room.
    Grid(Vec<Chart>),
    Table(Table),
    /// Names and values.
    Facts(Vec<(String, String)>),
    /// The unchanged output of a program.
    Output(String),
    /// Collapsed until the reader opens it.
    Details {
        summary: String,
        blocks: Vec<Block>,
    },
}

#[derive(Clone, Debug, Default)]
pub(super) struct Table {
    pub(super) caption: String,
    pub(super) columns: Vec<Column>,
    pub(super) rows: Vec<Row>,
}

#[derive(Clone, Debug)]
pub(super) struct Column {
    pub(super) title: String,
    /// Right-aligned.
    pub(super) is_number: bool,
}

#[derive(Clone, Debug)]
pub(super) enum Row {
    Cells(Vec<Cell>),
    /// A system without figures: its name, the reason, and the source of the reason.
    Reason {
        name: String,
        reason: String,
        source: Option<String>,
    },
}

#[derive(Clone, Debug, Default)]
pub(super) struct Cell {
    pub(super) text: String,
    /// In small type, after or below the text: a spread, for example.
    pub(super) note: Option<String>,
    pub(super) mark: Mark,
    /// The source of the figure.
    pub(super) link: Option<String>,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) enum Mark {
    #[default]
    None,
    Good,
    Bad,
}

impl Table {
    /// A column title that starts with `#` is one of numbers.
    pub(super) fn new(caption: impl Into<String>, columns: &[&str]) -> Table {
        let column = |title: &&str| Column {
            title: title.trim_start_matches('#').to_owned(),
            is_number: title.starts_with('#'),
        };
        Table { caption: caption.into(), columns: columns.iter().map(column).collect(), rows: Vec::new() }
    }

    pub(super) fn push(&mut self, cells: Vec<Cell>) {
        self.rows.push(Row::Cells(cells));
    }
}

impl Cell {
    pub(super) fn new(text: impl Into<String>) -> Cell {
        Cell { text: text.into(), ..Cell::default() }
    }

    /// A cell without a value.
    pub(super) fn none() -> Cell {
        Cell::new("–")
    }

    pub(super) fn or_none(text: Option<String>) -> Cell {
        text.map_or_else(Cell::none, Cell::new)
    }

    pub(super) fn note(mut self, note: impl Into<String>) -> Cell {
        self.note = Some(note.into());
        self
    }

    pub(super) fn mark(mut self, mark: Mark) -> Cell {
        self.mark = mark;
        self
    }
}

impl Document {
    /// All charts, in the order of the page.
    pub(super) fn charts(&self) -> Vec<&Chart> {
        self.sections.iter().flat_map(|section| charts_in(&section.blocks)).collect()
    }
}

fn charts_in(blocks: &[Block]) -> Vec<&Chart> {
    let mut charts = Vec::new();
    for block in blocks {
        match block {
            Block::Chart(chart) => charts.push(chart),
            Block::Grid(several) => charts.extend(several),
            Block::Details { blocks, .. } => charts.extend(charts_in(blocks)),
            _ => {}
        }
    }
    charts
}
