//! `docs/metrics.md`: every figure, by its group.

use super::super::abouts;
use lydian_serve::figures::About;
use lydian_stdx::wrap;

/// The width of documents.
const WIDTH: usize = 100;

/// What stands before the tables.
const HEAD: &str = "\
<!-- Generated from the tables of figures by `make generate`. -->
# Metrics

The page's port serves the figures of the node for [Prometheus](https://prometheus.io) at
`/metrics`, in its text format 0.0.4:

```
curl --user prometheus:PASSWORD http://127.0.0.1:8380/metrics
```

The login is HTTP basic authentication with the RPC cookie or a user of `-rpcauth`. Make a user for
Prometheus alone, and forbid it everything else:

```
rpcauth=prometheus:SALT$HASH          # from Bitcoin Core's share/rpcauth/rpcauth.py
rpcwhitelist=prometheus:lydian_figures
```

[`contrib/prometheus/lydian.yml`](../contrib/prometheus/lydian.yml) scrapes a node on the same
machine, and [`lydian.rules.yml`](../contrib/prometheus/lydian.rules.yml) has alerts: a stuck tip, a
fork, a disagreement, a full disk, no peers, an index that is behind.
[`contrib/grafana/lydian.json`](../contrib/grafana/lydian.json) is a dashboard for import into
Grafana 10 or later. Every expression of the three files, and of the exporter's own dashboard, is
evaluated by a real Prometheus in our tests (`crates/node/tests/rpc/metrics.rs`). Grafana itself
could not be installed there, so the dashboard has not been seen in Grafana yet. Front ends have
[figures, a dashboard and alerts of their own](scale.md#figures).

An answer takes snapshots only and makes no block wait. The figures that need files or the last
block are read beside it; an answer waits 3 ms for them, so on a long chain those of a new block may
come one scrape later. A figure that is not known, for example during the start, is left out. The
same values are shown by the page.

No label names a peer, an address, a wallet, or anything else that a client sends: methods are those
of Lydian's tables, and everything else counts as `other`.

";

/// What stands before the exporter's figures.
const CORE: &str = "\
Figures of [jvstein's
bitcoin-prometheus-exporter](https://github.com/jvstein/bitcoin-prometheus-exporter) under the same
names and in the same units, so that dashboards for it work without it. The values are those that it
computes from RPC, with these exceptions:

- `bitcoin_est_smart_fee_*` are missing until the node has an estimate.
- `bitcoin_ban_created` and `bitcoin_banned_until` have one series without labels, since the
  exporter's labels name the banned addresses. `lydian_bans` is their number.
- The exporter refreshes its values every five seconds at most; these are always current.
";

/// The groups: what the names begin with, the heading, and a text.
const GROUPS: &[(&str, &str, &str)] = &[
    ("bitcoin_", "Figures of the exporter", CORE),
    ("lydian_rpc_", "RPC", "Calls of programs; those that the page and the other servers make are not counted.\n"),
    ("lydian_electrum_", "Electrum", "Missing without `-electrum`.\n"),
    ("lydian_esplora_", "Esplora", "Missing without `-esplora`.\n"),
    ("lydian_feed_", "Feed", "Missing without `-feedbind`.\n"),
    ("lydian_", "The node", ""),
];

/// The group of a figure: the first whose beginning it has.
fn group(about: &About) -> usize {
    GROUPS.iter().position(|(start, ..)| about.name.starts_with(start)).unwrap_or(GROUPS.len() - 1)
}

pub(super) fn document() -> String {
    let mut text = HEAD.to_owned();
    let most: usize = abouts().map(About::series_max).sum();
    let bounds: Vec<String> = lydian_serve::figures::SECONDS.iter().map(f64::to_string).collect();
    let words = format!(
        "All figures together have at most {most} series. Times in histograms are in buckets with these upper bounds, \
         in seconds: {}.",
        bounds.join(", ")
    );
    text += &format!("{}\n", wrap(&words, WIDTH, ""));
    // The node stands before its servers.
    for index in [0, 4, 1, 2, 3] {
        let (_, heading, words) = GROUPS[index];
        text += &format!("\n## {heading}\n\n");
        if !words.is_empty() {
            text += &format!("{words}\n");
        }
        text += "| figure | kind | unit | labels | what it is |\n|---|---|---|---|---|\n";
        for about in abouts().filter(|about| group(about) == index) {
            let labels: Vec<String> = about.labels.iter().map(|label| format!("`{}`", label.name)).collect();
            let unit = if about.unit.is_empty() { "-" } else { about.unit };
            let labels = if labels.is_empty() { "-".to_owned() } else { labels.join(", ") };
            let help = about.help.replace('*', "\\*").replace('|', "\\|");
            text += &format!("| `{}` | {} | {unit} | {labels} | {help} |\n", about.name, about.kind.name());
        }
    }
    text
}
