//! The style of everything that Lydian shows in a browser: the page of the node, and the lab's report.
//!
//! Output: colours by name, each with a value for light and one for dark surfaces; the CSS variables of all of them;
//! the rules that both style sheets begin with. Invariants: text has a contrast of at least 4.5:1 to its surface, and
//! marks 3:1; colour-blind readers can distinguish the colours of series. No font, picture or sheet that is not on the
//! reader's machine already.

#![forbid(unsafe_code)]

use std::fmt::Write;

/// A colour: its name, its value on light surfaces, and on dark ones.
pub type Color = (&'static str, &'static str, &'static str);

/// Colours with a meaning.
pub const COLORS: &[Color] = &[
    ("page", "#f6f7f9", "#121316"),
    ("surface", "#ffffff", "#1b1d21"),
    ("soft", "#f0f2f5", "#24262b"),
    ("line", "#dfe2e8", "#32353c"),
    ("grid", "#e2e4e9", "#32353c"),
    ("ink", "#17181c", "#f2f3f5"),
    ("muted", "#5b606b", "#a9afba"),
    ("accent", "#1f5fc0", "#7fb0f8"),
    ("on-accent", "#ffffff", "#0e1420"),
    ("good", "#0d7052", "#4cc9a0"),
    ("warn", "#8a5a00", "#e0b04a"),
    ("bad", "#b3261e", "#ff8a80"),
    ("floor", "#b3261e", "#ff8a80"),
];

/// Colours of series, such as the nodes of a chart: light and dark.
pub const SERIES: [(&str, &str); 8] = [
    ("#2a6fd6", "#5b9bf0"),
    ("#d9730d", "#f0964b"),
    ("#12916a", "#2bb88c"),
    ("#8a4fc4", "#b48be6"),
    ("#c2367a", "#ea72ab"),
    ("#7a6a00", "#c9b43c"),
    ("#0f8797", "#3fb8c9"),
    ("#8b5a3c", "#c2916f"),
];

/// The colour of all further series.
pub const GREY: (&str, &str) = ("#737a87", "#959ba6");

/// Shades of parts of a whole, from the largest to the smallest.
pub const PARTS: [(&str, &str); 7] = [
    ("#1b4f9c", "#9cc4ff"),
    ("#2a6fd6", "#78abf5"),
    ("#5b93e6", "#5a90e0"),
    ("#8bb4f0", "#4474bd"),
    ("#b3cef6", "#35598f"),
    ("#cfdcf0", "#3c4a66"),
    ("#b9bec8", "#5d6470"),
];

/// The rules that every style sheet begins with.
pub const BASE: &str = include_str!("base.css");

/// The colour of a name; an unknown one is ink.
pub fn color(name: &str) -> Color {
    let found = COLORS.iter().find(|color| color.0 == name);
    found.copied().unwrap_or(("ink", "#17181c", "#f2f3f5"))
}

/// All colours as CSS variables: `--ink`, and `--n0` for the first series, `--t0` for the largest part.
pub fn variables(is_dark: bool) -> String {
    let pick = |light: &'static str, dark: &'static str| if is_dark { dark } else { light };
    let mut text = format!("color-scheme:{}", pick("light", "dark"));
    for (name, light, dark) in COLORS {
        let _ = write!(text, ";--{name}:{}", pick(light, dark));
    }
    for (index, (light, dark)) in SERIES.iter().chain([&GREY]).enumerate() {
        let _ = write!(text, ";--n{index}:{}", pick(light, dark));
    }
    for (index, (light, dark)) in PARTS.iter().enumerate() {
        let _ = write!(text, ";--t{index}:{}", pick(light, dark));
    }
    text
}

/// The variables, light or dark as the reader's system says.
pub fn root() -> String {
    let (light, dark) = (variables(false), variables(true));
    format!(":root{{{light}}}\n@media(prefers-color-scheme:dark){{:root{{{dark}}}}}\n")
}

#[cfg(test)]
mod tests {
    use super::*;

    /// WCAG 2: text 4.5:1, marks 3:1, on light and on dark.
    #[test]
    fn colours_stand_out_from_their_surface() {
        let of = |name| color(name);
        let texts = ["ink", "muted", "accent", "good", "warn", "bad", "floor"].map(|name| (of(name), 4.5));
        let series = SERIES.iter().chain([&GREY]).map(|(light, dark)| (("series", *light, *dark), 3.0));
        for ((name, light, dark), least) in texts.into_iter().chain(series) {
            for surface in ["surface", "page", "soft"].map(of) {
                // Series are drawn on surfaces and on the page.
                if least < 4.5 && surface.0 == "soft" {
                    continue;
                }
                for (color, surface) in [(light, surface.1), (dark, surface.2)] {
                    let found = contrast(color, surface);
                    assert!(found >= least, "{name}: {color} on {surface}: {found}");
                }
            }
        }
        let (accent, on) = (of("accent"), of("on-accent"));
        assert!(contrast(accent.1, on.1) >= 4.5 && contrast(accent.2, on.2) >= 4.5);
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

    #[test]
    fn every_colour_is_a_variable() {
        for is_dark in [false, true] {
            let text = variables(is_dark);
            for (name, light, dark) in COLORS {
                assert!(text.contains(&format!("--{name}:{}", if is_dark { dark } else { light })));
            }
            assert!(text.contains("--n8:") && text.contains("--t6:"));
        }
        assert_eq!(color("nonsense"), color("ink"));
    }
}
