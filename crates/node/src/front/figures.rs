//! [`FIGURES`]: the figures of a front end, besides those of its servers. Input: a [`Reading`]. They are listed in
//! docs/scale.md.

use crate::process::{self, Usage};
use lydian_front::Figures;
use lydian_serve::figures::{Figure, Samples, float};

/// What the figures are read from.
#[derive(Debug)]
pub(crate) struct Reading {
    is_up: bool,
    /// `None` while the front end starts.
    front: Option<Figures>,
    process: Usage,
}

impl Reading {
    pub(super) fn new(is_up: bool, front: Option<Figures>) -> Reading {
        Reading { is_up, front, process: process::usage() }
    }
}

fn of_front(reading: &Reading, out: &mut Samples, value: fn(&Figures) -> u64) {
    out.known(reading.front.as_ref().map(|front| float(value(front))));
}

pub(crate) const FIGURES: &[Figure<Reading>] = &[
    Figure::gauge("lydian_front_up", "", "Whether /health answers 200.", |reading, out| {
        out.count(u64::from(reading.is_up));
    }),
    Figure::gauge("lydian_front_height", "blocks", "Height of the index in the store.", |reading, out| {
        out.known(reading.front.as_ref().and_then(|front| front.height).map(|height| float(u64::from(height))));
    }),
    Figure::gauge(
        "lydian_front_commit_sequence",
        "",
        "Sequence of the commit row that answers are made from.",
        |reading, out| of_front(reading, out, |front| front.commit_sequence),
    ),
    Figure::gauge(
        "lydian_front_lag_seconds",
        "seconds",
        "Time since index and mempool were current together; 0 while they are.",
        |reading, out| out.known(reading.front.as_ref().map(|front| front.lag.as_secs_f64())),
    ),
    Figure::gauge(
        "lydian_front_mempool_transactions",
        "transactions",
        "Transactions in the copy of the mempool.",
        |reading, out| of_front(reading, out, |front| front.mempool_count as u64),
    ),
    Figure::gauge("lydian_front_mempool_bytes", "bytes", "Memory of the copy of the mempool.", |reading, out| {
        of_front(reading, out, |front| front.mempool_bytes as u64);
    }),
    Figure::counter(
        "lydian_front_store_reads_total",
        "values",
        "Values that were asked of the store.",
        |reading, out| {
            of_front(reading, out, |front| front.store_reads);
        },
    ),
    Figure::counter("lydian_front_store_calls_total", "calls", "Calls of the store.", |reading, out| {
        of_front(reading, out, |front| front.store_calls);
    }),
    Figure::gauge("lydian_front_filter_bytes", "bytes", "Filters of used scripts in memory.", |reading, out| {
        of_front(reading, out, |front| front.filter_bytes as u64);
    }),
    Figure::gauge("lydian_front_nodes", "nodes", "Nodes of -feed.", |reading, out| {
        of_front(reading, out, |front| front.nodes.len() as u64);
    }),
    Figure::gauge(
        "lydian_front_nodes_followed",
        "nodes",
        "Nodes whose mempool is followed: 1, or 0.",
        |reading, out| {
            of_front(reading, out, |front| front.nodes.iter().filter(|node| node.is_followed).count() as u64);
        },
    ),
    Figure::counter("lydian_front_node_requests_total", "requests", "Requests to nodes.", |reading, out| {
        of_front(reading, out, |front| front.nodes.iter().map(|node| node.requests).sum());
    }),
    Figure::counter(
        "lydian_front_node_failures_total",
        "requests",
        "Requests to nodes that failed.",
        |reading, out| {
            of_front(reading, out, |front| front.nodes.iter().map(|node| node.failures).sum());
        },
    ),
    Figure::counter("lydian_process_cpu_seconds_total", "seconds", "Processor time of the process.", |reading, out| {
        out.number(reading.process.cpu.as_secs_f64());
    }),
    Figure::gauge("lydian_process_memory_bytes", "bytes", "Memory of the process that is resident.", |reading, out| {
        out.known(reading.process.memory_bytes.map(float));
    }),
    Figure::gauge("lydian_process_open_files", "files", "Open files and sockets of the process.", |reading, out| {
        out.known(reading.process.open_files.map(float));
    }),
];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    #[allow(clippy::disallowed_methods, reason = "a test reads the checkout")]
    fn every_figure_is_in_the_documentation() {
        let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/scale.md");
        let text = std::fs::read_to_string(path).unwrap();
        for figure in FIGURES {
            assert!(text.contains(&format!("`{}`", figure.about.name)), "docs/scale.md lacks {}", figure.about.name);
        }
    }
}
