//! The documents that follow from the table of figures: `docs/metrics.md`, the Grafana dashboard, and what Prometheus
//! needs to scrape and to alert. Input: the table, the lists of panels and alerts here. Output: texts, the same on
//! every machine. A test checks that every expression has figures of the table only.

mod alerts;
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
    Document { path: "contrib/prometheus/lydian.yml", make: alerts::scrape_document },
    Document { path: "contrib/prometheus/lydian.rules.yml", make: alerts::rules_document },
];

/// All documents, each after a line with its path.
pub(crate) fn all() -> String {
    DOCUMENTS.iter().map(|Document { path, make }| format!("==> {path} <==\n{}", make())).collect()
}

#[cfg(test)]
mod tests {
    use super::super::abouts;
    use super::alerts::ALERTS;
    use super::panels::PANELS;
    use super::*;
    use lydian_serve::figures::Kind;
    use std::collections::BTreeSet;

    /// The names in an expression that are figures.
    fn figures(expression: &str) -> impl Iterator<Item = &str> {
        let words = expression.split(|one: char| !one.is_ascii_alphanumeric() && one != '_');
        words.filter(|word| word.starts_with("lydian_") || word.starts_with("bitcoin_"))
    }

    #[test]
    fn expressions_have_figures_of_the_table_only() {
        let mut series = BTreeSet::new();
        for about in abouts() {
            match about.kind {
                Kind::Histogram => {
                    series.extend(["_bucket", "_sum", "_count"].map(|suffix| format!("{}{suffix}", about.name)));
                }
                Kind::Counter | Kind::Gauge => {
                    series.insert(about.name.to_owned());
                }
            }
        }
        let panels = PANELS.iter().flat_map(|panel| panel.queries).map(|query| query.expression);
        let mut found = 0;
        for expression in panels.chain(ALERTS.iter().map(|alert| alert.expression)) {
            let mut has_some = false;
            for name in figures(expression) {
                assert!(series.contains(name), "{name} is not in the table: {expression}");
                has_some = true;
            }
            assert!(has_some, "{expression}");
            found += 1;
        }
        assert!(found > 50, "{found}");
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
