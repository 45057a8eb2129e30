//! The documents that follow from the tables of figures: `docs/metrics.md`, the Grafana dashboards, and what Prometheus
//! needs to scrape and to alert. Input: the table, the lists of panels and alerts here. Output: texts, the same on
//! every machine. A test checks that every expression has figures of the table only.

mod alerts;
mod front_panels;
mod grafana;
mod page;
mod panels;

/// A document.
#[derive(Debug)]
struct Document {
    /// In the repository.
    path: &'static str,
    make: fn() -> String,
}

/// The documents. Printed by `lydian -help-metrics`.
const DOCUMENTS: &[Document] = &[
    Document { path: "docs/metrics.md", make: page::document },
    Document { path: "contrib/grafana/lydian.json", make: grafana::document },
    Document { path: "contrib/grafana/lydian-front.json", make: grafana::front_document },
    Document { path: "contrib/prometheus/lydian.yml", make: alerts::scrape_document },
    Document { path: "contrib/prometheus/lydian.rules.yml", make: alerts::rules_document },
    Document { path: "contrib/prometheus/lydian-front.rules.yml", make: alerts::front_rules_document },
];

/// All documents, each after a line with its path.
pub(crate) fn all() -> String {
    DOCUMENTS.iter().map(|Document { path, make }| format!("==> {path} <==\n{}", make())).collect()
}

#[cfg(test)]
mod tests {
    use super::super::abouts;
    use super::alerts::{ALERTS, Alert, FRONT_ALERTS};
    use super::front_panels::FRONT_PANELS;
    use super::panels::{PANELS, Panel};
    use super::*;
    use crate::front::figures::FIGURES;
    use lydian_electrum::figures::FIGURES as ELECTRUM_FIGURES;
    use lydian_esplora::figures::FIGURES as ESPLORA_FIGURES;
    use lydian_serve::figures::{About, Kind};
    use std::collections::BTreeSet;

    /// The names in an expression that are figures.
    fn figures(expression: &str) -> impl Iterator<Item = &str> {
        let words = expression.split(|one: char| !one.is_ascii_alphanumeric() && one != '_');
        words.filter(|word| word.starts_with("lydian_") || word.starts_with("bitcoin_"))
    }

    /// The series of figures.
    fn series<'a>(abouts: impl Iterator<Item = &'a About>) -> BTreeSet<String> {
        let mut series = BTreeSet::new();
        for about in abouts {
            match about.kind {
                Kind::Histogram => {
                    series.extend(["_bucket", "_sum", "_count"].map(|suffix| format!("{}{suffix}", about.name)));
                }
                Kind::Counter | Kind::Gauge => {
                    series.insert(about.name.to_owned());
                }
            }
        }
        series
    }

    /// Every expression has figures, and only these. Returns the figures of panels.
    fn check(
        series: &BTreeSet<String>,
        panels: &[Panel],
        alerts: &[Alert],
        expressions_min: usize,
    ) -> BTreeSet<String> {
        let panels = panels.iter().flat_map(|panel| panel.queries).map(|query| query.expression);
        let shown = panels.clone().flat_map(figures).map(str::to_owned).collect();
        let mut found = 0;
        for expression in panels.chain(alerts.iter().map(|alert| alert.expression)) {
            // Of every scrape.
            let has_some = figures(expression).count() > 0 || expression.starts_with("up{");
            assert!(has_some, "{expression}");
            for name in figures(expression) {
                assert!(series.contains(name), "{name} is not in the table: {expression}");
            }
            found += 1;
        }
        assert!(found > expressions_min, "{found}");
        shown
    }

    #[test]
    fn expressions_have_figures_of_the_table_only() {
        let series = series(abouts());
        check(&series, PANELS, ALERTS, 50);
    }

    /// The figures of front ends are their own, and those of the two servers.
    #[test]
    fn expressions_of_front_ends_have_their_figures_only() {
        let own = FIGURES.iter().map(|figure| &figure.about);
        let of_servers = ELECTRUM_FIGURES.iter().map(|figure| &figure.about);
        let of_servers = of_servers.chain(ESPLORA_FIGURES.iter().map(|figure| &figure.about));
        let series = series(own.clone().chain(of_servers));
        let shown = check(&series, FRONT_PANELS, FRONT_ALERTS, 25);
        for about in own {
            assert!(shown.contains(about.name), "no panel shows {}", about.name);
        }
    }

    #[test]
    fn every_document_is_printed() {
        let all = all();
        for Document { path, make } in DOCUMENTS {
            assert!(all.contains(&format!("==> {path} <==\n")), "{path}");
            let text = make();
            assert!(text.ends_with('\n') && !text.contains("==>"), "{path}");
        }
    }
}
