//! The published yearly benchmarks: the printed figures, and their arithmetic checked.
//!
//! Input: `published.json`, compiled in. Output: plain structs, and the tables "delta to last year" computed from them.
//! Invariants: every figure has the address of its source and states whether it was read there or is known at second
//! hand; a figure that was not found is absent. It must never contain a figure that we measured or projected, nor fill
//! a gap with an estimate.

mod deltas;

pub use deltas::{Delta, deltas};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::sync::OnceLock;

const PUBLISHED: &str = include_str!("published.json");

/// The whole file.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct History {
    pub about: String,
    /// By the names used in `Figure::source`.
    pub sources: BTreeMap<String, Source>,
    /// By year.
    pub editions: Vec<Edition>,
    pub printed_deltas: Vec<PrintedDelta>,
    /// Casa's and Sparrow's figures of Electrum servers.
    pub electrum: Vec<ElectrumFigure>,
    /// Searched for but not found.
    pub not_found: Vec<String>,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Source {
    pub title: String,
    pub address: String,
}

/// One printed number.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Figure {
    pub value: f64,
    /// A name in `History::sources`.
    pub source: String,
    pub certainty: Certainty,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub note: Option<String>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Certainty {
    /// Read on the named page.
    Read,
    /// Said to be printed on the named page, whose text was not available.
    Restated,
}

/// The benchmark of one year.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Edition {
    pub year: u32,
    pub source: String,
    pub machine: String,
    /// The number of implementations that the article claims to have tested.
    pub implementations: u32,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub height: Option<Figure>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub chain_gb: Option<Figure>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub floor: Option<StatedFloor>,
    pub entries: Vec<Entry>,
    pub not_found: Vec<String>,
}

/// The article's lower bound for any node that checks every signature.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct StatedFloor {
    pub signatures: Figure,
    /// Wall time per signature, with all threads working.
    pub nanoseconds: Figure,
    /// As printed.
    pub hours: Figure,
}

impl StatedFloor {
    /// Signatures times nanoseconds, computed again.
    pub fn hours_computed(&self) -> f64 {
        self.signatures.value * self.nanoseconds.value / 1e9 / 3600.0
    }
}

/// One system in one year.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Entry {
    pub system: String,
    pub version: Option<String>,
    pub minutes: Figure,
    pub outcome: Outcome,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ram_gb: Option<Figure>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub disk_read_gb: Option<Figure>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub disk_written_gb: Option<Figure>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub note: Option<String>,
}

impl Entry {
    pub fn hours(&self) -> f64 {
        self.minutes.value / 60.0
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Outcome {
    /// It reached the tip in `minutes`.
    Finished,
    /// It did not; `minutes` is the article's estimate.
    Projected,
}

/// A change printed in an article.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct PrintedDelta {
    pub year: u32,
    pub previous: u32,
    /// A system, or `chain`: its size.
    pub subject: String,
    /// 0.40 is 40 % more.
    pub change: Figure,
}

/// One figure of a published comparison of Electrum servers.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ElectrumFigure {
    pub year: u32,
    pub server: String,
    pub quantity: String,
    /// `exactly`, `about`, `at most`, `at least`.
    pub relation: String,
    pub unit: String,
    pub figure: Figure,
}

impl History {
    /// The compiled-in file. A test ensures that it parses; otherwise it would be empty.
    pub fn load() -> &'static History {
        static HISTORY: OnceLock<History> = OnceLock::new();
        HISTORY.get_or_init(|| serde_json::from_str(PUBLISHED).unwrap_or_default())
    }

    /// The years with at least one system, in order.
    pub fn years(&self) -> Vec<u32> {
        self.editions.iter().filter(|edition| !edition.entries.is_empty()).map(|edition| edition.year).collect()
    }

    pub fn edition(&self, year: u32) -> Option<&Edition> {
        self.editions.iter().find(|edition| edition.year == year)
    }

    /// The systems of a year, the fastest first.
    pub fn entries(&self, year: u32) -> Vec<&Entry> {
        let mut entries: Vec<&Entry> =
            self.edition(year).map(|edition| edition.entries.iter().collect()).unwrap_or_default();
        entries.sort_by(|a, b| a.minutes.value.total_cmp(&b.minutes.value));
        entries
    }

    /// The source of a figure.
    pub fn source(&self, figure: &Figure) -> Option<&Source> {
        self.sources.get(&figure.source)
    }

    /// All systems named in any edition, sorted by name.
    pub fn systems(&self) -> Vec<&str> {
        let mut names: Vec<&str> =
            self.editions.iter().flat_map(|edition| &edition.entries).map(|entry| entry.system.as_str()).collect();
        names.sort_unstable();
        names.dedup();
        names
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn figures(history: &History) -> Vec<&Figure> {
        let mut all: Vec<&Figure> = history.printed_deltas.iter().map(|delta| &delta.change).collect();
        all.extend(history.electrum.iter().map(|entry| &entry.figure));
        for edition in &history.editions {
            all.extend(edition.height.iter().chain(&edition.chain_gb));
            all.extend(edition.floor.iter().flat_map(|floor| [&floor.signatures, &floor.nanoseconds, &floor.hours]));
            for entry in &edition.entries {
                all.push(&entry.minutes);
                all.extend(entry.ram_gb.iter().chain(&entry.disk_read_gb).chain(&entry.disk_written_gb));
            }
        }
        all
    }

    #[test]
    fn the_file_is_read_whole_and_every_figure_has_the_address_of_its_source() {
        let history: History = serde_json::from_str(PUBLISHED).unwrap();
        assert_eq!(&history, History::load());
        assert!(figures(&history).len() > 50);
        for figure in figures(&history) {
            let source = history.source(figure).unwrap_or_else(|| panic!("no source {}", figure.source));
            assert!(source.address.starts_with("https://"), "{}", source.address);
            assert!(figure.value > 0.0, "{figure:?}");
        }
        for edition in &history.editions {
            assert!(history.sources.contains_key(&edition.source));
        }
    }

    #[test]
    fn years_and_systems_are_those_of_the_articles() {
        let history = History::load();
        assert_eq!(history.years(), [2018, 2019, 2020, 2023, 2025]);
        for system in
            ["Bitcoin Core", "Gocoin", "Bitcoin Knots", "libbitcoin", "Mako", "bcoin", "btcd", "Parity Bitcoin"]
        {
            assert!(history.systems().contains(&system), "{system}");
        }
        for absent in ["Stratis", "Blockcore", "Zebra BTC"] {
            assert!(history.not_found.iter().any(|line| line.contains(absent)), "{absent}");
        }
        let fastest: Vec<&str> = history.entries(2025).iter().map(|entry| entry.system.as_str()).collect();
        assert_eq!(fastest, ["Bitcoin Core", "Gocoin", "libbitcoin", "Mako", "btcd"]);
        assert_eq!(history.entries(2025).iter().filter(|entry| entry.outcome == Outcome::Projected).count(), 1);
        assert!(history.entries(1999).is_empty());
        for edition in &history.editions {
            assert!(edition.entries.len() <= usize::try_from(edition.implementations).unwrap());
            assert!(
                edition.entries.len() == usize::try_from(edition.implementations).unwrap()
                    || !edition.not_found.is_empty()
            );
        }
    }

    #[test]
    fn the_floors_the_articles_state_follow_from_their_count_and_their_nanoseconds() {
        let history = History::load();
        let mut seen = Vec::new();
        for edition in &history.editions {
            let Some(floor) = &edition.floor else { continue };
            // With as many decimals as the article prints: 3.45 and 4.6.
            let printed = floor.hours.value.to_string();
            let decimals = printed.split_once('.').map_or(0, |(_, digits)| digits.len());
            assert_eq!(format!("{:.decimals$}", floor.hours_computed()), printed, "{}", edition.year);
            seen.push((edition.year, (floor.hours_computed() * 1e3).round() / 1e3));
        }
        assert_eq!(seen, [(2023, 3.446), (2025, 4.614)]);
    }

    #[test]
    fn an_unknown_field_is_refused() {
        let text = PUBLISHED.replacen("\"about\"", "\"abuot\"", 1);
        assert!(serde_json::from_str::<History>(&text).is_err());
    }
}
