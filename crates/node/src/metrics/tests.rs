//! The table of figures: names, words, series.

use super::*;
use std::collections::BTreeSet;

#[test]
fn names_are_those_of_prometheus() {
    let mut seen = BTreeSet::new();
    for about in abouts() {
        let name = about.name;
        assert!(seen.insert(name), "{name} is there twice");
        assert!(name.bytes().all(|one| one.is_ascii_lowercase() || one.is_ascii_digit() || one == b'_'), "{name}");
        let is_counter = about.kind == lydian_serve::figures::Kind::Counter;
        // The exporter's gauges have the names that they have.
        assert_eq!(is_counter, name.ends_with("_total"), "{name}");
        assert!(about.help.ends_with('.') && about.help.len() < 200, "{name}: {}", about.help);
        for label in about.labels {
            let values = (label.values)();
            assert!(!values.is_empty() && values.iter().collect::<BTreeSet<_>>().len() == values.len(), "{name}");
        }
    }
    assert!(seen.len() > 100, "{}", seen.len());
}

#[test]
fn all_figures_together_have_few_series() {
    let most: usize = abouts().map(About::series_max).sum();
    assert!((1_000..=SERIES_MAX).contains(&most), "{most}");
}
