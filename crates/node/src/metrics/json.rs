//! A family as JSON, for the page. Input: a family. Output: an object with its kind, its unit and its samples; a
//! histogram has the number, the sum of seconds, and two quantiles.

use lydian_serve::figures::{Family, Sample, Value};
use serde_json::{Map, Value as Json, json};

pub(super) fn of(family: &Family) -> Json {
    let about = family.about;
    let samples: Vec<Json> = family.samples.iter().map(|sample| sample_json(family, sample)).collect();
    json!({"kind": about.kind.name(), "unit": about.unit, "samples": samples})
}

fn sample_json(family: &Family, sample: &Sample) -> Json {
    let labels: Map<String, Json> = family
        .about
        .labels
        .iter()
        .zip(&sample.labels)
        .map(|(label, value)| (label.name.to_owned(), (*value).into()))
        .collect();
    match &sample.value {
        Value::Number(value) => json!({"labels": labels, "value": value}),
        Value::Seconds(all) => json!({
            "labels": labels, "count": all.count(), "seconds": all.seconds,
            "p50": all.quantile(0.5), "p99": all.quantile(0.99),
        }),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use lydian_serve::figures::{About, Distribution, Kind, Label};

    #[test]
    fn samples_have_their_labels() {
        const LABEL: Label = Label { name: "l", values: || vec!["x"] };
        const ABOUT: About = About { name: "a", help: "", unit: "seconds", kind: Kind::Histogram, labels: &[LABEL] };
        let all = Distribution { counts: [2, 0, 0, 0, 0, 0, 0, 0], seconds: 0.5 };
        let samples = vec![
            Sample { labels: vec!["x"], value: Value::Seconds(all) },
            Sample { labels: Vec::new(), value: Value::Number(1.5) },
        ];
        let expected = json!({"kind": "histogram", "unit": "seconds", "samples": [
            {"labels": {"l": "x"}, "count": 2, "seconds": 0.5, "p50": 0.00005, "p99": 0.0001 * 0.99},
            {"labels": {}, "value": 1.5},
        ]});
        assert_eq!(of(&Family { about: &ABOUT, samples }), expected);
    }
}
