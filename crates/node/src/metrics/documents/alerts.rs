//! [`ALERTS`] and [`FRONT_ALERTS`], and the files of Prometheus: how to scrape a node, and when to alert the operator.

/// An alert.
#[derive(Debug)]
pub(crate) struct Alert {
    pub(crate) name: &'static str,
    pub(crate) expression: &'static str,
    /// How long it must hold.
    pub(crate) hold: &'static str,
    pub(crate) severity: &'static str,
    pub(crate) summary: &'static str,
    /// What to do.
    pub(crate) advice: &'static str,
}

/// The alerts, the most serious first.
#[rustfmt::skip]
pub(crate) const ALERTS: &[Alert] = &[
    Alert { name: "LydianDisagreement", expression: "lydian_referee_disagreements_total > 0 or lydian_warning{warning=~\"second_opinion|signature_engine\"} > 0", hold: "0m", severity: "critical", summary: "Two implementations disagree about a signature or a block.", advice: "Lydian uses libsecp256k1 alone from now on. Keep the file that the log names, and report it." },
    Alert { name: "LydianFork", expression: "lydian_warning{warning=~\"invalid_chain|unknown_rules\"} > 0 or lydian_reorganisation_depth > 5 and increase(lydian_reorganisations_total[1h]) > 0", hold: "0m", severity: "critical", summary: "The chain forked: an invalid chain has more work, new rules are active, or a deep reorganisation happened.", advice: "Compare the tip with other nodes (getchaintips), and wait with payments." },
    Alert { name: "LydianStuckTip", expression: "time() - lydian_tip_time_seconds > 7200 and lydian_initial_download == 0", hold: "10m", severity: "critical", summary: "No block for two hours.", advice: "Compare the height with other nodes, and look at the peers (getpeerinfo)." },
    Alert { name: "LydianSyncStuck", expression: "lydian_initial_download == 1 and increase(lydian_blocks_connected_total[30m]) == 0 and increase(lydian_download_bytes_total[30m]) == 0 and lydian_headers_height > bitcoin_blocks", hold: "30m", severity: "warning", summary: "The sync makes no progress.", advice: "Look at the peers and at the log." },
    Alert { name: "LydianNoPeers", expression: "bitcoin_conn_out == 0", hold: "10m", severity: "critical", summary: "The node has no outbound peer.", advice: "Check the network and the clock of the machine." },
    Alert { name: "LydianDiskNearlyFull", expression: "lydian_disk_free_bytes < 10e9", hold: "5m", severity: "critical", summary: "A disk of the node has less than 10 GB left.", advice: "Free space, or prune (-prune). The node stops when the disk is full." },
    Alert { name: "LydianDiskFullSoon", expression: "predict_linear(lydian_disk_free_bytes[6h], 7 * 86400) < 0", hold: "1h", severity: "warning", summary: "A disk of the node will be full within a week.", advice: "Free space, or prune (-prune)." },
    Alert { name: "LydianIndexFailed", expression: "lydian_index_failed > 0", hold: "0m", severity: "warning", summary: "An error stopped an index.", advice: "getindexinfo has the error; a restart tries again." },
    Alert { name: "LydianIndexLag", expression: "lydian_index_lag_blocks > 12 and on (job, instance) lydian_initial_download == 0", hold: "30m", severity: "warning", summary: "An index is behind the chain.", advice: "It is being built, or the disk is too slow." },
    Alert { name: "LydianClock", expression: "lydian_clock_out_of_sync > 0", hold: "10m", severity: "warning", summary: "The clock of the machine differs from those of the peers.", advice: "Start a time service, such as systemd-timesyncd." },
    Alert { name: "LydianDown", expression: "up{job=\"lydian\"} == 0 or absent(lydian_build_info)", hold: "5m", severity: "critical", summary: "The node does not answer.", advice: "Look at its log, and at the login of the scrape." },
];

/// The alerts for front ends, the most serious first.
#[rustfmt::skip]
pub(crate) const FRONT_ALERTS: &[Alert] = &[
    Alert { name: "LydianFrontEndUnhealthy", expression: "lydian_front_up == 0", hold: "1m", severity: "critical", summary: "A front end answers no wallet.", advice: "/health and its log have the reason: the store, or all nodes." },
    Alert { name: "LydianFrontEndDown", expression: "up{job=\"lydian-front\"} == 0", hold: "1m", severity: "critical", summary: "A front end does not answer.", advice: "Look at its log. The other front ends have its wallets." },
    Alert { name: "LydianFrontEndBehind", expression: "scalar(max(lydian_front_height)) - lydian_front_height > 1", hold: "1m", severity: "warning", summary: "A front end is blocks behind another one.", advice: "Look at its log: it does not reach the store, or no node that has the blocks." },
    Alert { name: "LydianFrontEndStale", expression: "lydian_front_lag_seconds > 30", hold: "0m", severity: "warning", summary: "A front end has no current data for half a minute; after one minute its sessions end.", advice: "/health and its log have the reason: the store, all nodes, or the node that writes the index." },
    Alert { name: "LydianFrontEndNodesFail", expression: "rate(lydian_front_node_failures_total[5m]) > 0.1 * rate(lydian_front_node_requests_total[5m])", hold: "10m", severity: "warning", summary: "More than a tenth of the requests to nodes fail.", advice: "A node of -feed is down, or of another chain: see the log." },
];

pub(super) fn rules_document() -> String {
    rules("Alerts for Lydian.", "Thresholds are for mainnet; docs/metrics.md has every figure.", "lydian", ALERTS)
}

pub(super) fn front_rules_document() -> String {
    rules(
        "Alerts for front ends of Lydian.",
        "The job of Prometheus is `lydian-front`: see docs/scale.md, which has every figure.",
        "lydian-front",
        FRONT_ALERTS,
    )
}

fn rules(title: &str, note: &str, group: &str, alerts: &[Alert]) -> String {
    let mut text = format!(
        "# {title} Generated by `make generate` from the table in crates/node/src/metrics/documents/alerts.rs.\n\
         # {note}\ngroups:\n  - name: {group}\n    rules:\n"
    );
    for alert in alerts {
        let Alert { name, expression, hold, severity, summary, advice } = alert;
        text += &format!("      - alert: {name}\n        expr: >-\n          {expression}\n");
        text += &format!("        for: {hold}\n        labels:\n          severity: {severity}\n");
        text +=
            &format!("        annotations:\n          summary: \"{summary}\"\n          description: \"{advice}\"\n");
    }
    text
}

pub(super) fn scrape_document() -> String {
    "# A configuration of Prometheus that scrapes one node on this machine. Generated by `make generate`.\n\
     # The login is a user of -rpcauth; its password stands alone in the file. See docs/metrics.md.\n\
     global:\n  scrape_interval: 15s\n  evaluation_interval: 15s\n\
     rule_files:\n  - lydian.rules.yml\n\
     scrape_configs:\n  - job_name: lydian\n    metrics_path: /metrics\n    basic_auth:\n      username: prometheus\n      \
     password_file: /etc/prometheus/lydian.password\n    static_configs:\n      - targets: [\"127.0.0.1:8380\"]\n"
        .to_owned()
}
