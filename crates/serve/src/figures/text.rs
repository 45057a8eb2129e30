//! Families as text: Prometheus' exposition format 0.0.4. Input: families. Output: text; a family without samples is
//! left out. Cost: linear in the number of series.

use super::{Distribution, Family, SECONDS, Sample, Value};
use std::fmt::Write as _;

/// The `Content-Type` of the text.
pub const CONTENT_TYPE: &str = "text/plain; version=0.0.4; charset=utf-8";

/// The text of all families, in their order.
pub fn text<'a>(families: impl IntoIterator<Item = &'a Family>) -> String {
    let mut out = String::new();
    for family in families.into_iter().filter(|family| !family.samples.is_empty()) {
        let (name, kind) = (family.about.name, family.about.kind.name());
        // Writing to a text never fails.
        let _ = write!(out, "# HELP {name} ");
        escape(&mut out, family.about.help, false);
        let _ = writeln!(out, "\n# TYPE {name} {kind}");
        for sample in &family.samples {
            match &sample.value {
                Value::Number(value) => line(&mut out, family, "", sample, None, *value),
                Value::Seconds(all) => histogram(&mut out, family, sample, all),
            }
        }
    }
    out
}

/// A histogram: its buckets, each with the events of those below it, the sum and the number.
fn histogram(out: &mut String, family: &Family, sample: &Sample, all: &Distribution) {
    let bounds = SECONDS.into_iter().chain([f64::INFINITY]);
    let mut sum = 0;
    for (count, bound) in all.counts.iter().zip(bounds) {
        sum += count;
        line(out, family, "_bucket", sample, Some(bound), super::float(sum));
    }
    line(out, family, "_sum", sample, None, all.seconds);
    line(out, family, "_count", sample, None, super::float(sum));
}

fn line(out: &mut String, family: &Family, suffix: &str, sample: &Sample, bound: Option<f64>, value: f64) {
    out.push_str(family.about.name);
    out.push_str(suffix);
    let mut separator = '{';
    for (label, value) in family.about.labels.iter().zip(&sample.labels) {
        out.push(separator);
        separator = ',';
        let _ = write!(out, "{}=\"", label.name);
        escape(out, value, true);
        out.push('"');
    }
    if let Some(bound) = bound {
        out.push(separator);
        separator = ',';
        out.push_str("le=\"");
        number(out, bound);
        out.push('"');
    }
    if separator == ',' {
        out.push('}');
    }
    out.push(' ');
    number(out, value);
    out.push('\n');
}

/// A number in the words of the format.
fn number(out: &mut String, value: f64) {
    if value == f64::INFINITY {
        out.push_str("+Inf");
    } else if value == f64::NEG_INFINITY {
        out.push_str("-Inf");
    } else if value.is_nan() {
        out.push_str("NaN");
    } else {
        let _ = write!(out, "{value}");
    }
}

/// A help text or, with quotes escaped too, the value of a label.
fn escape(out: &mut String, text: &str, has_quotes: bool) {
    for one in text.chars() {
        match one {
            '\\' => out.push_str("\\\\"),
            '\n' => out.push_str("\\n"),
            '"' if has_quotes => out.push_str("\\\""),
            one => out.push(one),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::{About, Kind, Label};
    use super::*;

    fn of(about: &'static About, samples: Vec<Sample>) -> String {
        text(&[Family { about, samples }])
    }

    #[test]
    fn numbers_have_the_words_of_the_format() {
        const ABOUT: About = About { name: "a", help: "b", unit: "", kind: Kind::Gauge, labels: &[] };
        let value = |value| of(&ABOUT, vec![Sample { labels: Vec::new(), value: Value::Number(value) }]);
        for (given, text) in [
            (0.1, "0.1"),
            (-2.0, "-2"),
            (21_000_000.0, "21000000"),
            (1e21, "1000000000000000000000"),
            (f64::INFINITY, "+Inf"),
            (f64::NEG_INFINITY, "-Inf"),
            (f64::NAN, "NaN"),
        ] {
            assert_eq!(value(given), format!("# HELP a b\n# TYPE a gauge\na {text}\n"));
        }
        assert_eq!(of(&ABOUT, Vec::new()), "", "a figure that is not known now");
    }

    #[test]
    fn texts_are_escaped() {
        const LABEL: Label = Label { name: "l", values: || vec!["\"\\\n"] };
        const ABOUT: About = About { name: "a", help: "\"\\\n", unit: "", kind: Kind::Counter, labels: &[LABEL] };
        let text = of(&ABOUT, vec![Sample { labels: vec!["\"\\\n"], value: Value::Number(1.0) }]);
        assert_eq!(text, "# HELP a \"\\\\\\n\n# TYPE a counter\na{l=\"\\\"\\\\\\n\"} 1\n");
    }

    #[test]
    fn a_histogram_is_cumulative() {
        const LABEL: Label = Label { name: "l", values: || vec!["x"] };
        const ABOUT: About = About { name: "a", help: "b", unit: "", kind: Kind::Histogram, labels: &[LABEL] };
        let all = Distribution { counts: [1, 2, 0, 0, 0, 0, 0, 4], seconds: 1.5 };
        let text = of(&ABOUT, vec![Sample { labels: vec!["x"], value: Value::Seconds(all) }]);
        let lines: Vec<&str> = text.lines().collect();
        assert_eq!(lines.len(), 2 + SECONDS.len() + 3);
        assert_eq!(lines[2], "a_bucket{l=\"x\",le=\"0.0001\"} 1");
        assert_eq!(lines[3], "a_bucket{l=\"x\",le=\"0.0005\"} 3");
        assert_eq!(lines[9..], ["a_bucket{l=\"x\",le=\"+Inf\"} 7", "a_sum{l=\"x\"} 1.5", "a_count{l=\"x\"} 7"]);
    }
}
