//! Chart of the hours of a whole sync: one bar per system, with bounds if there are any, and the stated floor as a
//! line.
//!
//! Input: rows, the fastest first. Output: one chart, small enough for a phone. Invariant: bars of figures that were
//! not measured are hollow, and their labels say so.

use super::super::style::Tone;
use super::{Axis, Canvas, Chart, Picture, SMALL, STRONG, Side, TEXT, fitted, width_of};

/// One system.
#[derive(Clone, Debug)]
pub(in super::super) struct Hours {
    pub(in super::super) name: String,
    pub(in super::super) tone: Tone,
    pub(in super::super) hours: f64,
    /// Minimum and maximum.
    pub(in super::super) bounds: Option<(f64, f64)>,
    pub(in super::super) is_measured: bool,
    /// Shown after the hours.
    pub(in super::super) remark: String,
}

/// `floor` is in hours.
pub(in super::super) fn chart(id: String, title: String, floor: Option<f64>, rows: &[Hours]) -> Chart {
    let parts: Vec<String> = rows.iter().map(|row| format!("{}: {}", row.name, words_of(row))).collect();
    let floor_words = floor.map(|hours| format!(" Floor: {hours} h.")).unwrap_or_default();
    let description = format!("Bars of hours. {}.{floor_words}", parts.join("; "));
    Chart { id, title, description, picture: draw(floor, rows), narrow: None }
}

const ROW: u32 = 46;
/// Heights with and without a label for the floor.
const HEADS: (u32, u32) = (30, 6);
const FOOT: u32 = 30;
/// Space for the label after the longest bar.
const RIGHT: f64 = 150.0;

fn words_of(row: &Hours) -> String {
    let remark = if row.remark.is_empty() { String::new() } else { format!(" {}", row.remark) };
    format!("{:.1}\u{a0}h{remark}", row.hours)
}

fn draw(floor: Option<f64>, rows: &[Hours]) -> Picture {
    let most = rows.iter().map(|row| row.bounds.map_or(row.hours, |bounds| bounds.1)).chain(floor).fold(0.0, f64::max);
    let head = if floor.is_some() { HEADS.0 } else { HEADS.1 };
    let axis = Axis::linear(most, 3.0);
    let span = f64::from(SMALL) - RIGHT;
    let x_of = |hours: f64| hours / axis.to * span;
    let height = rows.iter().fold(head, |sum, _| sum + ROW);
    let bottom = f64::from(height);
    Canvas::picture(SMALL, height + FOOT, |canvas| {
        for (value, text) in &axis.ticks {
            canvas.line((x_of(*value), f64::from(head)), (x_of(*value), bottom), Tone::Grid, 1.0);
            let side = if *value == 0.0 { Side::Left } else { Side::Middle };
            canvas.text((x_of(*value), bottom + 12.0), side, Tone::Muted, text);
        }
        canvas.text((span + 24.0, bottom + 12.0), Side::Left, Tone::Muted, "hours");
        let tops = || std::iter::successors(Some(f64::from(head)), |top| Some(top + f64::from(ROW)));
        for (row, top) in rows.iter().zip(tops()) {
            let end = x_of(row.hours).max(1.0);
            canvas.bar((0.0, top + 22.0), (end, top + 38.0), row.tone, if row.is_measured { 1.0 } else { 0.25 });
            if !row.is_measured {
                let corners = [(0.0, 22.0), (end, 22.0), (end, 38.0), (0.0, 38.0), (0.0, 22.0)];
                canvas.path(corners.map(|(x, y)| (x, top + y)).to_vec(), row.tone, 1.5);
            }
            if let Some((low, high)) = row.bounds {
                canvas.line((x_of(low), top + 30.0), (x_of(high), top + 30.0), Tone::Ink, 1.5);
                for x in [low, high].map(x_of) {
                    canvas.line((x, top + 26.0), (x, top + 34.0), Tone::Ink, 1.5);
                }
            }
        }
        if let Some(hours) = floor {
            let text = format!("floor {hours}\u{a0}h");
            let half = width_of(&text, STRONG * 1.08) / 2.0;
            canvas.line((x_of(hours), f64::from(head) - 10.0), (x_of(hours), bottom), Tone::Floor, 2.0);
            canvas.strong((x_of(hours).max(half), 11.0), Side::Middle, Tone::Floor, &text);
        }
        for (row, top) in rows.iter().zip(tops()) {
            canvas.strong((0.0, top + 12.0), Side::Left, Tone::Ink, &fitted(&row.name, STRONG * 1.08, 260.0));
            let end = row.bounds.map_or(row.hours, |bounds| bounds.1.max(row.hours));
            let x = x_of(end) + 8.0;
            canvas.text((x, top + 30.0), Side::Left, Tone::Ink, &fitted(&words_of(row), TEXT, f64::from(SMALL) - x));
        }
    })
}
