//! Casa's charts: the time of a query against the size of its script, one dot per script, both axes logarithmic.
//!
//! Input: dots of each server. Output: one chart, small enough for a phone. A script with a count of 0 is drawn left of
//! 1, at a tick of its own.

use super::super::style::Tone;
use super::lines::{Frame, grid};
use super::{Axis, Canvas, Chart, Picture, SMALL, Side, TEXT, legend_height, width_of};
use plotters::prelude::{Cartesian2d, Circle, Color, IntoLogRange, LogCoord};

/// Represents 0 on a logarithmic axis.
const NOTHING: f64 = 0.5;

#[derive(Clone, Debug)]
pub(in super::super) struct Dots {
    pub(in super::super) name: String,
    pub(in super::super) tone: Tone,
    /// Count, milliseconds.
    pub(in super::super) points: Vec<(f64, f64)>,
}

/// `None` if there are no dots. `x` is the name of the count, such as `transactions`.
pub(in super::super) fn chart(id: String, title: String, x: &str, servers: &[Dots]) -> Option<Chart> {
    let servers: Vec<&Dots> = servers.iter().filter(|dots| !dots.points.is_empty()).collect();
    if servers.is_empty() {
        return None;
    }
    let of = |dots: &&Dots| {
        let times = || dots.points.iter().map(|point| point.1);
        let (least, most) = (times().fold(f64::INFINITY, f64::min), times().fold(0.0, f64::max));
        format!("{}: {} scripts, {least:.2} to {most:.2} ms", dots.name, dots.points.len())
    };
    let description = format!(
        "Scatter chart, milliseconds against {x}, both logarithmic. {}.",
        servers.iter().map(of).collect::<Vec<_>>().join("; ")
    );
    let picture = draw(x, &servers);
    Some(Chart { id, title, description, picture, narrow: None })
}

const PLOT: u32 = 250;
const FOOT: u32 = 40;

fn draw(name: &str, servers: &[&Dots]) -> Picture {
    let points = || servers.iter().flat_map(|dots| dots.points.iter());
    let full = f64::from(SMALL);
    let times = || points().map(|point| point.1).filter(|time| *time > 0.0);
    let y_axis = Axis::logarithmic(times().fold(f64::INFINITY, f64::min).min(1e6), times().fold(1e-3, f64::max));
    let counts = || points().map(|point| point.0);
    let mut x_axis = Axis::logarithmic(
        counts().filter(|x| *x > 0.0).fold(f64::INFINITY, f64::min).min(1e9),
        counts().fold(1.0, f64::max),
    );
    if counts().any(|x| x <= 0.0) {
        x_axis.from = x_axis.from.min(NOTHING);
        x_axis.ticks.insert(0, (NOTHING, "0".into()));
    }
    let entries: Vec<_> = servers.iter().map(|dots| (dots.name.clone(), dots.tone)).collect();
    let legend = legend_height(full, &entries);
    let left = y_axis.ticks.iter().map(|(_, text)| width_of(text, TEXT)).fold(0.0, f64::max) + 8.0;
    let top = legend + 26.0;
    let frame = Frame { left, right: full - 20.0, top, bottom: top + f64::from(PLOT) };
    let height = (1..=1_000).find(|height| f64::from(*height) >= top).unwrap_or(0) + PLOT + FOOT;
    Canvas::picture(SMALL, height, |canvas| {
        canvas.legend(0.0, 0.0, full, &entries);
        canvas.text((0.0, legend + 12.0), Side::Left, Tone::Muted, "ms");
        let system = Cartesian2d::<LogCoord<f64>, LogCoord<f64>>::new(
            (x_axis.from..x_axis.to).log_scale(),
            (y_axis.from..y_axis.to).log_scale(),
            frame.units(),
        );
        let area = canvas.system(system);
        grid(canvas, &frame, name, (&x_axis, &y_axis), area.as_coord_spec());
        for dots in servers {
            let style = super::svg::color_of(dots.tone).mix(0.6).filled();
            for (x, y) in &dots.points {
                super::put(&area, &Circle::new((x.max(NOTHING), y.max(y_axis.from)), 16, style));
            }
        }
    })
}
