//! "Delta to last year": how each system's time changed from one edition to another, next to the change printed in the
//! article.
//!
//! Input: the figures of two years. Output: one line per subject, the chain's size first. A change is
//! `value / previous - 1`, as in the articles. If the printed change differs from that of the printed figures, both are
//! given: neither is corrected.

use super::{Entry, Figure, History, Outcome};

/// Minutes and GB are printed as whole numbers.
const HALF: f64 = 0.5;
/// Printed changes are whole percents.
const ROUNDING: f64 = 0.005 + 1e-9;

/// A subject that has figures in both years.
#[derive(Clone, Debug, PartialEq)]
pub struct Delta {
    /// A system, or `chain`: the size of the chain's data.
    pub subject: String,
    /// `minutes` or `GB`.
    pub unit: &'static str,
    pub value: f64,
    pub previous: f64,
    /// Relative change, computed from the two figures: 0.40 is 40 % more.
    pub change: f64,
    /// The change printed in the article, if one was found.
    pub printed: Option<Figure>,
    /// Whether the figure of either year is a projection.
    pub is_projected: bool,
}

impl Delta {
    /// Whether the printed change is consistent with the figures, with all of them rounded to integers; `None` if no
    /// printed change was found.
    pub fn agrees(&self) -> Option<bool> {
        let (low, high) = self.change_bounds();
        self.printed.as_ref().map(|printed| (low - ROUNDING..=high + ROUNDING).contains(&printed.value))
    }

    /// The range of the change if both figures were rounded to integers: 707 GB after 530 GB is 33.2 % to 33.6 %.
    fn change_bounds(&self) -> (f64, f64) {
        let low = (self.value - HALF) / (self.previous + HALF) - 1.0;
        (low, (self.value + HALF) / (self.previous - HALF).max(HALF) - 1.0)
    }

    /// The system's factor over the chain's, by which the articles rank: above 1, it became slower than the chain grew.
    pub fn beside(&self, chain: &Delta) -> f64 {
        (1.0 + self.change) / (1.0 + chain.change)
    }
}

/// The table of `year` compared with `previous`: the chain, then the systems in both, the fastest of `year` first.
/// Empty if a year is unknown.
pub fn deltas(history: &History, year: u32, previous: u32) -> Vec<Delta> {
    let (Some(new), Some(old)) = (history.edition(year), history.edition(previous)) else { return Vec::new() };
    let printed = |subject: &str| {
        let is_it = |delta: &&super::PrintedDelta| {
            (delta.year, delta.previous, delta.subject.as_str()) == (year, previous, subject)
        };
        history.printed_deltas.iter().find(is_it).map(|delta| delta.change.clone())
    };
    let mut lines = Vec::new();
    if let (Some(value), Some(before)) = (&new.chain_gb, &old.chain_gb) {
        let change = value.value / before.value - 1.0;
        let (value, previous) = (value.value, before.value);
        let printed = printed("chain");
        lines.push(Delta {
            subject: "chain".into(),
            unit: "GB",
            value,
            previous,
            change,
            printed,
            is_projected: false,
        });
    }
    for entry in history.entries(year) {
        let Some(before) = old.entries.iter().find(|before| before.system == entry.system) else { continue };
        lines.push(of_system(entry, before, printed(&entry.system)));
    }
    lines
}

fn of_system(entry: &Entry, before: &Entry, printed: Option<Figure>) -> Delta {
    Delta {
        subject: entry.system.clone(),
        unit: "minutes",
        value: entry.minutes.value,
        previous: before.minutes.value,
        change: entry.minutes.value / before.minutes.value - 1.0,
        printed,
        is_projected: [entry, before].iter().any(|entry| entry.outcome == Outcome::Projected),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn percents(year: u32, previous: u32) -> Vec<(String, i64)> {
        #[allow(clippy::cast_possible_truncation, reason = "whole percents below a million")]
        let whole = |delta: &Delta| (delta.subject.clone(), (delta.change * 1000.0).round() as i64);
        deltas(History::load(), year, previous).iter().map(whole).collect()
    }

    /// Computed by hand from the figures: 727 / 518 = 1.403, 1251 / 9636 = 0.130 and so on, in thousandths.
    #[test]
    fn the_tables_follow_from_the_figures() {
        let expect = |pairs: &[(&str, i64)]| pairs.iter().map(|(name, n)| ((*name).to_owned(), *n)).collect::<Vec<_>>();
        let of_2025 =
            [("chain", 334), ("Bitcoin Core", 403), ("Gocoin", 494), ("libbitcoin", -870), ("Mako", 515), ("btcd", 44)];
        assert_eq!(percents(2025, 2023), expect(&of_2025));
        let of_2023 = [
            ("chain", 721),
            ("Bitcoin Core", 519),
            ("Gocoin", 140),
            ("bcoin", 762),
            ("btcd", -43),
            ("libbitcoin", 3364),
        ];
        assert_eq!(percents(2023, 2020), expect(&of_2023));
        assert_eq!(percents(2020, 2019), expect(&[("Bitcoin Core", -145), ("bcoin", 183), ("libbitcoin", 333)]));
        assert_eq!(percents(2019, 2018), expect(&[("Bitcoin Core", 283)]));
    }

    #[test]
    fn printed_changes_stand_beside_ours_whether_they_agree_or_not() {
        let lines = deltas(History::load(), 2025, 2023);
        let chain = lines.first().unwrap();
        // 707 GB are 33.4 % more than 530 GB, but 34 % is printed: 707.5 over 529.5 is 33.6 %.
        assert_eq!((chain.agrees(), chain.printed.as_ref().unwrap().value), (Some(true), 0.34));
        let wrong = |change: f64| {
            let mut delta = chain.clone();
            delta.printed.as_mut().unwrap().value = change;
            delta.agrees()
        };
        assert_eq!([0.32, 0.33, 0.35].map(wrong), [Some(false), Some(true), Some(false)]);
        let core = lines.iter().find(|delta| delta.subject == "Bitcoin Core").unwrap();
        assert_eq!(core.agrees(), Some(true));
        assert!((core.beside(chain) - 1.0521).abs() < 1e-4);
        assert!(lines.iter().filter(|delta| delta.agrees().is_none()).count() >= 4);
        assert!(lines.iter().any(|delta| delta.subject == "Gocoin" && delta.is_projected));
    }

    #[test]
    fn a_year_without_figures_has_no_table() {
        assert!(deltas(History::load(), 2023, 2022).is_empty());
        assert!(deltas(History::load(), 2024, 2023).is_empty());
    }

    #[test]
    fn every_printed_change_belongs_to_two_known_years() {
        for delta in &History::load().printed_deltas {
            assert!(History::load().edition(delta.year).is_some() && History::load().edition(delta.previous).is_some());
        }
    }
}
