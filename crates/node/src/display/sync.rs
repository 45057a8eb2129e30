//! The display of a sync from peers: the current phase, progress and speed, the bottleneck, the time left.
//!
//! Input: [`Sync`], a snapshot of engine and network, and what was done recently. Output: lines for a terminal, or one
//! line. Reads nothing itself, so that every sentence can be tested.
//!
//! The cost of blocks that have not arrived is a guess, and is shown as one. On chains for which Bitcoin Core estimates
//! the number of transactions, the guess uses that number; otherwise, and near the end, it uses the number of blocks,
//! each as large as those that arrived last. In both cases a byte is assumed to have the inputs and signatures that it
//! had in the last ten minutes.

use super::figures::{Figures, Late, float};
use super::text::{STAGES_SHOWN, bar, duration, megabytes, rates, shares, whole};
use crate::screen::commas;
use crate::status::MempoolStatus;
use lydian_p2p::manager::SyncFigures;

/// Seconds between blocks, the same on every chain.
const POW_TARGET_SPACING: u32 = 600;

const YEAR_SECONDS: u32 = 31_556_952;

/// At most this many blocks before the end, the guess counts blocks instead of transactions.
const COUNTED_BLOCKS_MAX: u64 = 2_016;

/// Number of stages that fit on a line beside their label.
const STAGES_BESIDE: usize = 4;

/// A snapshot of a node that syncs from peers.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Sync {
    pub(crate) net: SyncFigures,
    pub(crate) height: u32,
    /// Time of the tip's header, in seconds since 1970, as is `now`.
    pub(crate) tip_time: u32,
    pub(crate) now: u32,
    /// The height up to which everything is durable on disk.
    pub(crate) durable_height: Option<u32>,
    /// Transactions up to the tip; `None` if a crash lost their count.
    pub(crate) transactions: Option<u64>,
    /// Core's estimate of the share of all transactions that is validated; `None` on a test chain, whose block times
    /// mean nothing.
    pub(crate) share: Option<f64>,
    pub(crate) mempool: Option<MempoolStatus>,
}

/// The remaining work, as far as it can be estimated.
#[derive(Clone, Copy, Debug, PartialEq)]
struct Left {
    bytes: f64,
    /// Zero to one.
    share_done: f64,
    guess: Guess,
}

/// How blocks that have not arrived are counted.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Guess {
    /// All blocks have arrived.
    None,
    Blocks {
        count: u64,
        bytes_each: f64,
    },
    Transactions {
        total: f64,
    },
}

impl Sync {
    /// Everything that peers announced is validated, and the node has left initial block download, which is not
    /// required on test chains.
    pub(crate) fn is_in_step(&self) -> bool {
        let is_at_end = self.net.presync.is_none() && self.height >= self.net.headers_height;
        is_at_end && self.peers() > 0 && (self.share.is_none() || !self.net.is_initial)
    }

    /// There is progress to show.
    pub(crate) fn has_work(&self) -> bool {
        self.blocks_left() > 0 || self.net.presync.is_some()
    }

    fn peers(&self) -> u32 {
        self.net.outbound + self.net.inbound
    }

    /// Blocks whose headers are known and that are not validated.
    pub(crate) fn blocks_left(&self) -> u32 {
        self.net.headers_height.saturating_sub(self.height)
    }

    fn left(&self, late: &Late) -> Left {
        let like = &late.blocks;
        let each = |count: u64| if count > 0 { float(like.bytes) / float(count) } else { 0.0 };
        let (here, count) = (float(self.net.waiting_bytes), u64::from(self.blocks_left()));
        let unknown = count.saturating_sub(self.net.waiting_blocks);
        let transactions = float(self.transactions.unwrap_or(like.transactions));
        let (bytes, guess) = match self.share {
            Some(share) if share > 0.0 && unknown > COUNTED_BLOCKS_MAX => {
                let total = transactions / share;
                ((total - transactions) * each(like.transactions), Guess::Transactions { total })
            }
            _ if unknown > 0 => {
                // The blocks that arrived last are the most similar.
                let came = (self.net.waiting_blocks > 0).then(|| here / float(self.net.waiting_blocks));
                let bytes_each = came.unwrap_or_else(|| each(like.blocks));
                (here + float(unknown) * bytes_each, Guess::Blocks { count: unknown, bytes_each })
            }
            _ => (here, Guess::None),
        };
        let transactions_left = if like.bytes > 0 { bytes * float(like.transactions) / float(like.bytes) } else { 0.0 };
        let whole = transactions + transactions_left;
        let is_known = like.bytes > 0 && whole > 0.0;
        Left { bytes, share_done: if is_known { transactions / whole } else { self.share.unwrap_or(0.0) }, guess }
    }

    /// The share of the work that is done, if it is known, and the seconds that are left.
    pub(crate) fn share_and_seconds(&self, now: &Figures, late: &Late) -> (Option<f64>, Option<f64>) {
        let left = self.left(late);
        let is_known = late.blocks.bytes > 0 || self.share.is_some();
        (is_known.then_some(left.share_done), late.seconds_for(left.bytes, &now.prices()))
    }

    /// How the blocks are counted that have not arrived.
    pub(crate) fn guess_sentence(&self, late: &Late) -> Option<String> {
        self.left(late).guess.sentence()
    }

    /// For a terminal of 80 columns.
    pub(crate) fn lines(&self, now: &Figures, late: &Late) -> String {
        if self.is_in_step() || self.blocks_left() == 0 {
            return self.calm();
        }
        let left = self.left(late);
        let mut lines = vec![
            format!(
                "{} {:5.1} %  height {} of {}{}",
                bar(left.share_done),
                left.share_done * 100.0,
                commas(u64::from(self.height)),
                commas(u64::from(self.net.headers_height)),
                time_left(&left, now, late)
            ),
            format!("headers      {}; {}", self.headers(), self.peers_in_words()),
            format!("download     {}", self.download(late)),
            format!(
                "validation   {}, {} MB/s",
                rates(&late.rates),
                megabytes_each_second(late.rates.rate(late.rates.bytes))
            ),
            format!(
                "commit       durable to height {}; {} limits",
                commas(u64::from(self.durable_height.unwrap_or(0))),
                late.rates.bottleneck().name()
            ),
            format!("stages       {}", shares(&late.rates, STAGES_BESIDE)),
        ];
        lines.extend(left.guess.sentence());
        lines.join("\n")
    }

    /// The same in one line.
    pub(crate) fn line(&self, now: &Figures, late: &Late) -> String {
        if self.is_in_step() || self.blocks_left() == 0 {
            return self.calm();
        }
        let left = self.left(late);
        format!(
            "height {} of {} ({:.1} % of the work){}, {} limits; {}, {} MB/s; download {}; durable to height {}; {}; {}",
            commas(u64::from(self.height)),
            commas(u64::from(self.net.headers_height)),
            left.share_done * 100.0,
            time_left(&left, now, late),
            late.rates.bottleneck().name(),
            rates(&late.rates),
            megabytes_each_second(late.rates.rate(late.rates.bytes)),
            self.download(late),
            commas(u64::from(self.durable_height.unwrap_or(0))),
            self.peers_in_words(),
            shares(&late.rates, STAGES_SHOWN),
        )
    }

    /// One line when there is nothing to validate.
    fn calm(&self) -> String {
        let tip = match self.height {
            0 => "height 0".to_owned(),
            height => {
                let seconds = self.now.saturating_sub(self.tip_time);
                let age = match seconds / YEAR_SECONDS {
                    0 => duration(f64::from(seconds)),
                    1 => "a year".to_owned(),
                    years => format!("{years} years"),
                };
                format!("height {}, a block of {age} ago", commas(u64::from(height)))
            }
        };
        let what = match () {
            () if self.peers() == 0 => "waiting for peers",
            () if self.is_in_step() => "in step",
            () => return format!("headers {}: {tip}, {}", self.headers(), self.peers_in_words()),
        };
        let mempool = self.mempool.map_or_else(String::new, |mempool| format!("; mempool: {}", mempool.sentence()));
        format!("{what}: {tip}, {}{mempool}", self.peers_in_words())
    }

    /// The height of the headers, and the height that they may reach, judging by the time of the last one.
    fn headers(&self) -> String {
        let (height, time, phase) = match &self.net.presync {
            Some(presync) if presync.is_redownload => (self.net.headers_height, self.net.headers_time, "second pass, "),
            Some(presync) => (presync.height, presync.time, "first pass, their work is counted, "),
            None => (self.net.headers_height, self.net.headers_time, ""),
        };
        let missing = self.now.saturating_sub(time) / POW_TARGET_SPACING;
        let is_short = self.share.is_some() && self.net.is_initial && u64::from(missing) > COUNTED_BLOCKS_MAX;
        let of = if is_short { format!(" of about {}", commas(u64::from(height + missing))) } else { String::new() };
        format!("{phase}{}{of}", commas(u64::from(height)))
    }

    fn download(&self, late: &Late) -> String {
        format!(
            "{} MB/s, {} MB requested, {} MB waiting for validation",
            megabytes_each_second(late.rates.rate(late.rates.received_bytes)),
            megabytes(self.net.in_flight_bytes),
            megabytes(self.net.waiting_bytes),
        )
    }

    fn peers_in_words(&self) -> String {
        match (self.net.outbound, self.net.inbound) {
            (0, 0) => "no peers".to_owned(),
            (out, 0) => format!("{out} {}", if out == 1 { "peer" } else { "peers" }),
            (out, inbound) => format!("{} peers ({out} out, {inbound} in)", out + inbound),
        }
    }
}

impl Guess {
    fn sentence(&self) -> Option<String> {
        match self {
            Guess::None => None,
            Guess::Blocks { bytes_each, .. } if *bytes_each == 0.0 => None,
            Guess::Blocks { count, bytes_each } => {
                let each = megabytes_each_second(*bytes_each);
                let blocks = if *count == 1 { "block" } else { "blocks" };
                Some(format!("guess        {} remaining {blocks}, {each} MB each like the last", commas(*count)))
            }
            Guess::Transactions { total } => {
                let total = whole(*total);
                Some(format!("guess        {total} transactions in all, remaining blocks like the last"))
            }
        }
    }
}

fn time_left(left: &Left, now: &Figures, late: &Late) -> String {
    match late.seconds_for(left.bytes, &now.prices()) {
        Some(seconds) if left.guess == Guess::None => format!(", {} left", duration(seconds)),
        Some(seconds) => format!(", about {} left", duration(seconds)),
        None => String::new(),
    }
}

/// Megabytes, with two decimals below 1 MB.
fn megabytes_each_second(bytes: f64) -> String {
    if bytes < 1e6 { format!("{:.2}", bytes / 1e6) } else { format!("{:.1}", bytes / 1e6) }
}
