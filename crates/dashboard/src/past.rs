//! `GET /api/history`: what was recorded.
//!
//! Input: `series` (names with commas between), `from` and `to` (seconds since 1970). Output: `step` and `from`, and
//! the points of each series with its unit; null where nothing was recorded. May block, since it reads a file.

use crate::history::{Answer, History, HistoryError};
use crate::reply::{JSON, bytes, refuse};
use axum::http::StatusCode;
use axum::response::Response;
use std::collections::BTreeSet;
use std::fmt::Write;
use std::sync::Arc;

/// `history`: `None` if there is none, or not yet.
pub(crate) fn answer(history: Option<Arc<History>>, query: &str) -> Response {
    let Some(history) = history else {
        let words = "The history is not open: the node begins, or the log says why.";
        return refuse(StatusCode::SERVICE_UNAVAILABLE, words);
    };
    match read(&history, query) {
        Ok(text) => bytes(StatusCode::OK, JSON, text),
        Err(words) => refuse(StatusCode::BAD_REQUEST, words),
    }
}

fn read(history: &History, query: &str) -> Result<String, String> {
    let value = |name: &str| query.split('&').find_map(|pair| pair.strip_prefix(name)?.strip_prefix('='));
    let time = |name: &str| {
        let text = value(name).ok_or_else(|| format!("The parameter {name} is missing: seconds since 1970."))?;
        text.parse::<u64>().map_err(|_| format!("The parameter {name} must be seconds since 1970."))
    };
    let names: BTreeSet<&str> =
        value("series").unwrap_or_default().split(',').filter(|name| !name.is_empty()).collect();
    if names.is_empty() {
        return Err("The parameter series is missing: names with commas between.".to_owned());
    }
    let names: Vec<&str> = names.into_iter().collect();
    let answer = history.query(&names, time("from")?, time("to")?).map_err(|error| sentence(&error))?;
    Ok(json(history, &answer))
}

fn sentence(error: &HistoryError) -> String {
    let text: String = error.to_string().chars().take(200).collect();
    let mut letters = text.chars();
    letters.next().map_or_else(String::new, |first| format!("{}{}.", first.to_uppercase(), letters.as_str()))
}

/// Numbers are written as Rust prints them, which is JSON, since none is infinite or not a number.
fn json(history: &History, answer: &Answer) -> String {
    let mut text = format!("{{\"step\":{},\"from\":{},\"series\":{{", answer.step, answer.from);
    for (place, (name, points)) in answer.series.iter().enumerate() {
        // Names of series need no escapes.
        text.push_str(if place > 0 { ",\"" } else { "\"" });
        text.push_str(name);
        text.push_str("\":[");
        for (place, point) in points.iter().enumerate() {
            text.push_str(if place > 0 { "," } else { "" });
            match point {
                // Writing to a text cannot fail.
                Some(number) => drop(write!(text, "{number}")),
                None => text.push_str("null"),
            }
        }
        text.push(']');
    }
    let units = answer.series.iter().map(|(name, _)| format!("\"{name}\":\"{}\"", history.unit(name)));
    text.push_str("},\"units\":{");
    text.push_str(&units.collect::<Vec<_>>().join(","));
    text.push_str("}}");
    text
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::history::{Combine, Series};
    use lydian_disk::SimDisk;
    use serde_json::{Value, json};
    use std::path::Path;

    const TABLE: &[Series] = &[
        Series { name: "height", unit: "blocks", combine: Combine::Last, help: "" },
        Series { name: "cpu", unit: "share", combine: Combine::Mean, help: "" },
    ];

    #[test]
    fn values_are_json_with_their_units() {
        let disk = SimDisk::new(1);
        let (history, _) = History::open(&disk, Path::new(""), TABLE, 1_000).unwrap();
        history.record(1_000, &[Some(900_000.0), Some(1e-9)]).unwrap();
        history.record(1_010, &[Some(900_001.0), Some(1e300)]).unwrap();
        let of = |query: &str| read(&history, query);
        let parsed: Value = serde_json::from_str(&of("series=height,cpu,height&from=1000&to=1030").unwrap()).unwrap();
        let expected = json!({
            "step": 10,
            "from": 1_000,
            "series": { "height": [900_000, 900_001, null], "cpu": [1e-9, 1e300, null] },
            "units": { "height": "blocks", "cpu": "share" },
        });
        let number = |value: &Value, name: &str| value["series"][name][1].as_f64();
        assert_eq!((number(&parsed, "cpu"), number(&parsed, "height")), (Some(1e300), Some(900_001.0)));
        assert_eq!(parsed["series"]["height"], expected["series"]["height"]);
        assert_eq!((&parsed["step"], &parsed["units"]), (&expected["step"], &expected["units"]));
        for (query, words) in [
            ("", "The parameter series is missing: names with commas between."),
            ("series=height&to=2", "The parameter from is missing: seconds since 1970."),
            ("series=height&from=1&to=-2", "The parameter to must be seconds since 1970."),
            ("series=height&from=2&to=2", "The end of the time range must be after its start."),
            ("series=%3Cb&from=1&to=2", "There is no series \"%3Cb\" in the history."),
        ] {
            assert_eq!(of(query).unwrap_err(), words);
        }
        assert_eq!(answer(None, "").status(), StatusCode::SERVICE_UNAVAILABLE);
        assert_eq!(answer(Some(Arc::new(history)), "").status(), StatusCode::BAD_REQUEST);
    }
}
