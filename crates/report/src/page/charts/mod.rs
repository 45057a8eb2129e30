//! The charts of the report, drawn by `plotters` onto [`svg::Svg`].
//!
//! Input: figures. Output: [`Chart`]s with a title and a description in words, in one shape or in two (wide screens and
//! phones). Invariants: every text is inside its picture with the widest font that a reader is likely to have; text is
//! at least 9 pixels high in a picture as wide as a phone, which `tests/report_browser.rs` measures. It must never
//! distinguish nodes only by colour if there is room for words.

pub(super) mod hours;
pub(super) mod lines;
pub(super) mod ranking;
pub(super) mod scatter;
pub(super) mod stages;
mod svg;

use super::style::{self, Tone};
use super::words::escape;
use plotters::coord::Shift;
use plotters::coord::types::RangedCoordf64;
use plotters::element::{Drawable, PointCollection};
use plotters::prelude::{
    Cartesian2d, Circle, Color, CoordTranslate, DrawingArea, FontStyle, IntoDrawingArea, PathElement, Rectangle, Text,
};
use plotters::style::text_anchor::{HPos, Pos, VPos};
use plotters::style::{FontDesc, FontFamily};
use plotters_backend::BackendCoord;
use svg::{Svg, UNITS, color_of};

/// Size of text in every chart, in pixels.
pub(super) const TEXT: f64 = 12.0;
pub(super) const STRONG: f64 = 13.0;
/// The width of a phone's screen without its margins.
pub(super) const NARROW: u32 = 340;
pub(super) const WIDE: u32 = 880;
/// The width of charts shown side by side.
pub(super) const SMALL: u32 = 420;

/// One chart of the report.
#[derive(Clone, Debug)]
pub(super) struct Chart {
    /// The anchor within the page, and the name of its file.
    pub(super) id: String,
    pub(super) title: String,
    /// A description of the content, for readers who cannot see it.
    pub(super) description: String,
    pub(super) picture: Picture,
    /// The picture for phones; `None` if the other one is small enough.
    pub(super) narrow: Option<Picture>,
}

/// The elements of an SVG and the size of their surface.
#[derive(Clone, Debug)]
pub(super) struct Picture {
    pub(super) width: u32,
    pub(super) height: u32,
    body: String,
}

impl Chart {
    /// The SVG for a page that has the style sheet.
    pub(super) fn inline(&self) -> String {
        let narrow = self.narrow.as_ref().map(|picture| self.element(picture, "narrow", "-n"));
        let class = if narrow.is_some() { "wide" } else { "any" };
        self.element(&self.picture, class, "") + &narrow.unwrap_or_default()
    }

    /// The SVG for a file of its own.
    pub(super) fn file(&self) -> String {
        let Picture { width, height, body } = &self.picture;
        format!(
            "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"-12 -12 {} {}\" width=\"{}\" height=\"{}\" role=\"img\">\n\
             <title>{}</title>\n<desc>{}</desc>\n<style>{}</style>\n\
             <rect class=\"f-surface\" x=\"-12\" y=\"-12\" width=\"100%\" height=\"100%\"/>\n{body}</svg>\n",
            width + 24,
            height + 24,
            width + 24,
            height + 24,
            escape(&self.title),
            escape(&self.description),
            style::chart_sheet()
        )
    }

    fn element(&self, picture: &Picture, class: &str, suffix: &str) -> String {
        let id = format!("{}{suffix}", self.id);
        format!(
            "<svg class=\"{class}\" viewBox=\"0 0 {} {}\" role=\"img\" aria-labelledby=\"{id}-t {id}-d\">\n\
             <title id=\"{id}-t\">{}</title>\n<desc id=\"{id}-d\">{}</desc>\n{}</svg>\n",
            picture.width,
            picture.height,
            escape(&self.title),
            escape(&self.description),
            picture.body
        )
    }
}

/// The side of a text on which its point is.
#[derive(Clone, Copy, Debug)]
pub(super) enum Side {
    Left,
    Middle,
    Right,
}

/// A surface with pixels as coordinates.
pub(super) struct Canvas<'a> {
    root: DrawingArea<Svg<'a>, Shift>,
    area: DrawingArea<Svg<'a>, Cartesian2d<RangedCoordf64, RangedCoordf64>>,
}

impl<'a> Canvas<'a> {
    /// Draws a picture.
    pub(super) fn picture(width: u32, height: u32, draw: impl FnOnce(&Canvas<'_>)) -> Picture {
        let mut body = String::new();
        let root = Svg::new(width, height, &mut body).into_drawing_area();
        let units = |pixels: u32| i32::try_from(pixels).unwrap_or(i32::MAX / UNITS) * UNITS;
        let pixels = Cartesian2d::<RangedCoordf64, RangedCoordf64>::new(
            0.0..f64::from(width),
            0.0..f64::from(height),
            (0..units(width), 0..units(height)),
        );
        draw(&Canvas { area: root.apply_coord_spec(pixels), root });
        Picture { width, height, body }
    }

    pub(super) fn text(&self, at: (f64, f64), side: Side, tone: Tone, text: &str) {
        self.label(at, side, tone, TEXT, FontStyle::Normal, text);
    }

    pub(super) fn strong(&self, at: (f64, f64), side: Side, tone: Tone, text: &str) {
        self.label(at, side, tone, STRONG, FontStyle::Bold, text);
    }

    /// Draws a text centred vertically on the point.
    fn label(&self, at: (f64, f64), side: Side, tone: Tone, size: f64, style: FontStyle, text: &str) {
        let h_pos = match side {
            Side::Left => HPos::Left,
            Side::Middle => HPos::Center,
            Side::Right => HPos::Right,
        };
        let font = FontDesc::new(FontFamily::SansSerif, size, style);
        let style = font.color(&color_of(tone)).pos(Pos::new(h_pos, VPos::Center));
        put(&self.area, &Text::new(text.to_owned(), at, style));
    }

    pub(super) fn line(&self, from: (f64, f64), to: (f64, f64), tone: Tone, width: f64) {
        self.path(vec![from, to], tone, width);
    }

    pub(super) fn path(&self, points: Vec<(f64, f64)>, tone: Tone, width: f64) {
        put(&self.area, &PathElement::new(points, color_of(tone).stroke_width(tenths(width))));
    }

    pub(super) fn bar(&self, from: (f64, f64), to: (f64, f64), tone: Tone, opacity: f64) {
        put(&self.area, &Rectangle::new([from, to], color_of(tone).mix(opacity).filled()));
    }

    pub(super) fn dot(&self, at: (f64, f64), radius: f64, tone: Tone, opacity: f64) {
        put(&self.area, &Circle::new(at, tenths(radius), color_of(tone).mix(opacity).filled()));
    }

    /// Draws names with their colours in rows from `top` on; returns where they end. See [`legend_height`] for the
    /// height in advance.
    pub(super) fn legend(&self, left: f64, top: f64, width: f64, entries: &[(String, Tone)]) -> f64 {
        let mut y = top + LEGEND_ROW / 2.0;
        for row in legend_rows(width, entries) {
            let mut x = left;
            for (name, tone) in row {
                self.bar((x, y - 5.0), (x + 10.0, y + 5.0), *tone, 1.0);
                self.text((x + 15.0, y), Side::Left, Tone::Ink, name);
                x += legend_width(name);
            }
            y += LEGEND_ROW;
        }
        y - LEGEND_ROW / 2.0
    }

    /// A coordinate system of plotters for the data, within the given pixels.
    fn system<C: CoordTranslate>(&self, coordinates: C) -> DrawingArea<Svg<'a>, C> {
        self.root.apply_coord_spec(coordinates)
    }
}

/// Draws an element; drawing into a string cannot fail.
fn put<'b, 'a, C, E>(area: &DrawingArea<Svg<'b>, C>, element: &'a E)
where
    C: CoordTranslate,
    &'a E: PointCollection<'a, C::From>,
    E: Drawable<Svg<'b>>,
{
    let _ = area.draw(element);
}

const LEGEND_ROW: f64 = 20.0;

fn legend_width(name: &str) -> f64 {
    width_of(name, TEXT) + 32.0
}

fn legend_rows(width: f64, entries: &[(String, Tone)]) -> Vec<&[(String, Tone)]> {
    let (mut rows, mut start, mut used) = (Vec::new(), 0, 0.0);
    for (index, (name, _)) in entries.iter().enumerate() {
        if index > start && used + legend_width(name) > width + 16.0 {
            rows.extend(entries.get(start..index));
            (start, used) = (index, 0.0);
        }
        used += legend_width(name);
    }
    rows.extend(entries.get(start..).filter(|rest| !rest.is_empty()));
    rows
}

pub(super) fn legend_height(width: f64, entries: &[(String, Tone)]) -> f64 {
    legend_rows(width, entries).iter().fold(0.0, |sum, _| sum + LEGEND_ROW)
}

/// Width of a stroke or radius in tenths of a pixel.
fn tenths(pixels: f64) -> u32 {
    (1..=400).find(|step| f64::from(*step) >= pixels * f64::from(UNITS) - 0.001).unwrap_or(400)
}

/// Upper bound of a text's width in pixels: that in DejaVu Sans, the widest font of the style sheet.
pub(super) fn width_of(text: &str, size: f64) -> f64 {
    let em: f64 = text
        .chars()
        .map(|c| match c {
            'i' | 'l' | 'j' | '\'' | '|' | 'I' => 0.29,
            '.' | ',' | ':' | ';' | ' ' | '!' | '\u{a0}' => 0.33,
            'f' | 't' | 'r' | '-' | '(' | ')' | '/' | '[' | ']' | 's' => 0.46,
            'm' | 'w' | 'M' | 'W' | '@' | '%' | '…' | '×' => 1.0,
            'A'..='Z' => 0.72,
            c if c.is_ascii() => 0.64,
            _ => 1.0,
        })
        .sum();
    em * size
}

/// The text, or its beginning and an ellipsis.
pub(super) fn fitted(text: &str, size: f64, width: f64) -> String {
    if width_of(text, size) <= width {
        return text.to_owned();
    }
    let mut short: String = text.to_owned();
    while short.pop().is_some() && width_of(&short, size) + size > width {}
    format!("{}…", short.trim_end())
}

/// An axis: the positions and labels of its ticks.
#[derive(Clone, Debug)]
pub(super) struct Axis {
    pub(super) from: f64,
    pub(super) to: f64,
    pub(super) ticks: Vec<(f64, String)>,
}

impl Axis {
    /// An axis from 0 to a round number at or above `most`, with about `count` steps of 1, 2 or 5.
    pub(super) fn linear(most: f64, count: f64) -> Axis {
        let most = if most.is_finite() && most > 0.0 { most } else { 1.0 };
        let rough = most / count;
        let power = 10f64.powf(rough.log10().floor());
        let factor = [1.0, 2.0, 5.0].into_iter().find(|factor| factor * power >= rough * 0.999).unwrap_or(10.0);
        let step = factor * power;
        let mut ticks = Vec::new();
        let mut at = 0.0;
        while ticks.len() < 40 {
            ticks.push((at, number(at, step)));
            if at >= most * 0.999 {
                break;
            }
            at += step;
        }
        Axis { from: 0.0, to: at, ticks }
    }

    /// An axis of the powers of ten around the values, all above 0.
    pub(super) fn logarithmic(least: f64, most: f64) -> Axis {
        let power = |value: f64| value.max(1e-9).log10();
        let from = (power(least) + 1e-9).floor();
        let to = (power(most) - 1e-9).ceil().max(from + 1.0);
        let mut ticks = Vec::new();
        let mut at = from;
        while at <= to + 0.5 && ticks.len() < 40 {
            let value = 10f64.powf(at);
            ticks.push((value, number(value, value)));
            at += 1.0;
        }
        Axis { from: 10f64.powf(from), to: 10f64.powf(to), ticks }
    }
}

/// Formats a number with the precision of a step.
fn number(value: f64, step: f64) -> String {
    match step {
        step if step >= 1.0 => super::words::whole(value),
        step if step >= 0.1 => format!("{value:.1}"),
        step if step >= 0.01 => format!("{value:.2}"),
        _ => format!("{value:.3}"),
    }
}

/// The pixels of a point of plotters.
fn pixels_of((x, y): BackendCoord) -> (f64, f64) {
    (f64::from(x) / f64::from(UNITS), f64::from(y) / f64::from(UNITS))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn labels(axis: &Axis) -> Vec<&str> {
        axis.ticks.iter().map(|(_, text)| text.as_str()).collect()
    }

    #[test]
    fn axes_have_round_marks() {
        assert_eq!(labels(&Axis::linear(14.1, 4.0)), ["0", "5", "10", "15"]);
        assert_eq!(labels(&Axis::linear(0.23, 4.0)), ["0.0", "0.1", "0.2", "0.3"]);
        assert_eq!(labels(&Axis::linear(2_000.0, 4.0)), ["0", "500", "1,000", "1,500", "2,000"]);
        assert_eq!(labels(&Axis::linear(0.0, 4.0)).first(), Some(&"0.0"));
        assert_eq!(labels(&Axis::logarithmic(0.2, 480.0)), ["0.1", "1", "10", "100", "1,000"]);
        assert_eq!(labels(&Axis::logarithmic(1.0, 1.0)), ["1", "10"]);
    }

    #[test]
    fn texts_that_are_too_long_end_in_an_ellipsis() {
        assert_eq!(fitted("Lydian", 12.0, 100.0), "Lydian");
        let short = fitted("Bitcoin Core (from-lydian)", 12.0, 100.0);
        assert!(short.ends_with('…') && width_of(&short, 12.0) <= 100.0, "{short}");
    }

    #[test]
    fn legends_break_into_rows() {
        let entries: Vec<_> = (0..5).map(|index| ("Bitcoin Core".to_owned(), Tone::Node(index))).collect();
        assert_eq!(legend_rows(400.0, &entries).iter().map(|row| row.len()).collect::<Vec<_>>(), [3, 2]);
        assert_eq!(legend_rows(10.0, &entries).len(), 5);
        assert!(legend_rows(400.0, &[]).is_empty());
    }
}
