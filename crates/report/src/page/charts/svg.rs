//! A backend for `plotters` that writes SVG with classes instead of colours, so that one drawing serves light and dark
//! pages.
//!
//! Input: plotters' drawing calls, in tenths of a pixel, with colours that are [`Tone`]s. Output: the elements of an
//! SVG, without the enclosing `svg` element. Invariants: all text in the output is escaped; consecutive dots of one
//! tone become one path, those at the same place one dot. Cost: about 10 bytes per dot. It must never fail, since it
//! writes into a string.

use super::super::style::Tone;
use super::super::words::escape;
use plotters::prelude::RGBColor;
use plotters_backend::text_anchor::{HPos, VPos};
use plotters_backend::{BackendColor, BackendCoord, BackendStyle, BackendTextStyle, DrawingBackend, DrawingErrorKind};
use std::collections::HashSet;
use std::convert::Infallible;
use std::fmt::Write;

/// Units per pixel: plotters' coordinates are integers, and lines need finer ones.
pub(super) const UNITS: i32 = 10;

type Drawn = Result<(), DrawingErrorKind<Infallible>>;

/// The backend; pending output is written when it is dropped.
#[derive(Debug)]
pub(super) struct Svg<'a> {
    size: (u32, u32),
    out: &'a mut String,
    dots: Option<Dots>,
}

/// Dots not written yet.
#[derive(Debug)]
struct Dots {
    tone: Tone,
    radius: u32,
    opacity: f64,
    seen: HashSet<BackendCoord>,
    path: String,
}

impl<'a> Svg<'a> {
    /// `width` and `height` in pixels.
    pub(super) fn new(width: u32, height: u32, out: &'a mut String) -> Svg<'a> {
        let units = UNITS.unsigned_abs();
        Svg { size: (width * units, height * units), out, dots: None }
    }

    fn element(&mut self, text: std::fmt::Arguments<'_>) -> Drawn {
        self.flush();
        // Writing into a string cannot fail.
        let _ = self.out.write_fmt(text);
        self.out.push('\n');
        Ok(())
    }

    fn flush(&mut self) {
        let Some(dots) = self.dots.take() else { return };
        let width = pixels(i64::from(dots.radius) * 2);
        let _ = writeln!(
            self.out,
            r#"<path class="s-{} dots" stroke-width="{width}"{} d="{}"/>"#,
            dots.tone.class(),
            opacity(dots.opacity),
            dots.path
        );
    }
}

impl Drop for Svg<'_> {
    fn drop(&mut self) {
        self.flush();
    }
}

impl DrawingBackend for Svg<'_> {
    type ErrorType = Infallible;

    fn get_size(&self) -> (u32, u32) {
        self.size
    }

    fn ensure_prepared(&mut self) -> Drawn {
        Ok(())
    }

    fn present(&mut self) -> Drawn {
        self.flush();
        Ok(())
    }

    fn draw_pixel(&mut self, point: BackendCoord, color: BackendColor) -> Drawn {
        self.draw_circle(point, 5, &color, true)
    }

    fn draw_line<S: BackendStyle>(&mut self, from: BackendCoord, to: BackendCoord, style: &S) -> Drawn {
        self.draw_path([from, to], style)
    }

    fn draw_rect<S: BackendStyle>(&mut self, from: BackendCoord, to: BackendCoord, style: &S, _fill: bool) -> Drawn {
        let (tone, alpha) = tone_of(style.color());
        let (left, top) = (from.0.min(to.0), from.1.min(to.1));
        let (width, height) = (from.0.abs_diff(to.0), from.1.abs_diff(to.1));
        self.element(format_args!(
            r#"<rect class="f-{}" x="{}" y="{}" width="{}" height="{}" rx="{}"{}/>"#,
            tone.class(),
            px(left),
            px(top),
            pixels(width.into()),
            pixels(height.into()),
            pixels(i64::from(width.min(height).min(40) / 2)),
            opacity(alpha)
        ))
    }

    fn draw_path<S: BackendStyle, I: IntoIterator<Item = BackendCoord>>(&mut self, path: I, style: &S) -> Drawn {
        let (tone, alpha) = tone_of(style.color());
        let points: Vec<String> = path.into_iter().map(|(x, y)| format!("{},{}", px(x), px(y))).collect();
        self.element(format_args!(
            r#"<polyline class="s-{}" stroke-width="{}"{} points="{}"/>"#,
            tone.class(),
            pixels(style.stroke_width().into()),
            opacity(alpha),
            points.join(" ")
        ))
    }

    fn draw_circle<S: BackendStyle>(&mut self, at: BackendCoord, radius: u32, style: &S, _fill: bool) -> Drawn {
        let (tone, alpha) = tone_of(style.color());
        let is_same = |dots: &Dots| (dots.tone, dots.radius) == (tone, radius) && (dots.opacity - alpha).abs() < 1e-9;
        if !self.dots.as_ref().is_some_and(is_same) {
            self.flush();
        }
        let dots = self.dots.get_or_insert_with(|| Dots {
            tone,
            radius,
            opacity: alpha,
            seen: HashSet::new(),
            path: String::new(),
        });
        if dots.seen.insert(at) {
            let _ = write!(dots.path, "M{} {}h0", px(at.0), px(at.1));
        }
        Ok(())
    }

    fn fill_polygon<S: BackendStyle, I: IntoIterator<Item = BackendCoord>>(&mut self, path: I, style: &S) -> Drawn {
        let (tone, alpha) = tone_of(style.color());
        let points: Vec<String> = path.into_iter().map(|(x, y)| format!("{},{}", px(x), px(y))).collect();
        self.element(format_args!(
            r#"<polygon class="f-{}"{} points="{}"/>"#,
            tone.class(),
            opacity(alpha),
            points.join(" ")
        ))
    }

    fn draw_text<S: BackendTextStyle>(&mut self, text: &str, style: &S, at: BackendCoord) -> Drawn {
        let (tone, _) = tone_of(style.color());
        let size = style.size();
        let anchor = match style.anchor().h_pos {
            HPos::Left => "",
            HPos::Center => r#" text-anchor="middle""#,
            HPos::Right => r#" text-anchor="end""#,
        };
        let down = match style.anchor().v_pos {
            VPos::Top => 0.8,
            VPos::Center => 0.35,
            VPos::Bottom => -0.2,
        };
        let weight = if style.style().as_str() == "bold" { r#" font-weight="600""# } else { "" };
        let y = f64::from(at.1) / f64::from(UNITS) + down * size;
        self.element(format_args!(
            r#"<text class="f-{}" x="{}" y="{y:.1}" font-size="{size}"{weight}{anchor}>{}</text>"#,
            tone.class(),
            px(at.0),
            escape(text)
        ))
    }

    fn estimate_text_size<S: BackendTextStyle>(
        &self,
        text: &str,
        style: &S,
    ) -> Result<(u32, u32), DrawingErrorKind<Infallible>> {
        // Unused: the charts measure their texts themselves.
        let _ = (text, style.size());
        Ok((0, 0))
    }
}

/// The colour that represents a tone within plotters.
pub(super) fn color_of(tone: Tone) -> RGBColor {
    RGBColor(tone.number(), 0, 0)
}

fn tone_of(color: BackendColor) -> (Tone, f64) {
    (Tone::from_number(color.rgb.0), color.alpha)
}

fn px(units: i32) -> String {
    pixels(i64::from(units))
}

/// Formats tenths as pixels, without a decimal point if it is not needed.
fn pixels(units: i64) -> String {
    let (whole, rest) = (units / i64::from(UNITS), (units % i64::from(UNITS)).abs());
    let sign = if units < 0 && whole == 0 { "-" } else { "" };
    if rest == 0 { whole.to_string() } else { format!("{sign}{whole}.{rest}") }
}

fn opacity(alpha: f64) -> String {
    if alpha >= 1.0 { String::new() } else { format!(r#" opacity="{alpha}""#) }
}

#[cfg(test)]
mod tests {
    use super::*;
    use plotters::prelude::{Circle, Color, IntoDrawingArea};

    #[test]
    fn tenths_are_written_as_pixels() {
        assert_eq!([pixels(0), pixels(120), pixels(125), pixels(-5), pixels(-25)], ["0", "12", "12.5", "-0.5", "-2.5"]);
    }

    /// Three dots, two of them at the same place, then one of another tone: two paths, and no dot twice.
    #[test]
    fn dots_of_a_tone_are_one_path() {
        let mut out = String::new();
        let area = Svg::new(10, 10, &mut out).into_drawing_area();
        for (x, tone) in [(10, Tone::Node(0)), (20, Tone::Node(0)), (20, Tone::Node(0)), (30, Tone::Node(1))] {
            area.draw(&Circle::new((x, 40), 20, color_of(tone).filled())).unwrap();
        }
        drop(area);
        assert_eq!(
            out,
            "<path class=\"s-n0 dots\" stroke-width=\"4\" d=\"M1 4h0M2 4h0\"/>\n\
             <path class=\"s-n1 dots\" stroke-width=\"4\" d=\"M3 4h0\"/>\n"
        );
    }
}
