//! Line charts over time or another number: one line per node.
//!
//! Input: points in the order of x. Output: one chart, small enough for a phone. Invariant: x and y start at 0, or at a
//! power of ten if the axis is logarithmic. Cost: about [`POINTS_MAX`] points per line are drawn, the highest of each
//! step.

use super::super::style::Tone;
use super::{Axis, Canvas, Chart, Picture, SMALL, Side, TEXT, legend_height, pixels_of, width_of};
use plotters::coord::types::RangedCoordf64;
use plotters::prelude::Color;
use plotters::prelude::{Cartesian2d, CoordTranslate, IntoLogRange, LogCoord, PathElement};

/// The most points of one line: more than there are pixels would not be visible.
const POINTS_MAX: usize = 400;

#[derive(Clone, Debug)]
pub(in super::super) struct Line {
    pub(in super::super) name: String,
    pub(in super::super) tone: Tone,
    pub(in super::super) points: Vec<(f64, f64)>,
}

/// The axes of a chart.
#[derive(Clone, Copy, Debug)]
pub(in super::super) struct Axes {
    /// The unit, such as `seconds`.
    pub(in super::super) x: &'static str,
    /// The unit, such as `MB`.
    pub(in super::super) y: &'static str,
    pub(in super::super) is_x_log: bool,
    pub(in super::super) are_dots: bool,
}

/// `None` if no line has two points.
pub(in super::super) fn chart(id: String, title: String, axes: Axes, lines: &[Line]) -> Option<Chart> {
    let lines: Vec<&Line> = lines.iter().filter(|line| line.points.len() > 1).collect();
    if lines.is_empty() {
        return None;
    }
    let of = |line: &&Line| {
        let most = line.points.iter().map(|point| point.1).fold(0.0, f64::max);
        let end = line.points.last().map_or(0.0, |point| point.0);
        format!("{}: up to {most:.1} {}, until {end:.1} {}", line.name, axes.y, axes.x)
    };
    let description = format!("Lines. {}.", lines.iter().map(of).collect::<Vec<_>>().join("; "));
    let picture = draw(axes, &lines);
    Some(Chart { id, title, description, picture, narrow: None })
}

const PLOT: u32 = 190;
const FOOT: u32 = 40;

fn draw(axes: Axes, lines: &[&Line]) -> Picture {
    let points = || lines.iter().flat_map(|line| line.points.iter());
    let full = f64::from(SMALL);
    let most = |of: fn(&(f64, f64)) -> f64| points().map(of).fold(0.0, f64::max);
    let y_axis = Axis::linear(most(|point| point.1), 4.0);
    let x_axis = if axes.is_x_log {
        Axis::logarithmic(points().map(|point| point.0).fold(f64::INFINITY, f64::min), most(|point| point.0))
    } else {
        Axis::linear(most(|point| point.0), 5.0)
    };
    let left = y_axis.ticks.iter().map(|(_, text)| width_of(text, TEXT)).fold(0.0, f64::max) + 8.0;
    let entries: Vec<_> = lines.iter().map(|line| (line.name.clone(), line.tone)).collect();
    let legend = legend_height(full, &entries);
    let top = legend + 26.0;
    let bottom = top + f64::from(PLOT);
    let height = (1..=1_000).find(|height| f64::from(*height) >= top).unwrap_or(0) + PLOT + FOOT;
    let right = full - 14.0;
    Canvas::picture(SMALL, height, |canvas| {
        canvas.legend(0.0, 0.0, full, &entries);
        canvas.text((0.0, legend + 12.0), Side::Left, Tone::Muted, axes.y);
        let frame = Frame { left, right, top, bottom };
        if axes.is_x_log {
            let system = Cartesian2d::<LogCoord<f64>, RangedCoordf64>::new(
                (x_axis.from..x_axis.to).log_scale(),
                y_axis.from..y_axis.to,
                frame.units(),
            );
            paint(canvas, &frame, axes, (&x_axis, &y_axis), lines, system);
        } else {
            let system = Cartesian2d::<RangedCoordf64, RangedCoordf64>::new(
                x_axis.from..x_axis.to,
                y_axis.from..y_axis.to,
                frame.units(),
            );
            paint(canvas, &frame, axes, (&x_axis, &y_axis), lines, system);
        }
    })
}

/// The area for the data, in pixels.
#[derive(Clone, Copy, Debug)]
pub(super) struct Frame {
    pub(super) left: f64,
    pub(super) right: f64,
    pub(super) top: f64,
    pub(super) bottom: f64,
}

impl Frame {
    /// The area in the units of plotters: y grows downwards on the surface.
    pub(super) fn units(&self) -> (std::ops::Range<i32>, std::ops::Range<i32>) {
        let of = |pixels: f64| (0..20_000).find(|units| f64::from(*units) >= pixels * 10.0 - 0.001).unwrap_or(0);
        (of(self.left)..of(self.right), of(self.bottom)..of(self.top))
    }
}

/// Draws the grid, and the ticks and names of the axes.
pub(super) fn grid<C>(canvas: &Canvas<'_>, frame: &Frame, name: &str, axes: (&Axis, &Axis), system: &C)
where
    C: CoordTranslate<From = (f64, f64)>,
{
    let (x_axis, y_axis) = axes;
    for (value, text) in &y_axis.ticks {
        let (_, y) = pixels_of(system.translate(&(x_axis.from, *value)));
        canvas.line((frame.left, y), (frame.right, y), Tone::Grid, 1.0);
        canvas.text((frame.left - 6.0, y), Side::Right, Tone::Muted, text);
    }
    for (value, text) in &x_axis.ticks {
        let (x, _) = pixels_of(system.translate(&(*value, y_axis.from)));
        canvas.line((x, frame.bottom), (x, frame.bottom + 4.0), Tone::Muted, 1.0);
        let half = width_of(text, TEXT) / 2.0;
        canvas.text((x.min(frame.right + 14.0 - half), frame.bottom + 14.0), Side::Middle, Tone::Muted, text);
    }
    canvas.text(((frame.left + frame.right) / 2.0, frame.bottom + 31.0), Side::Middle, Tone::Muted, name);
}

fn paint<C>(canvas: &Canvas<'_>, frame: &Frame, axes: Axes, both: (&Axis, &Axis), lines: &[&Line], system: C)
where
    C: CoordTranslate<From = (f64, f64)>,
{
    let area = canvas.system(system);
    grid(canvas, frame, axes.x, both, area.as_coord_spec());
    for line in lines {
        let thinned = thinned(&line.points);
        super::put(&area, &PathElement::new(thinned.clone(), super::svg::color_of(line.tone).stroke_width(20)));
        let dots: &[(f64, f64)] =
            if axes.are_dots { &thinned } else { thinned.last().map_or(&[], std::slice::from_ref) };
        for point in dots {
            canvas.dot(pixels_of(area.map_coordinate(point)), 3.5, line.tone, 1.0);
        }
    }
}

/// The highest point of each step, and the last point.
fn thinned(points: &[(f64, f64)]) -> Vec<(f64, f64)> {
    let step = points.len().div_ceil(POINTS_MAX).max(1);
    let highest = |chunk: &[(f64, f64)]| chunk.iter().copied().max_by(|one, other| one.1.total_cmp(&other.1));
    let mut kept: Vec<_> = points.chunks(step).filter_map(highest).collect();
    if step > 1 {
        kept.extend(points.last());
    }
    kept
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn long_lines_are_thinned_and_keep_their_peak_and_end() {
        let mut points: Vec<_> = (0..10_000).map(|index| (f64::from(index), 1.0)).collect();
        points[4_321].1 = 9.0;
        let kept = thinned(&points);
        assert!(kept.len() <= POINTS_MAX + 1);
        assert!(kept.contains(&(4_321.0, 9.0)) && kept.last() == Some(&(9_999.0, 1.0)));
        assert_eq!(thinned(&points[..3]), points[..3]);
    }
}
