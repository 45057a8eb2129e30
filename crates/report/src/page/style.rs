//! Colours and the style sheet of the report.
//!
//! Output: the rules for the page, and those included in a chart's own file. Invariants: every colour is a [`Tone`]
//! with one value for light and one for dark surfaces; colour-blind readers can distinguish the colours of nodes, each
//! of which has a contrast of at least 3:1 to its surface or a label next to it. It must never refer to a font, picture
//! or sheet that is not on the reader's machine already.

use std::fmt::Write;

/// Number of nodes with a colour of their own on one page.
pub(super) const NODE_TONES: u8 = 8;
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

/// Tone, class, colour on light, colour on dark.
const FIXED: [(Tone, &str, &str, &str); 6] = [
    (Tone::Ink, "ink", "#17181c", "#f2f3f5"),
    (Tone::Muted, "muted", "#5b606b", "#a9afba"),
    (Tone::Grid, "grid", "#e2e4e9", "#32353c"),
    (Tone::Surface, "surface", "#ffffff", "#1b1d21"),
    (Tone::Floor, "floor", "#b3261e", "#ff8a80"),
    (Tone::Bad, "bad", "#b3261e", "#ff8a80"),
];
const NODES: [(&str, &str); NODE_TONES as usize] = [
    ("#2a6fd6", "#5b9bf0"),
    ("#d9730d", "#f0964b"),
    ("#12916a", "#2bb88c"),
    ("#8a4fc4", "#b48be6"),
    ("#c2367a", "#ea72ab"),
    ("#7a6a00", "#c9b43c"),
    ("#0f8797", "#3fb8c9"),
    ("#8b5a3c", "#c2916f"),
];
const STAGES: [(&str, &str); STAGE_TONES as usize] = [
    ("#1b4f9c", "#9cc4ff"),
    ("#2a6fd6", "#78abf5"),
    ("#5b93e6", "#5a90e0"),
    ("#8bb4f0", "#4474bd"),
    ("#b3cef6", "#35598f"),
    ("#cfdcf0", "#3c4a66"),
    ("#b9bec8", "#5d6470"),
];
const GREY: (&str, &str) = ("#737a87", "#959ba6");

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

fn tones() -> Vec<(String, &'static str, &'static str)> {
    let mut all: Vec<_> = FIXED.iter().map(|entry| (entry.1.to_owned(), entry.2, entry.3)).collect();
    let nodes =
        NODES.iter().chain([&GREY]).zip(0..).map(|(color, index)| (Tone::Node(index).class(), color.0, color.1));
    all.extend(nodes);
    all.extend(STAGES.iter().zip(0..).map(|(color, index)| (Tone::Stage(index).class(), color.0, color.1)));
    all
}

/// Variables for the page: light, or dark if the reader's system or the switch says so.
fn variables() -> String {
    let of = |dark: bool| {
        let pages = if dark {
            "color-scheme:dark;--page:#121316;--line:#32353c;--soft:#24262b"
        } else {
            "color-scheme:light;--page:#f6f7f9;--line:#dfe2e8;--soft:#f0f2f5"
        };
        tones().iter().fold(pages.to_owned(), |mut text, (class, light, night)| {
            let _ = write!(text, ";--{class}:{}", if dark { night } else { light });
            text
        })
    };
    let (light, dark) = (of(false), of(true));
    format!(
        ":root{{{light}}}\n@media(prefers-color-scheme:dark){{:root{{{dark}}}}}\n\
         :root:has(#scheme-light:checked){{{light}}}\n:root:has(#scheme-dark:checked){{{dark}}}\n"
    )
}

/// The whole style sheet of the page.
pub(super) fn page_sheet() -> String {
    let mut text = variables();
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

    /// WCAG 2: text 4.5:1, marks 3:1, on light and on dark.
    #[test]
    fn colours_stand_out_from_their_surface() {
        for (class, light, dark) in tones() {
            let least = match class.as_str() {
                "ink" | "muted" | "bad" | "floor" => 4.5,
                class if class.starts_with('n') => 3.0,
                _ => continue,
            };
            for (color, surface) in [(light, "#ffffff"), (dark, "#1b1d21"), (light, "#f6f7f9"), (dark, "#121316")] {
                assert!(
                    contrast(color, surface) >= least,
                    "{class}: {color} on {surface}: {}",
                    contrast(color, surface)
                );
            }
        }
    }

    fn contrast(one: &str, other: &str) -> f64 {
        let (a, b) = (luminance(one), luminance(other));
        (a.max(b) + 0.05) / (a.min(b) + 0.05)
    }

    fn luminance(color: &str) -> f64 {
        let part = |at: usize| {
            let value = f64::from(u8::from_str_radix(&color[at..at + 2], 16).unwrap()) / 255.0;
            if value <= 0.03928 { value / 12.92 } else { ((value + 0.055) / 1.055).powf(2.4) }
        };
        0.2126 * part(1) + 0.7152 * part(3) + 0.0722 * part(5)
    }
}
