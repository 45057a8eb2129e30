//! [`FRONT_PANELS`]: what the Grafana dashboard of front ends shows. Data only.
//!
//! In an expression, `%` stands for the labels that choose the front ends.

use super::panels::{Panel, lines, query, stat};

const HEALTH: &str = "Health";
const SOURCES: &str = "Store and nodes";
const WALLETS: &str = "Wallets";
const PROCESS: &str = "Process";

/// The panels, by row.
#[rustfmt::skip]
pub(crate) const FRONT_PANELS: &[Panel] = &[
    stat(HEALTH, "Serves", "bool_yes_no", &[query("{{instance}}", "lydian_front_up{%}")]),
    stat(HEALTH, "Height", "none", &[query("{{instance}}", "lydian_front_height{%}")]),
    stat(HEALTH, "Time without current data", "s", &[query("{{instance}}", "lydian_front_lag_seconds{%}")]),
    stat(HEALTH, "Follows a node", "bool_yes_no", &[query("{{instance}}", "lydian_front_nodes_followed{%}")]),
    lines(HEALTH, "Blocks behind the first", "short", &[query("{{instance}}", "scalar(max(lydian_front_height{%})) - lydian_front_height{%}")]),
    lines(HEALTH, "Time without current data", "s", &[query("{{instance}}", "lydian_front_lag_seconds{%}")]),
    lines(HEALTH, "Transactions in the mempool", "short", &[query("{{instance}}", "lydian_front_mempool_transactions{%}")]),

    lines(SOURCES, "Values read from the store a second", "short", &[query("{{instance}}", "rate(lydian_front_store_reads_total{%}[$__rate_interval])")]),
    lines(SOURCES, "Calls of the store a second", "reqps", &[query("{{instance}}", "rate(lydian_front_store_calls_total{%}[$__rate_interval])")]),
    lines(SOURCES, "Changes of the index an hour", "short", &[query("{{instance}}", "delta(lydian_front_commit_sequence{%}[1h])")]),
    lines(SOURCES, "Requests to nodes a second", "reqps", &[query("{{instance}}", "rate(lydian_front_node_requests_total{%}[$__rate_interval])")]),
    lines(SOURCES, "Failed requests to nodes a second", "reqps", &[query("{{instance}}", "rate(lydian_front_node_failures_total{%}[$__rate_interval])")]),
    lines(SOURCES, "Nodes of -feed", "short", &[query("{{instance}}", "lydian_front_nodes{%}")]),

    lines(WALLETS, "Electrum sessions", "short", &[query("{{instance}}", "lydian_electrum_sessions{%}")]),
    lines(WALLETS, "Electrum subscriptions", "short", &[query("{{instance}}", "lydian_electrum_subscriptions{%}")]),
    lines(WALLETS, "Connections", "short", &[
        query("Electrum, {{instance}}", "lydian_electrum_connections{%}"),
        query("Esplora, {{instance}}", "lydian_esplora_connections{%}"),
    ]),
    lines(WALLETS, "Electrum requests a second", "reqps", &[query("{{method}}", "topk(8, sum by (method) (rate(lydian_electrum_request_seconds_count{%}[$__rate_interval])))")]),
    lines(WALLETS, "Electrum: p99 by method", "s", &[query("{{method}}", "topk(8, histogram_quantile(0.99, sum by (le, method) (rate(lydian_electrum_request_seconds_bucket{%}[5m]))))")]),
    lines(WALLETS, "Electrum: errors and throttled clients a second", "short", &[
        query("errors", "sum(rate(lydian_electrum_errors_total{%}[$__rate_interval]))"),
        query("throttled", "sum(rate(lydian_electrum_throttled_total{%}[$__rate_interval]))"),
        query("ended", "sum(rate(lydian_electrum_ended_total{%}[$__rate_interval]))"),
    ]),
    lines(WALLETS, "Esplora requests a second", "reqps", &[query("{{path}}", "topk(8, sum by (path) (rate(lydian_esplora_request_seconds_count{%}[$__rate_interval])))")]),
    lines(WALLETS, "Esplora: p99 by path", "s", &[query("{{path}}", "topk(8, histogram_quantile(0.99, sum by (le, path) (rate(lydian_esplora_request_seconds_bucket{%}[5m]))))")]),
    lines(WALLETS, "Esplora: errors a second", "short", &[query("errors", "sum(rate(lydian_esplora_errors_total{%}[$__rate_interval]))")]),

    lines(PROCESS, "Processor time", "short", &[query("{{instance}}", "rate(lydian_process_cpu_seconds_total{%}[$__rate_interval])")]),
    lines(PROCESS, "Memory", "bytes", &[
        query("process, {{instance}}", "lydian_process_memory_bytes{%}"),
        query("mempool, {{instance}}", "lydian_front_mempool_bytes{%}"),
        query("filters, {{instance}}", "lydian_front_filter_bytes{%}"),
    ]),
    lines(PROCESS, "Open files and sockets", "short", &[query("{{instance}}", "lydian_process_open_files{%}")]),
];
