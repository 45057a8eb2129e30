//! The series of the history: a table. Input: two readings of the node's counters, and the seconds between them.
//! Output: one value for each series, `None` where it is not known.

use super::reading::{FOLDERS, Reading};
use crate::display::float;
use lydian_dashboard::history::{Combine, Series};
use lydian_mempool::pool::BAND_RATES;
use std::sync::LazyLock;

/// Two readings, of which the second is the current one.
#[derive(Debug)]
pub(super) struct Sample<'a> {
    /// `None` for the first one.
    pub(super) before: Option<&'a Reading>,
    pub(super) now: &'a Reading,
    pub(super) seconds: f64,
}

impl Sample<'_> {
    /// The increase of a counter.
    fn increase(&self, counter: fn(&Reading) -> Option<u64>) -> Option<f64> {
        counter(self.now)?.checked_sub(counter(self.before?)?).map(float)
    }

    /// The increase of a counter for each second.
    fn rate(&self, counter: fn(&Reading) -> Option<u64>) -> Option<f64> {
        self.increase(counter).map(|count| count / self.seconds).filter(|rate| rate.is_finite())
    }

    /// The share of all cores that the process used.
    fn cpu_share(&self) -> Option<f64> {
        let seconds = self.now.usage.cpu.checked_sub(self.before?.usage.cpu)?.as_secs_f64();
        Some(seconds / self.seconds / float(self.now.cores)).filter(|share| share.is_finite())
    }
}

type Read = fn(&Sample<'_>) -> Option<f64>;

/// A series and what reads it.
struct Row(Series, Read);

const fn row(name: &'static str, unit: &'static str, combine: Combine, help: &'static str, read: Read) -> Row {
    Row(Series { name, unit, combine, help }, read)
}

use Combine::{Last, Max, Mean, Sum};

/// The series, in the order of their columns in a new file. A name in the table keeps its meaning forever.
#[rustfmt::skip]
const ROWS: &[Row] = &[
    row("height", "blocks", Last, "Height of the validated tip.", |s| s.now.height.map(float)),
    row("headers", "blocks", Last, "Height of the best header.", |s| s.now.headers.map(float)),
    row("work_share", "share", Last, "Share of the work of the sync that is done.", |s| s.now.work_share),
    row("bytes_received", "bytes/s", Mean, "Bytes received from peers.", |s| s.rate(|r| r.bytes_received)),
    row("bytes_sent", "bytes/s", Mean, "Bytes sent to peers.", |s| s.rate(|r| r.bytes_sent)),
    row("blocks", "blocks/s", Mean, "Blocks validated.", |s| s.rate(|r| r.blocks)),
    row("inputs", "inputs/s", Mean, "Inputs of validated blocks.", |s| s.rate(|r| r.inputs)),
    row("signatures", "checks/s", Mean, "Signature and tweak checks made for blocks.", |s| s.rate(|r| r.checks)),
    row("connect_ms", "ms/block", Mean, "Time of all stages for each block validated.", |s| Some(s.increase(|r| r.stage_ns)? / 1e6 / s.increase(|r| r.blocks).filter(|count| *count > 0.0)?)),
    row("peers_out", "peers", Last, "Outbound peers.", |s| s.now.peers_out.map(float)),
    row("peers_in", "peers", Last, "Inbound peers.", |s| s.now.peers_in.map(float)),
    row("ping_ms", "ms", Last, "Median of the peers' shortest pings.", |s| s.now.ping_ms),
    row("mempool_count", "transactions", Last, "Transactions in the mempool.", |s| s.now.mempool.map(|pool| float(pool.transactions))),
    row("mempool_vbytes", "vbytes", Last, "Virtual bytes in the mempool.", |s| s.now.mempool.map(|pool| float(pool.vbytes))),
    row("mempool_usage", "bytes", Last, "What -maxmempool limits.", |s| s.now.mempool.map(|pool| float(pool.usage_bytes))),
    row("mempool_min_fee", "sat/kvB", Last, "What a transaction must pay to enter the mempool.", |s| s.now.mempool.map(|pool| float(pool.min_fee.unsigned_abs()))),
    row("cpu", "share", Mean, "Share of all cores that the process used.", |s| s.cpu_share()),
    row("memory", "bytes", Last, "Resident memory of the process.", |s| s.now.usage.memory_bytes.map(float)),
    row("memory_coins", "bytes", Last, "Memory of the coins.", |s| s.now.coins_bytes.map(float)),
    row("threads", "threads", Last, "Threads of the process.", |s| s.now.usage.threads.map(float)),
    row("open_files", "files", Last, "Open files and sockets of the process.", |s| s.now.usage.open_files.map(float)),
    row("disk_read", "bytes/s", Mean, "Bytes read from disks.", |s| s.rate(|r| Some(r.usage.disk_bytes?.0))),
    row("disk_written", "bytes/s", Mean, "Bytes written to disks.", |s| s.rate(|r| Some(r.usage.disk_bytes?.1))),
    row("disk_blocks", "bytes", Last, "Disk space of the folder blocks.", |s| s.now.folder(FOLDERS[0])),
    row("disk_chainstate", "bytes", Last, "Disk space of the folder chainstate.", |s| s.now.folder(FOLDERS[1])),
    row("disk_indexes", "bytes", Last, "Disk space of the folder indexes.", |s| s.now.folder(FOLDERS[2])),
    row("disk_other", "bytes", Last, "Disk space of everything else in the data directory.", |s| s.now.other_folders()),
    row("disk_free", "bytes", Last, "Free space of the disk with the blocks.", |s| s.now.free_bytes.map(float)),
    row("electrum_sessions", "sessions", Max, "Sessions of the Electrum server.", |s| s.now.electrum.as_ref().map(|sessions| float(sessions.len() as u64))),
    row("electrum_requests", "requests", Sum, "Requests of the open Electrum sessions.", |s| s.now.electrum_requests_since(s.before?)),
];

/// The series of the fee bands, one for each of [`BAND_RATES`].
static BANDS: LazyLock<Vec<Series>> = LazyLock::new(|| {
    let band = |place: usize| Series {
        // It is made once.
        name: format!("mempool_band_{place}").leak(),
        unit: "vbytes",
        combine: Last,
        help: "Virtual bytes in the mempool whose chunks pay a feerate of this band.",
    };
    (0..BAND_RATES.len()).map(band).collect()
});

/// The table of the history.
pub(super) static SERIES: LazyLock<Vec<Series>> =
    LazyLock::new(|| ROWS.iter().map(|row| row.0).chain(BANDS.iter().copied()).collect());

/// The values of a sample, in the order of the table.
pub(super) fn values(sample: &Sample<'_>) -> Vec<Option<f64>> {
    let bands = (0..BANDS.len()).map(|place| sample.now.bands.as_ref()?.get(place).copied().map(float));
    ROWS.iter().map(|Row(_, read)| read(sample)).chain(bands).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::process::Usage;
    use std::collections::BTreeSet;
    use std::time::Duration;

    #[test]
    fn names_are_plain_and_unique() {
        let names: BTreeSet<&str> = SERIES.iter().map(|series| series.name).collect();
        assert_eq!(names.len(), SERIES.len());
        let is_plain =
            |name: &str| name.bytes().all(|letter| letter.is_ascii_lowercase() || b"_0123456789".contains(&letter));
        assert!(SERIES.iter().all(|series| is_plain(series.name) && !series.unit.contains([' ', '"'])));
        assert!(SERIES.len() <= lydian_dashboard::limits::HISTORY_SERIES_MAX);
        // The columns of files keep the bands that they were made with.
        assert_eq!((BANDS[0].name, BANDS.len(), BAND_RATES[34]), ("mempool_band_0", 35, 2_000_000));
    }

    #[test]
    fn rates_come_from_two_readings() {
        let reading = |bytes, cpu, blocks| Reading {
            cores: 4,
            bytes_received: Some(bytes),
            usage: Usage { cpu: Duration::from_secs(cpu), ..Usage::default() },
            blocks: Some(blocks),
            stage_ns: Some(blocks * 2_000_000),
            ..Reading::default()
        };
        let of = |sample: &Sample<'_>, name: &str| {
            values(sample)[SERIES.iter().position(|series| series.name == name).unwrap()]
        };
        let (before, now) = (reading(100, 1, 10), reading(1_100, 11, 14));
        let first = Sample { before: None, now: &now, seconds: 5.0 };
        for name in ["bytes_received", "cpu", "connect_ms", "blocks", "memory"] {
            assert_eq!(of(&first, name), None);
        }
        let sample = Sample { before: Some(&before), now: &now, seconds: 5.0 };
        assert_eq!(of(&sample, "bytes_received"), Some(200.0));
        assert_eq!(of(&sample, "cpu"), Some(0.5));
        assert_eq!((of(&sample, "connect_ms"), of(&sample, "blocks")), (Some(2.0), Some(0.8)));
        let back = Sample { before: Some(&now), now: &before, seconds: 5.0 };
        assert_eq!(of(&back, "bytes_received"), None, "a counter that began anew");
        let still = Sample { before: Some(&now), now: &now, seconds: 5.0 };
        assert_eq!((of(&still, "connect_ms"), of(&still, "blocks")), (None, Some(0.0)));
    }
}
