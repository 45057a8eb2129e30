//! The report: one self-contained HTML page, the same as Markdown, and each chart as a file of its own.
//!
//! Input: results files. Output: `index.html`, `report.md` and `*.svg` in a directory. Invariants: a run that does not
//! count has no bar, line or dot, only its reason; systems that took no part are in every table with the reason; the
//! same results give the same bytes. Cost: memory and time grow with the files, about a second for 3,000 scripts. The
//! page must never refer to anything outside it except sources to follow, and no file is written outside the directory.

mod charts;
mod document;
mod electrum;
mod history;
mod html;
mod input;
mod markdown;
mod runs;
mod style;
mod tables;
pub(crate) mod words;

pub use input::Input;

use crate::error::ReportError;
use crate::limits::REPORT_FILES_MAX;
use crate::results::Results;
use document::{Document, Section};
use lydian_disk::{Disk, RealDisk};
use std::path::{Path, PathBuf};
use style::{NODE_TONES, Tone};

/// Writes the report of the inputs into a directory, which is created if needed; returns the files, the page first.
pub fn write(inputs: &[Input], out: &Path) -> Result<Vec<PathBuf>, ReportError> {
    if inputs.is_empty() || inputs.len() > REPORT_FILES_MAX {
        return Err(ReportError::Usage(format!("a report takes 1 to {REPORT_FILES_MAX} results files")));
    }
    let document = document(inputs);
    RealDisk.create_dir(out)?;
    let mut written = Vec::new();
    let mut put = |name: String, text: String| -> Result<(), ReportError> {
        let path = out.join(name);
        RealDisk.write_whole(&path, text.as_bytes())?;
        written.push(path);
        Ok(())
    };
    put("index.html".into(), html::to_html(&document))?;
    put("report.md".into(), markdown::to_markdown(&document))?;
    for chart in document.charts() {
        put(format!("{}.svg", chart.id), chart.file())?;
    }
    Ok(written)
}

/// One chain under one experiment: results that may be shown together.
#[derive(Debug)]
struct Group<'a> {
    id: String,
    key: (&'static str, &'a str),
    inputs: Vec<&'a Input>,
}

fn document(inputs: &[Input]) -> Document {
    let colors = Colors::of(inputs);
    let groups = groups(inputs);
    let mut sections: Vec<Section> = groups.iter().map(|group| section(group, &colors)).collect();
    let first = sections.iter().find_map(|section| section.answer.clone());
    let runs: Vec<Results> = inputs.iter().filter_map(Input::runs).cloned().collect();
    for mut section in history::projection(&runs, &colors).into_iter().chain([history::published(&colors)]) {
        section.blocks.splice(0..0, section.answer.clone().map(document::Block::Text));
        sections.push(section);
    }
    let headline = first.unwrap_or_else(|| "No run counts: see the reasons below".into());
    Document { headline, lead: lead(inputs), sections }
}

fn groups(inputs: &[Input]) -> Vec<Group<'_>> {
    let mut groups: Vec<Group<'_>> = Vec::new();
    for input in inputs {
        let key = input.key();
        if let Some(group) = groups.iter_mut().find(|group| group.key == key) {
            group.inputs.push(input);
            continue;
        }
        let number = groups.iter().filter(|group| group.key.0 == key.0).count() + 1;
        groups.push(Group { id: format!("{}-{number}", key.0), key, inputs: vec![input] });
    }
    groups
}

/// Files of one group stay separate within it: figures measured at different times must not be compared.
fn section(group: &Group<'_>, colors: &Colors) -> Section {
    let mut section = Section { id: group.id.clone(), ..Section::default() };
    for (input, number) in group.inputs.iter().zip(1..) {
        let id = if group.inputs.len() > 1 { format!("{}-{number}", group.id) } else { group.id.clone() };
        let (title, answer, blocks) = match input {
            Input::Runs(results) => runs::part(results, &id, colors),
            Input::Electrum(results) => electrum::part(results, &id, colors),
        };
        section.title = title;
        section.answer = section.answer.or_else(|| answer.clone());
        if group.inputs.len() > 1 {
            section.blocks.push(document::Block::Heading(input.heading(number)));
        }
        section.blocks.extend(answer.map(document::Block::Text));
        section.blocks.extend(blocks);
    }
    section
}

/// The machines and the time of the measurements.
fn lead(inputs: &[Input]) -> Vec<String> {
    let mut machines: Vec<String> = inputs.iter().map(|input| tables::machine(input.machine())).collect();
    machines.dedup();
    let starts = || inputs.iter().map(Input::started);
    let (from, to) = (starts().fold(f64::INFINITY, f64::min), starts().fold(f64::NEG_INFINITY, f64::max));
    let (from, to) = (words::date(from), words::date(to));
    let when = match (from.split_once(' '), to.split_once(' ')) {
        _ if from == to => from,
        (Some((day, time)), Some((other, until))) if day == other => {
            format!("{day}, {} to {until}", time.trim_end_matches(" UTC"))
        }
        _ => format!("{from} to {to}"),
    };
    vec![format!("Measured on {}, {when}.", words::list(&machines))]
}

impl Input {
    fn key(&self) -> (&'static str, &str) {
        match self {
            Input::Runs(results) => (tables::experiment(results.experiment), &results.chain.sha256),
            Input::Electrum(results) => (crate::electrum::results::EXPERIMENT, &results.chain.sha256),
        }
    }

    fn machine(&self) -> &crate::results::MachineFacts {
        match self {
            Input::Runs(results) => &results.machine,
            Input::Electrum(results) => &results.machine,
        }
    }

    fn started(&self) -> f64 {
        match self {
            Input::Runs(results) => results.started,
            Input::Electrum(results) => results.started,
        }
    }

    fn heading(&self, number: usize) -> String {
        format!("Measurement {number}, {}", words::date(self.started()))
    }

    fn runs(&self) -> Option<&Results> {
        match self {
            Input::Runs(results) => Some(results),
            Input::Electrum(_) => None,
        }
    }

    /// The names of the systems that are drawn.
    fn names(&self) -> Vec<&str> {
        match self {
            Input::Runs(results) => {
                let drawn = results.summary.iter().filter(|summary| summary.figures.is_some());
                drawn.map(|summary| summary.node.as_str()).collect()
            }
            Input::Electrum(results) => {
                let drawn = results.servers.iter().filter(|server| !server.queries.is_empty());
                drawn.map(|server| server.facts.name.as_str()).collect()
            }
        }
    }
}

/// The assignment of colours to nodes, over the whole page: ours first, then in order of appearance.
#[derive(Clone, Debug)]
struct Colors(Vec<String>);

impl Colors {
    fn of(inputs: &[Input]) -> Colors {
        let mut names = vec!["lydian".to_owned()];
        for name in inputs.iter().flat_map(Input::names) {
            if !names.iter().any(|known| known == name) {
                names.push(name.to_owned());
            }
        }
        Colors(names)
    }

    fn tone(&self, name: &str) -> Tone {
        let index = self.0.iter().position(|known| known == name);
        Tone::Node(index.and_then(|index| u8::try_from(index).ok()).unwrap_or(NODE_TONES))
    }
}
