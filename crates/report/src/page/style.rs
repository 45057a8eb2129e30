//! The style sheet of the report. The colours and the rules at its beginning are those of the node's page too
//! (`lydian_style`).
//!
//! Output: the rules for the page, and those included in a chart's own file. Invariants: every colour is a [`Tone`]
//! with one value for light and one for dark surfaces. It must never refer to a font, picture or sheet that is not on
//! the reader's machine already.

use lydian_style::{GREY, PARTS, SERIES};
use std::fmt::Write;

/// Number of nodes with a colour of their own on one page.
pub(super) const NODE_TONES: u8 = 8;
const _: () = assert!(NODE_TONES as usize == SERIES.len() && STAGE_TONES as usize == PARTS.len());
/// Number of stages with a shade of their own.
pub(super) const STAGE_TONES: u8 = 7;

/// The meaning of a mark; its colour depends on the scheme.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) enum Tone {
    Ink,
    Muted,
    Grid,
    Surface,
    Floor,
    Bad,
    /// The same over the whole page; from [`NODE_TONES`] on, all are grey.
    Node(u8),
    /// From the largest stage to the smallest.
    Stage(u8),
}

/// Tones that are no series, and the names of their colours.
const FIXED: [(Tone, &str); 6] = [
    (Tone::Ink, "ink"),
    (Tone::Muted, "muted"),
    (Tone::Grid, "grid"),
    (Tone::Surface, "surface"),
    (Tone::Floor, "floor"),
    (Tone::Bad, "bad"),
];

impl Tone {
    /// The number that represents the tone within plotters.
    pub(super) fn number(self) -> u8 {
        match self {
            Tone::Ink => 0,
            Tone::Muted => 1,
            Tone::Grid => 2,
            Tone::Surface => 3,
            Tone::Floor => 4,
            Tone::Bad => 5,
            Tone::Node(index) => 32 + index.min(NODE_TONES),
            Tone::Stage(index) => 64 + index.min(STAGE_TONES - 1),
        }
    }

    pub(super) fn from_number(number: u8) -> Tone {
        match number {
            64.. => Tone::Stage((number - 64).min(STAGE_TONES - 1)),
            32.. => Tone::Node((number - 32).min(NODE_TONES)),
            _ => FIXED.iter().map(|entry| entry.0).find(|tone| tone.number() == number).unwrap_or(Tone::Ink),
        }
    }

    /// The end of its class: `n0` for `f-n0` (filled) and `s-n0` (drawn).
    pub(super) fn class(self) -> String {
        match self {
            Tone::Node(index) => format!("n{}", index.min(NODE_TONES)),
            Tone::Stage(index) => format!("t{}", index.min(STAGE_TONES - 1)),
            tone => FIXED.iter().find(|entry| entry.0 == tone).map_or("ink", |entry| entry.1).to_owned(),
        }
    }
}

/// Class, colour on light, colour on dark.
fn tones() -> Vec<(String, &'static str, &'static str)> {
    let fixed = FIXED.iter().map(|(_, name)| lydian_style::color(name));
    let mut all: Vec<_> = fixed.map(|(name, light, dark)| (name.to_owned(), light, dark)).collect();
    let nodes =
        SERIES.iter().chain([&GREY]).zip(0..).map(|(color, index)| (Tone::Node(index).class(), color.0, color.1));
    all.extend(nodes);
    all.extend(PARTS.iter().zip(0..).map(|(color, index)| (Tone::Stage(index).class(), color.0, color.1)));
    all
}

/// Variables for the page: light, or dark if the reader's system or the switch says so.
fn variables() -> String {
    let (light, dark) = (lydian_style::variables(false), lydian_style::variables(true));
    format!(
        "{}:root:has(#scheme-light:checked){{{light}}}\n:root:has(#scheme-dark:checked){{{dark}}}\n",
        lydian_style::root()
    )
}

/// The whole style sheet of the page.
pub(super) fn page_sheet() -> String {
    let mut text = variables();
    text.push_str(lydian_style::BASE);
    for (class, _, _) in tones() {
        let _ = writeln!(text, ".f-{class}{{fill:var(--{class})}}.s-{class}{{stroke:var(--{class})}}");
    }
    text.push_str(SHAPES);
    text.push_str("svg text{stroke:var(--surface)}svg text.f-surface{stroke:none}\n");
    text.push_str(PAGE);
    text
}

/// The style sheet of a chart's own file: literal colours, since some viewers do not support variables.
pub(super) fn chart_sheet() -> String {
    let of = |pick: fn(&(String, &'static str, &'static str)) -> &'static str| {
        tones().iter().fold(String::new(), |mut text, tone| {
            let color = pick(tone);
            let _ = write!(text, ".f-{0}{{fill:{color}}}.s-{0}{{stroke:{color}}}", tone.0);
            if tone.0 == Tone::Surface.class() {
                let _ = write!(text, "svg text{{stroke:{color}}}");
            }
            text
        })
    };
    format!("{SHAPES}{}\n@media(prefers-color-scheme:dark){{{}}}", of(|tone| tone.1), of(|tone| tone.2))
}

const SHAPES: &str = "\
svg text{font-family:system-ui,-apple-system,'Segoe UI',Roboto,'DejaVu Sans',sans-serif;font-variant-numeric:tabular-nums}
svg text{paint-order:stroke;stroke-width:3px;stroke-linejoin:round}
svg polyline,svg .dots{fill:none;stroke-linejoin:round;stroke-linecap:round}
";

const PAGE: &str = include_str!("page.css");

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_tone_survives_the_way_through_plotters() {
        let all = FIXED.iter().map(|entry| entry.0);
        let nodes = (0..=NODE_TONES).map(Tone::Node);
        for tone in all.chain(nodes).chain((0..STAGE_TONES).map(Tone::Stage)) {
            assert_eq!(Tone::from_number(tone.number()), tone);
            assert!(page_sheet().contains(&format!(".f-{}{{", tone.class())));
            assert!(chart_sheet().contains(&format!(".s-{}{{", tone.class())));
        }
        assert_eq!(Tone::Node(200).class(), format!("n{NODE_TONES}"));
    }
}
