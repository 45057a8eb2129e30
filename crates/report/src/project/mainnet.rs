//! The counts of a target chain, with bounds and sources.
//!
//! Input: a target such as `mainnet@928000`. Output: transactions, inputs, outputs, bytes, checks and coins up to that
//! height. Between two heights of the table a count is interpolated; from a single one it is scaled with the number of
//! transactions, and its bounds widen by `SCALING_ERROR`. It must never return a count without bounds and source.

use crate::ReportError;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::sync::OnceLock;

const MAINNET: &str = include_str!("mainnet.json");
/// The error of a count scaled to another height, per thousand blocks.
const SCALING_ERROR: f64 = 0.002;

/// A chain up to a height.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Target {
    pub network: String,
    pub height: u32,
}

impl Target {
    /// Parses `mainnet@928000`.
    pub fn parse(text: &str) -> Result<Target, ReportError> {
        let usage = |why: &str| ReportError::Usage(format!("--to {text}: {why}; for instance mainnet@928000"));
        let (network, height) =
            text.split_once('@').ok_or_else(|| usage("a network and a height with @ between them"))?;
        let height: u32 = height.parse().map_err(|_| usage("the height is no number"))?;
        let table = table();
        if network != table.network {
            return Err(usage("only mainnet's counts are known"));
        }
        if !(table.height_min..=table.height_max).contains(&height) {
            let (low, high) = (table.height_min, table.height_max);
            return Err(usage(&format!("mainnet's counts are known from height {low} to {high}")));
        }
        Ok(Target { network: network.to_owned(), height })
    }
}

/// A middle value between bounds.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize)]
pub struct Range {
    pub low: f64,
    pub middle: f64,
    pub high: f64,
}

impl Range {
    pub fn exactly(value: f64) -> Range {
        Range { low: value, middle: value, high: value }
    }

    /// Every value times `factor`.
    #[must_use]
    pub fn times(self, factor: f64) -> Range {
        Range { low: self.low * factor, middle: self.middle * factor, high: self.high * factor }
    }

    /// The sum of two ranges that grow together.
    #[must_use]
    pub fn plus(self, other: Range) -> Range {
        Range { low: self.low + other.low, middle: self.middle + other.middle, high: self.high + other.high }
    }

    /// The bounds widened by this share.
    #[must_use]
    pub fn widened(self, share: f64) -> Range {
        Range { low: self.low * (1.0 - share), middle: self.middle, high: self.high * (1.0 + share) }
    }
}

/// One count of the target.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Quantity {
    pub name: String,
    pub range: Range,
    pub source: String,
    pub note: Option<String>,
}

/// All counts of the target.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct TargetCounts {
    pub target: Target,
    pub quantities: Vec<Quantity>,
}

impl TargetCounts {
    pub fn of(target: &Target) -> TargetCounts {
        let table = table();
        let transactions = |height: u32| interpolated(table.anchors("transactions"), height, |_| 1.0);
        let quantities = table.quantities.iter().map(|(name, anchors)| {
            // A share does not grow with the chain.
            let grows = name != "schnorr_share";
            let growth =
                |from: u32| if grows { transactions(target.height).middle / transactions(from).middle } else { 1.0 };
            let nearest = anchors.iter().min_by_key(|anchor| anchor.height.abs_diff(target.height));
            Quantity {
                name: name.clone(),
                range: interpolated(anchors, target.height, growth),
                source: nearest.map(|anchor| anchor.source.clone()).unwrap_or_default(),
                note: nearest.and_then(|anchor| anchor.note.clone()),
            }
        });
        TargetCounts { target: target.clone(), quantities: quantities.collect() }
    }

    pub fn range(&self, name: &str) -> Range {
        self.quantities.iter().find(|quantity| quantity.name == name).map(|quantity| quantity.range).unwrap_or_default()
    }
}

#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields)]
struct Table {
    network: String,
    height_min: u32,
    height_max: u32,
    quantities: BTreeMap<String, Vec<Anchor>>,
}

impl Table {
    fn anchors(&self, name: &str) -> &[Anchor] {
        self.quantities.get(name).map(Vec::as_slice).unwrap_or_default()
    }
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Anchor {
    height: u32,
    low: f64,
    middle: f64,
    high: f64,
    source: String,
    #[serde(default)]
    note: Option<String>,
}

impl Anchor {
    fn range(&self) -> Range {
        Range { low: self.low, middle: self.middle, high: self.high }
    }
}

fn table() -> &'static Table {
    static TABLE: OnceLock<Table> = OnceLock::new();
    TABLE.get_or_init(|| serde_json::from_str(MAINNET).unwrap_or_default())
}

/// Interpolates between the anchors around `height`, or scales the nearest one by its growth up to there.
fn interpolated(anchors: &[Anchor], height: u32, growth: impl Fn(u32) -> f64) -> Range {
    if let Some(anchor) = anchors.iter().find(|anchor| anchor.height == height) {
        return anchor.range();
    }
    let before = anchors.iter().rev().find(|anchor| anchor.height < height);
    let after = anchors.iter().find(|anchor| anchor.height > height);
    match (before, after) {
        (Some(before), Some(after)) => {
            let share = f64::from(height - before.height) / f64::from(after.height - before.height);
            let between = |low: f64, high: f64| low + (high - low) * share;
            Range {
                low: between(before.low, after.low),
                middle: between(before.middle, after.middle),
                high: between(before.high, after.high),
            }
        }
        (Some(only), None) | (None, Some(only)) => {
            let thousands = f64::from(height.abs_diff(only.height)) / 1000.0;
            only.range().times(growth(only.height)).widened(SCALING_ERROR * thousands)
        }
        (None, None) => Range::default(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn counts(height: u32) -> TargetCounts {
        TargetCounts::of(&Target::parse(&format!("mainnet@{height}")).unwrap())
    }

    #[test]
    fn the_table_is_read_and_has_bounds_and_sources() {
        let table: Table = serde_json::from_str(MAINNET).unwrap();
        for (name, anchors) in &table.quantities {
            assert!(!anchors.is_empty() && anchors.is_sorted_by_key(|anchor| anchor.height), "{name}");
            for anchor in anchors {
                assert!(anchor.low <= anchor.middle && anchor.middle <= anchor.high, "{name}");
                assert!(!anchor.source.is_empty() && (anchor.low == anchor.high || anchor.note.is_some()), "{name}");
            }
        }
    }

    #[test]
    fn counts_at_the_height_of_the_published_benchmark() {
        let counts = counts(928_000);
        // 1,226,586,151 plus 18/25 of the difference to 1,305,397,408: the 1.283 bn of the notes.
        assert!((counts.range("transactions").middle - 1_283_330_256.0).abs() < 1.0);
        assert_eq!(counts.range("bytes").middle, 7.07e11);
        assert_eq!(counts.range("verifications"), Range { low: 3.238e9, middle: 3.238e9, high: 3.465e9 });
        assert_eq!(counts.range("nothing"), Range::default());
        let of = |name: &str| counts.quantities.iter().find(|quantity| quantity.name == name).unwrap();
        assert!(of("bytes").source.contains("2025") && of("verifications").note.as_ref().unwrap().contains("3.238 bn"));
    }

    #[test]
    fn other_heights_are_interpolated_or_scaled_and_less_certain() {
        let (low, high) = (counts(880_000), counts(928_000));
        let inputs = low.range("inputs");
        let growth = low.range("transactions").middle / high.range("transactions").middle;
        assert!((inputs.middle / high.range("inputs").middle - growth).abs() < 1e-12);
        let width = |range: Range| (range.high - range.low) / range.middle;
        assert!(width(inputs) > width(high.range("inputs")) + 0.19);
        assert!(low.range("verifications").middle > 2.8e9 && low.range("verifications").middle < 3.238e9);
        assert_eq!(low.range("schnorr_share").middle, 0.245);
    }

    #[test]
    fn bad_targets_are_refused_with_what_is_known() {
        for bad in [
            "mainnet",
            "mainnet@",
            "mainnet@x",
            "mainnet@-1",
            "signet@200000",
            "mainnet@839999",
            "mainnet@935001",
            "@928000",
        ] {
            let error = Target::parse(bad).unwrap_err().to_string();
            assert!(error.contains(&format!("--to {bad}")) && error.contains("mainnet@928000"), "{error}");
        }
        assert!(Target::parse("mainnet@840000").is_ok() && Target::parse("mainnet@935000").is_ok());
    }
}
