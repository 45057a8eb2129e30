//! Numbers, names and dates in readable form, and text escaped for HTML.
//!
//! Input: values of results. Output: short texts. It must never put external text into a page unescaped, or round a
//! figure to fewer than three digits.

use crate::systems;

/// The usual name for `KIND` or `KIND:LABEL` of a result: `Bitcoin Core`, `Lydian (reference)`.
pub(super) fn title_of(name: &str) -> String {
    let (kind, label) = name.split_once(':').map_or((name, None), |(kind, label)| (kind, Some(label)));
    let title = systems::of(kind).map_or(kind, |system| system.title);
    label.map_or_else(|| title.to_owned(), |label| format!("{title} ({label})"))
}

/// Whether it is a build of Lydian.
pub(super) fn is_ours(name: &str) -> bool {
    name.split(':').next() == Some("lydian")
}

/// The version number in a program's version line: `31.99.0` of `Bitcoin Core daemon version v31.99.0-unk bitcoind`.
pub(super) fn version_of(told: &str) -> String {
    let is_version = |word: &&str| {
        let word = word.trim_start_matches('v');
        word.starts_with(|c: char| c.is_ascii_digit()) && word.contains('.')
    };
    let word = told.split_whitespace().find(is_version).unwrap_or(told).trim_start_matches('v');
    word.split(['-', '+']).next().unwrap_or(word).trim_end_matches(',').to_owned()
}

/// For example `0.052 s`, `2.05 s`, `14.03 s`, `123.4 s`, `2 h 46 min`; with a no-break space between number and unit.
pub(super) fn seconds(value: f64) -> String {
    match value {
        value if value < 0.1 => format!("{value:.3}\u{a0}s"),
        value if value < 100.0 => format!("{value:.2}\u{a0}s"),
        value if value < 1_000.0 => format!("{value:.1}\u{a0}s"),
        value if value < 7_200.0 => format!("{}\u{a0}s", whole(value)),
        value => {
            let minutes = (value / 60.0).round();
            let hours = (minutes / 60.0).floor();
            format!("{hours:.0}\u{a0}h\u{a0}{:02.0}\u{a0}min", minutes - hours * 60.0)
        }
    }
}

/// Milliseconds of a query, with three digits.
pub(super) fn milliseconds(value: f64) -> String {
    match value {
        value if value < 10.0 => format!("{value:.2}"),
        value if value < 100.0 => format!("{value:.1}"),
        value => whole(value),
    }
}

/// For example `6.8`, `13`, `1.02`.
pub(super) fn times(value: f64) -> String {
    match value {
        value if value < 2.0 => format!("{value:.2}"),
        value if value < 20.0 => format!("{value:.1}"),
        value => whole(value),
    }
}

/// For example `1,598 MB`, `12.4 GB`.
pub(super) fn bytes(value: f64) -> String {
    match value {
        value if value < 1e6 => format!("{}\u{a0}kB", whole(value / 1e3)),
        value if value < 1e10 => format!("{}\u{a0}MB", whole(value / 1e6)),
        value => format!("{:.1}\u{a0}GB", value / 1e9),
    }
}

/// A rounded number with commas between thousands: `586,370`.
pub(super) fn whole(value: f64) -> String {
    let digits = format!("{:.0}", value.abs());
    let mut text = String::new();
    for (index, digit) in digits.chars().enumerate() {
        if index > 0 && (digits.len() - index).is_multiple_of(3) {
            text.push(',');
        }
        text.push(digit);
    }
    if value <= -0.5 { format!("-{text}") } else { text }
}

#[allow(clippy::cast_precision_loss, reason = "bytes and counts of a run lie below 2^52")]
pub(super) fn as_f64(count: u64) -> f64 {
    count as f64
}

pub(super) fn count(value: u64) -> String {
    whole(as_f64(value))
}

/// The UTC date of seconds since 1970: `2026-11-21 14:07 UTC`. Howard Hinnant's algorithm for civil dates.
pub(crate) fn date(unix_seconds: f64) -> String {
    let minutes = (unix_seconds / 60.0).floor();
    let (day, minute) = ((minutes / 1_440.0).floor(), minutes.rem_euclid(1_440.0));
    let shifted = day + 719_468.0;
    let era = (shifted / 146_097.0).floor();
    let of_era = shifted - era * 146_097.0;
    let year_of_era =
        ((of_era - (of_era / 1_460.0).floor() + (of_era / 36_524.0).floor() - (of_era / 146_096.0).floor()) / 365.0)
            .floor();
    let of_year = of_era - (365.0 * year_of_era + (year_of_era / 4.0).floor() - (year_of_era / 100.0).floor());
    let month_shifted = ((5.0 * of_year + 2.0) / 153.0).floor();
    let of_month = of_year - ((153.0 * month_shifted + 2.0) / 5.0).floor() + 1.0;
    let month = if month_shifted < 10.0 { month_shifted + 3.0 } else { month_shifted - 9.0 };
    let year = year_of_era + era * 400.0 + if month <= 2.0 { 1.0 } else { 0.0 };
    format!("{year:04.0}-{month:02.0}-{of_month:02.0} {:02.0}:{:02.0} UTC", (minute / 60.0).floor(), minute % 60.0)
}

/// For example `a`, `a and b`, `a, b and c`.
pub(super) fn list(words: &[String]) -> String {
    match words {
        [] => String::new(),
        [one] => one.clone(),
        [rest @ .., last] => format!("{} and {last}", rest.join(", ")),
    }
}

/// Escapes text for content and attributes of HTML and SVG; replaces characters that are not allowed in XML.
pub(super) fn escape(text: &str) -> String {
    let mut safe = String::with_capacity(text.len());
    for c in text.chars() {
        match c {
            '&' => safe.push_str("&amp;"),
            '<' => safe.push_str("&lt;"),
            '>' => safe.push_str("&gt;"),
            '"' => safe.push_str("&quot;"),
            '\n' | '\t' => safe.push(c),
            c if c.is_control() || matches!(c, '\u{fffe}' | '\u{ffff}') => safe.push('\u{fffd}'),
            c => safe.push(c),
        }
    }
    safe
}

/// Whether a source is a link that may be followed.
pub(super) fn is_link(source: &str) -> bool {
    ["https://", "http://"].iter().any(|start| source.starts_with(start)) && !source.contains(char::is_whitespace)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn figures_as_people_read_them() {
        assert_eq!(
            [seconds(0.0527), seconds(2.0527), seconds(14.03), seconds(123.44)],
            ["0.053\u{a0}s", "2.05\u{a0}s", "14.03\u{a0}s", "123.4\u{a0}s"]
        );
        assert_eq!([seconds(4321.0), seconds(43_620.0)], ["4,321\u{a0}s", "12\u{a0}h\u{a0}07\u{a0}min"]);
        assert_eq!([bytes(1.599e9), bytes(1.24e10), bytes(22_000.0)], ["1,599\u{a0}MB", "12.4\u{a0}GB", "22\u{a0}kB"]);
        assert_eq!([times(1.024), times(6.836), times(25.4)], ["1.02", "6.8", "25"]);
        assert_eq!([whole(1_234_567.0), whole(-999.6), whole(-0.2)], ["1,234,567", "-1,000", "0"]);
    }

    #[test]
    fn nodes_have_the_names_that_people_use() {
        let names = ["lydian", "lydian:reference", "bitcoind", "electrs", "b3chaind"].map(title_of);
        assert_eq!(names, ["Lydian", "Lydian (reference)", "Bitcoin Core", "electrs", "b3chaind"]);
    }

    #[test]
    fn dates_of_seconds() {
        for (unix, text) in [
            (0.0, "1970-01-01 00:00 UTC"),
            (951_782_399.0, "2000-02-28 23:59 UTC"),
            (951_782_400.0, "2000-02-29 00:00 UTC"),
            (1_795_270_075.0, "2026-11-21 14:07 UTC"),
            (-1.0, "1969-12-31 23:59 UTC"),
        ] {
            assert_eq!(date(unix), text);
        }
    }

    #[test]
    fn versions_out_of_what_programs_say() {
        for (told, version) in [
            ("lydian 0.1.0", "0.1.0"),
            ("Bitcoin Core daemon version v31.99.0-unk bitcoind", "31.99.0"),
            ("Bitcoin Knots daemon version v29.4.3.knots20260508", "29.4.3.knots20260508"),
            ("btcd version 0.25.0-beta", "0.25.0"),
            ("unknown", "unknown"),
        ] {
            assert_eq!(version_of(told), version);
        }
    }

    #[test]
    fn foreign_text_is_harmless() {
        assert_eq!(escape("<a href=\"x\">&\u{1b}[0m"), "&lt;a href=&quot;x&quot;&gt;&amp;\u{fffd}[0m");
        assert!(is_link("https://example.org/a") && !is_link("javascript:alert(1)") && !is_link("https://a b"));
    }
}
