//! The ranking: for each node a bar of wall time with its CPU time below, and the floor as a line across all.
//!
//! Input: rows, the fastest first. Output: the chart, wide and for phones; every figure is next to its bar. It must
//! never draw a bar for a run that does not count.

use super::super::style::Tone;
use super::super::words;
use super::{Axis, Canvas, Chart, NARROW, Picture, STRONG, Side, TEXT, WIDE, fitted, width_of};
use crate::results::Spread;

/// One node.
#[derive(Clone, Debug)]
pub(in super::super) struct Bar {
    pub(in super::super) name: String,
    pub(in super::super) tone: Tone,
    /// Its version, below the name.
    pub(in super::super) version: String,
    pub(in super::super) figures: Result<BarFigures, String>,
    /// A remark such as `busy machine`, next to the figures.
    pub(in super::super) remark: Option<String>,
}

#[derive(Clone, Debug)]
pub(in super::super) struct BarFigures {
    pub(in super::super) wall: Spread,
    pub(in super::super) cpu: Spread,
    /// Wall time relative to the floor.
    pub(in super::super) floor_ratio: Option<f64>,
}

/// The chart; `floor` is in seconds.
pub(in super::super) fn chart(id: String, title: String, floor: Option<f64>, bars: &[Bar]) -> Chart {
    let description = describe(floor, bars);
    let picture = draw(&WIDE_SHAPE, floor, bars);
    let narrow = Some(draw(&NARROW_SHAPE, floor, bars));
    Chart { id, title, description, picture, narrow }
}

/// The differences between screens.
#[derive(Debug)]
struct Shape {
    width: u32,
    /// Where bars start.
    left: f64,
    /// Space for the figures after the longest bar.
    right: f64,
    row: f64,
    /// From the top of a row to its bars.
    bar_top: f64,
    /// Whether the name is above the bars.
    is_stacked: bool,
    ticks: f64,
}

const WIDE_SHAPE: Shape =
    Shape { width: WIDE, left: 190.0, right: 190.0, row: 62.0, bar_top: 12.0, is_stacked: false, ticks: 6.0 };
const NARROW_SHAPE: Shape =
    Shape { width: NARROW, left: 0.0, right: 92.0, row: 74.0, bar_top: 26.0, is_stacked: true, ticks: 3.0 };
const HEAD: f64 = 30.0;
const FOOT: u32 = 44;

fn draw(shape: &Shape, floor: Option<f64>, bars: &[Bar]) -> Picture {
    let counted = || bars.iter().filter_map(|bar| bar.figures.as_ref().ok());
    let most = counted().map(|figures| figures.wall.max.max(figures.cpu.max)).chain(floor).fold(0.0, f64::max);
    let axis = Axis::linear(most, shape.ticks);
    let rows = bars.iter().fold(HEAD, |sum, _| sum + shape.row);
    let height = bars.iter().fold(30 + FOOT, |sum, _| sum + u32::from(shape.is_stacked) * 12 + 62);
    let span = f64::from(shape.width) - shape.left - shape.right;
    let x_of = |seconds: f64| shape.left + seconds / axis.to * span;
    Canvas::picture(shape.width, height, |canvas| {
        for (value, text) in &axis.ticks {
            let x = x_of(*value);
            canvas.line((x, HEAD), (x, rows), Tone::Grid, 1.0);
            let side = if *value == 0.0 && shape.is_stacked { Side::Left } else { Side::Middle };
            canvas.text((x, rows + 12.0), side, Tone::Muted, text);
        }
        let end = f64::from(shape.width) - shape.right + 24.0;
        canvas.text((end, rows + 12.0), Side::Left, Tone::Muted, "seconds");
        legend(canvas, shape.left, rows + 33.0);
        let tops = || std::iter::successors(Some(HEAD), |top| Some(top + shape.row));
        for (bar, top) in bars.iter().zip(tops()) {
            if let Ok(figures) = &bar.figures {
                bars_of(canvas, top + shape.bar_top, bar.tone, figures, &x_of);
            }
        }
        // Above the bars and below all text.
        if let Some(seconds) = floor {
            floor_line(canvas, shape, x_of(seconds), rows, seconds);
        }
        for (bar, top) in bars.iter().zip(tops()) {
            name(canvas, shape, top, bar);
            match &bar.figures {
                Ok(figures) => figures_of(canvas, shape, top + shape.bar_top, bar, figures, &x_of),
                Err(reason) => {
                    let width = f64::from(shape.width) - shape.left - 8.0;
                    let at = (shape.left + 6.0, top + shape.bar_top + 10.0);
                    canvas.text(at, Side::Left, Tone::Bad, &fitted(reason, TEXT, width));
                }
            }
        }
    })
}

fn name(canvas: &Canvas<'_>, shape: &Shape, top: f64, bar: &Bar) {
    if shape.is_stacked {
        canvas.strong((0.0, top + 13.0), Side::Left, Tone::Ink, &fitted(&bar.name, STRONG * 1.08, 190.0));
        let version = fitted(&bar.version, TEXT, 140.0);
        canvas.text((f64::from(shape.width), top + 13.0), Side::Right, Tone::Muted, &version);
    } else {
        let x = shape.left - 12.0;
        canvas.strong((x, top + 21.0), Side::Right, Tone::Ink, &fitted(&bar.name, STRONG * 1.08, x));
        canvas.text((x, top + 40.0), Side::Right, Tone::Muted, &fitted(&bar.version, TEXT, x));
    }
}

/// Draws both bars and their whiskers.
fn bars_of(canvas: &Canvas<'_>, top: f64, tone: Tone, figures: &BarFigures, x_of: &impl Fn(f64) -> f64) {
    let (wall, cpu) = (&figures.wall, &figures.cpu);
    canvas.bar((x_of(0.0), top), (x_of(wall.median).max(x_of(0.0) + 1.0), top + 18.0), tone, 1.0);
    canvas.bar((x_of(0.0), top + 22.0), (x_of(cpu.median).max(x_of(0.0) + 1.0), top + 30.0), tone, 0.45);
    for (spread, y) in [(wall, top + 9.0), (cpu, top + 26.0)] {
        if x_of(spread.max) - x_of(spread.min) >= 3.0 {
            canvas.line((x_of(spread.min), y), (x_of(spread.max), y), Tone::Ink, 1.5);
            canvas.line((x_of(spread.min), y - 4.0), (x_of(spread.min), y + 4.0), Tone::Ink, 1.5);
            canvas.line((x_of(spread.max), y - 4.0), (x_of(spread.max), y + 4.0), Tone::Ink, 1.5);
        }
    }
}

fn figures_of(
    canvas: &Canvas<'_>,
    shape: &Shape,
    top: f64,
    bar: &Bar,
    figures: &BarFigures,
    x_of: &impl Fn(f64) -> f64,
) {
    let (wall, cpu) = (&figures.wall, &figures.cpu);
    let time = words::seconds(wall.median);
    let x = x_of(wall.max) + 8.0;
    canvas.strong((x, top + 9.0), Side::Left, Tone::Ink, &time);
    let ratio = figures.floor_ratio.map(|ratio| format!("{} × floor", words::times(ratio)));
    let remark = bar.remark.clone();
    let room = f64::from(shape.width) - x - width_of(&time, STRONG * 1.08) - 8.0;
    let behind: Vec<String> =
        if shape.is_stacked { remark.into_iter().collect() } else { ratio.into_iter().chain(remark).collect() };
    let behind = behind.join(", ");
    if width_of(&behind, TEXT) <= room {
        canvas.text((x + width_of(&time, STRONG * 1.08) + 8.0, top + 9.0), Side::Left, Tone::Muted, &behind);
    }
    canvas.text(
        (x_of(cpu.max) + 8.0, top + 26.0),
        Side::Left,
        Tone::Muted,
        &format!("{} CPU", words::seconds(cpu.median)),
    );
}

fn floor_line(canvas: &Canvas<'_>, shape: &Shape, x: f64, bottom: f64, seconds: f64) {
    canvas.line((x, HEAD - 8.0), (x, bottom), Tone::Floor, 2.0);
    let text = format!("floor {}", words::seconds(seconds));
    let half = width_of(&text, STRONG * 1.08) / 2.0;
    let x = x.clamp(half, f64::from(shape.width) - half);
    canvas.strong((x, HEAD - 18.0), Side::Middle, Tone::Floor, &text);
}

/// Explains the two bars, in a neutral colour.
fn legend(canvas: &Canvas<'_>, left: f64, y: f64) {
    canvas.bar((left, y - 6.0), (left + 16.0, y + 6.0), Tone::Muted, 1.0);
    canvas.text((left + 22.0, y), Side::Left, Tone::Muted, "wall time");
    let next = left + 40.0 + width_of("wall time", TEXT);
    canvas.bar((next, y - 4.0), (next + 16.0, y + 4.0), Tone::Muted, 0.45);
    canvas.text((next + 22.0, y), Side::Left, Tone::Muted, "CPU, all cores");
}

fn describe(floor: Option<f64>, bars: &[Bar]) -> String {
    let of = |bar: &Bar| match &bar.figures {
        Ok(figures) => format!(
            "{}: {} of wall time ({} to {}), {} of CPU time",
            bar.name,
            words::seconds(figures.wall.median),
            words::seconds(figures.wall.min),
            words::seconds(figures.wall.max),
            words::seconds(figures.cpu.median)
        ),
        Err(reason) => format!("{}: {reason}", bar.name),
    };
    let floor = floor.map(|seconds| format!("Floor: {}.", words::seconds(seconds)));
    let bars: Vec<String> = bars.iter().map(of).collect();
    format!("Bars, the fastest first. {}. {}", bars.join("; "), floor.unwrap_or_default()).trim_end().to_owned()
}
