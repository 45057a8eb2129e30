//! [`PANELS`]: what the Grafana dashboard of nodes shows. Data only.
//!
//! In an expression, `%` stands for the labels that choose the node.

/// A panel.
#[derive(Debug)]
pub(crate) struct Panel {
    pub(crate) row: &'static str,
    pub(crate) title: &'static str,
    /// A unit of Grafana.
    pub(crate) unit: &'static str,
    /// Whether it shows the last values only.
    pub(crate) is_stat: bool,
    pub(crate) queries: &'static [Query],
}

/// A line, or a set of lines, in a panel.
#[derive(Debug)]
pub(crate) struct Query {
    pub(crate) expression: &'static str,
    pub(crate) legend: &'static str,
}

pub(super) const fn query(legend: &'static str, expression: &'static str) -> Query {
    Query { expression, legend }
}

pub(super) const fn lines(
    row: &'static str,
    title: &'static str,
    unit: &'static str,
    queries: &'static [Query],
) -> Panel {
    Panel { row, title, unit, is_stat: false, queries }
}

pub(super) const fn stat(
    row: &'static str,
    title: &'static str,
    unit: &'static str,
    queries: &'static [Query],
) -> Panel {
    Panel { row, title, unit, is_stat: true, queries }
}

const SYNC: &str = "Sync by stage";
const CHAIN: &str = "Chain";
const PEERS: &str = "Peers";
const MEMPOOL: &str = "Mempool";
const SERVING: &str = "Serving";
const MACHINE: &str = "Machine";

/// The panels, by row.
#[rustfmt::skip]
pub(crate) const PANELS: &[Panel] = &[
    stat(SYNC, "Progress", "percentunit", &[query("validated", "bitcoin_verification_progress{%}")]),
    stat(SYNC, "Blocks left", "short", &[query("blocks", "lydian_headers_height{%} - bitcoin_blocks{%}")]),
    stat(SYNC, "Initial download", "bool_yes_no", &[query("now", "lydian_initial_download{%}")]),
    lines(SYNC, "Heights", "short", &[
        query("headers", "lydian_headers_height{%}"),
        query("validated", "bitcoin_blocks{%}"),
        query("durable", "lydian_durable_height{%}"),
    ]),
    lines(SYNC, "Workers by stage", "short", &[query("{{stage}}", "rate(lydian_stage_seconds_total{%}[$__rate_interval])")]),
    lines(SYNC, "Processor time by stage", "short", &[query("{{stage}}", "rate(lydian_stage_cpu_seconds_total{%}[$__rate_interval])")]),
    lines(SYNC, "Blocks a second", "short", &[
        query("connected", "rate(lydian_blocks_connected_total{%}[$__rate_interval])"),
        query("disconnected", "rate(lydian_blocks_disconnected_total{%}[$__rate_interval])"),
        query("from peers", "rate(lydian_download_blocks_total{%}[$__rate_interval])"),
    ]),
    lines(SYNC, "Bytes of blocks a second", "Bps", &[
        query("validated", "rate(lydian_block_bytes_total{%}[$__rate_interval])"),
        query("from peers", "rate(lydian_download_bytes_total{%}[$__rate_interval])"),
    ]),
    lines(SYNC, "Transactions and inputs a second", "short", &[
        query("transactions", "rate(lydian_transactions_total{%}[$__rate_interval])"),
        query("inputs", "rate(lydian_inputs_total{%}[$__rate_interval])"),
    ]),
    lines(SYNC, "Signature checks a second", "short", &[query("{{engine}}", "rate(lydian_signature_checks_total{%}[$__rate_interval])")]),
    lines(SYNC, "Bytes that wait", "bytes", &[
        query("in the pipeline", "lydian_window_bytes{%}"),
        query("downloaded", "lydian_download_waiting_bytes{%}"),
        query("requested", "lydian_download_in_flight_bytes{%}"),
    ]),
    lines(SYNC, "Coins", "bytes", &[
        query("in memory", "lydian_coins_memory_bytes{%}"),
        query("not on disk", "lydian_coins_pending_bytes{%}"),
        query("limit", "lydian_coins_cache_max_bytes{%}"),
    ]),

    stat(CHAIN, "Height", "none", &[query("height", "bitcoin_blocks{%}")]),
    stat(CHAIN, "Age of the tip", "s", &[query("age", "time() - lydian_tip_time_seconds{%}")]),
    stat(CHAIN, "Warnings", "none", &[query("{{warning}}", "lydian_warning{%}")]),
    stat(CHAIN, "Disagreements", "none", &[
        query("signatures", "lydian_referee_disagreements_total{%}"),
        query("invalid blocks", "lydian_invalid_blocks_total{%}"),
    ]),
    lines(CHAIN, "Latest block", "short", &[
        query("transactions", "bitcoin_latest_block_txs{%}"),
        query("inputs", "bitcoin_latest_block_inputs{%}"),
        query("outputs", "bitcoin_latest_block_outputs{%}"),
    ]),
    lines(CHAIN, "Size of the latest block", "bytes", &[
        query("size", "bitcoin_latest_block_size{%}"),
        query("weight / 4", "bitcoin_latest_block_weight{%} / 4"),
    ]),
    lines(CHAIN, "Fees of the latest block (BTC)", "none", &[query("fees", "bitcoin_latest_block_fee{%}")]),
    lines(CHAIN, "Time to connect a block at the tip", "s", &[
        query("p50", "histogram_quantile(0.5, sum by (le) (rate(lydian_block_connect_seconds_bucket{%}[1h])))"),
        query("p99", "histogram_quantile(0.99, sum by (le) (rate(lydian_block_connect_seconds_bucket{%}[1h])))"),
    ]),
    lines(CHAIN, "Hash rate", "short", &[
        query("120 blocks", "bitcoin_hashps{%}"),
        query("this difficulty", "bitcoin_hashps_neg1{%}"),
    ]),
    lines(CHAIN, "Difficulty", "short", &[query("difficulty", "bitcoin_difficulty{%}")]),
    lines(CHAIN, "Branches and reorganisations", "short", &[
        query("branches", "bitcoin_num_chaintips{%}"),
        query("reorganisations", "increase(lydian_reorganisations_total{%}[1h])"),
        query("depth of the last", "lydian_reorganisation_depth{%}"),
    ]),

    lines(PEERS, "Connections", "short", &[
        query("inbound", "bitcoin_conn_in{%}"),
        query("outbound", "bitcoin_conn_out{%}"),
        query("bans", "lydian_bans{%}"),
    ]),
    lines(PEERS, "Traffic", "Bps", &[
        query("received", "rate(bitcoin_total_bytes_recv{%}[$__rate_interval])"),
        query("sent", "-rate(bitcoin_total_bytes_sent{%}[$__rate_interval])"),
    ]),
    lines(PEERS, "Received by message", "Bps", &[query("{{message}}", "topk(8, rate(lydian_peer_bytes_total{%,direction=\"received\"}[$__rate_interval]))")]),
    lines(PEERS, "Sent by message", "Bps", &[query("{{message}}", "topk(8, rate(lydian_peer_bytes_total{%,direction=\"sent\"}[$__rate_interval]))")]),

    lines(MEMPOOL, "Transactions", "short", &[
        query("transactions", "bitcoin_mempool_size{%}"),
        query("not requested by a peer", "bitcoin_mempool_unbroadcast{%}"),
    ]),
    lines(MEMPOOL, "Size", "bytes", &[
        query("virtual size", "bitcoin_mempool_bytes{%}"),
        query("memory", "bitcoin_mempool_usage{%}"),
        query("limit", "lydian_mempool_max_bytes{%}"),
    ]),
    lines(MEMPOOL, "Minimum fee rate (sat/vB)", "none", &[query("minimum", "bitcoin_mempool_minfee{%} * 1e5")]),
    lines(MEMPOOL, "Fees (BTC)", "none", &[query("fees", "lydian_mempool_fees{%} / 1e8")]),

    lines(SERVING, "Connections", "short", &[
        query("RPC", "lydian_rpc_connections{%}"),
        query("Electrum", "lydian_electrum_connections{%}"),
        query("Esplora", "lydian_esplora_connections{%}"),
    ]),
    lines(SERVING, "Electrum sessions", "short", &[
        query("sessions", "lydian_electrum_sessions{%}"),
        query("subscriptions", "lydian_electrum_subscriptions{%}"),
    ]),
    lines(SERVING, "RPC calls a second", "reqps", &[query("{{method}}", "topk(8, rate(lydian_rpc_request_seconds_count{%}[$__rate_interval]))")]),
    lines(SERVING, "RPC: p99 by method", "s", &[query("{{method}}", "topk(8, histogram_quantile(0.99, sum by (le, method) (rate(lydian_rpc_request_seconds_bucket{%}[5m]))))")]),
    lines(SERVING, "Electrum requests a second", "reqps", &[query("{{method}}", "topk(8, rate(lydian_electrum_request_seconds_count{%}[$__rate_interval]))")]),
    lines(SERVING, "Electrum: p99 by method", "s", &[query("{{method}}", "topk(8, histogram_quantile(0.99, sum by (le, method) (rate(lydian_electrum_request_seconds_bucket{%}[5m]))))")]),
    lines(SERVING, "Esplora requests a second", "reqps", &[query("{{path}}", "topk(8, rate(lydian_esplora_request_seconds_count{%}[$__rate_interval]))")]),
    lines(SERVING, "Errors and throttled clients a second", "short", &[
        query("RPC errors", "sum(rate(lydian_rpc_errors_total{%}[$__rate_interval]))"),
        query("RPC refused", "rate(lydian_rpc_refused_total{%}[$__rate_interval])"),
        query("Electrum errors", "sum(rate(lydian_electrum_errors_total{%}[$__rate_interval]))"),
        query("Electrum throttled", "rate(lydian_electrum_throttled_total{%}[$__rate_interval])"),
        query("Electrum ended", "rate(lydian_electrum_ended_total{%}[$__rate_interval])"),
        query("Esplora errors", "sum(rate(lydian_esplora_errors_total{%}[$__rate_interval]))"),
    ]),
    lines(SERVING, "Feed of front ends", "short", &[
        query("streams", "lydian_feed_streams{%}"),
        query("streams closed in an hour", "increase(lydian_feed_slow_streams_total{%}[1h])"),
    ]),
    lines(SERVING, "Feed: bytes a second", "Bps", &[query("sent", "rate(lydian_feed_sent_bytes_total{%}[$__rate_interval])")]),
    lines(SERVING, "Feed: requests a second", "reqps", &[
        query("{{path}}", "rate(lydian_feed_request_seconds_count{%}[$__rate_interval])"),
        query("refused", "sum(rate(lydian_feed_errors_total{%}[$__rate_interval]))"),
    ]),
    lines(SERVING, "Feed: p99 by path", "s", &[query("{{path}}", "histogram_quantile(0.99, sum by (le, path) (rate(lydian_feed_request_seconds_bucket{%}[5m])))")]),
    lines(SERVING, "Blocks that indexes lack", "short", &[query("{{index}}", "lydian_index_lag_blocks{%}")]),

    lines(MACHINE, "Memory by owner", "bytes", &[
        query("{{owner}}", "lydian_memory_bytes{%}"),
        query("whole process", "lydian_process_memory_bytes{%}"),
    ]),
    lines(MACHINE, "Processor time", "short", &[query("cores", "rate(lydian_process_cpu_seconds_total{%}[$__rate_interval])")]),
    lines(MACHINE, "Disk traffic", "Bps", &[
        query("read", "rate(lydian_process_read_bytes_total{%}[$__rate_interval])"),
        query("written", "-rate(lydian_process_written_bytes_total{%}[$__rate_interval])"),
    ]),
    lines(MACHINE, "Files", "bytes", &[query("{{folder}}", "lydian_disk_bytes{%}")]),
    lines(MACHINE, "Free space", "bytes", &[query("{{folder}}", "lydian_disk_free_bytes{%}")]),
    lines(MACHINE, "Coins read and checkpoints", "short", &[
        query("coins read a second", "rate(lydian_coins_disk_reads_total{%}[$__rate_interval])"),
        query("checkpoints an hour", "increase(lydian_checkpoints_total{%}[1h])"),
    ]),
];
