//! From the sizes of generated chains to those of mainnet: [`Extrapolation`].
//!
//! Input: measurements of two chains, one whose scripts are hardly used again and one that uses few scripts. Output:
//! for each table the bytes per unit on both, and bounds at a height of mainnet. Arithmetic only. The chain's figures
//! are those of Core (transactions) and of public censuses (the others), which give the bounds of what is not known:
//! the number of distinct scripts, and of the inputs that spend outputs of an earlier segment.
//!
//! A table with a row for each transaction or block takes the bytes of such a row. The table of events has keys and
//! events: both chains together give the bytes of a key and of an event. On mainnet a key is shorter, since a segment
//! has more of them, and a number of a transaction longer; both changes follow from the encoding
//! (`docs/formats/tables.md`).

use super::Measured;
use crate::error::LabError;
use serde::Serialize;
use std::fmt::Write;

/// Mainnet at height 928,000: transactions by Core's chainTxData, interpolated; outputs and inputs scaled from a census
/// at height 962,298; scripts and pairs estimated.
const HEIGHT: f64 = 928_000.0;
const TRANSACTIONS: f64 = 1.283e9;
const OUTPUTS: (f64, f64) = (3.43e9, 3.47e9);
const INPUTS: f64 = 3.15e9;
const SCRIPTS: (f64, f64) = (1.25e9, 1.65e9);
const PAIRS: f64 = 5.5e9;

/// The share of the inputs that spend an output of an earlier segment. Each adds a key and an event: half of all
/// segments' time is 1.2 years, and most coins are spent within months.
const SPENT_LATER: (f64, f64) = (0.05, 0.15);

/// Blocks of mainnet's largest segments at this height.
const SEGMENT_BLOCKS: f64 = 131_072.0;

/// More bits of the distance to the spender, for coins older than the generated chains: 59 % of the spends, with equal
/// shares for each doubling of the age from 600 to 131,072 blocks.
const AGE_BITS: (f64, f64) = (0.0, 2.3);

/// Bytes around a page: head of the record, and its size in the directory.
const PAGE_HEAD: f64 = 14.0;
/// A record of the filters has a head and the hash of the block.
const FILTER_HEAD: f64 = 44.0;
const TXID_BYTES: f64 = 32.0;
/// Txids in a page, as far as the table is not measured.
const TXIDS_PER_PAGE: f64 = 128.0;

/// Bounds.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Bounds {
    pub low: f64,
    pub high: f64,
}

impl Bounds {
    fn of(values: impl IntoIterator<Item = f64>) -> Bounds {
        let start = Bounds { low: f64::INFINITY, high: f64::NEG_INFINITY };
        values
            .into_iter()
            .fold(start, |bounds, value| Bounds { low: bounds.low.min(value), high: bounds.high.max(value) })
    }

    fn times(self, low: f64, high: f64) -> Bounds {
        Bounds { low: self.low * low, high: self.high * high }
    }

    fn plus(self, other: Bounds) -> Bounds {
        Bounds { low: self.low + other.low, high: self.high + other.high }
    }

    const NOTHING: Bounds = Bounds { low: 0.0, high: 0.0 };
}

/// A table of mainnet.
#[derive(Clone, Debug, Serialize)]
pub struct Row {
    pub table: String,
    pub unit: &'static str,
    /// Bytes per unit on each chain.
    pub measured: Vec<f64>,
    pub units: Bounds,
    pub gigabytes: Bounds,
}

#[derive(Clone, Debug, Serialize)]
pub struct Extrapolation {
    pub height: u32,
    pub rows: Vec<Row>,
    /// Sums by what a node keeps.
    pub sums: Vec<(String, Bounds)>,
}

fn float(count: u64) -> f64 {
    #[allow(clippy::cast_precision_loss, reason = "counts of a measurement lie far below 2^52")]
    let float = count as f64;
    float
}

/// The bytes of a key and of an event that explain the tables of events of two chains.
fn solve(chains: &[Measured]) -> Option<(f64, f64)> {
    let [one, other] = chains else { return None };
    let figures = |chain: &Measured| {
        let bytes = bytes_of(chain, "events") + bytes_of(chain, "lists");
        (bytes, float(chain.segment.scripts), float(chain.segment.events()))
    };
    let ((bytes_one, keys_one, events_one), (bytes_other, keys_other, events_other)) = (figures(one), figures(other));
    let determinant = keys_one * events_other - keys_other * events_one;
    let key = (bytes_one * events_other - bytes_other * events_one) / determinant;
    let event = (keys_one * bytes_other - keys_other * bytes_one) / determinant;
    (key.is_finite() && event.is_finite() && key > 0.0 && event > 0.0).then_some((key, event))
}

fn bytes_of(chain: &Measured, table: &str) -> f64 {
    float(chain.tables.get(table).copied().unwrap_or(0))
}

/// The scale of mainnet's height.
struct Scale {
    /// The height by the one of the figures.
    share: f64,
}

impl Extrapolation {
    pub fn new(chains: &[Measured], height: u32) -> Result<Extrapolation, LabError> {
        let Some((key, event)) = solve(chains) else {
            let text = "the sizes of the two chains do not give the bytes of a key and of an event";
            return Err(LabError::Usage(text.to_owned()));
        };
        // The chain grows by the block; what a block has is taken as it is at the height of the figures.
        let scale = Scale { share: f64::from(height) / HEIGHT };
        let mut rows = vec![
            scale.simple(chains, "numbers", "transaction", TRANSACTIONS, |chain| chain.segment.transactions),
            scale.simple(chains, "sizes", "transaction", TRANSACTIONS, |chain| chain.segment.transactions),
            scale.simple(chains, "blocks", "block", HEIGHT, |chain| chain.segment.blocks),
            scale.positions(chains),
        ];
        rows.extend(scale.events(chains, key, event));
        rows.push(scale.txids(chains));
        rows.push(scale.filters(chains));
        rows.push(scale.coinstats(chains));
        let sum = |names: &[&str]| {
            let wanted = rows.iter().filter(|row| names.contains(&row.table.as_str()));
            wanted.map(|row| row.gigabytes).fold(Bounds::NOTHING, Bounds::plus)
        };
        let transactions = ["numbers", "sizes", "blocks"];
        let compact = [&transactions[..], &["positions", "events: keys", "events: events"]].concat();
        let full = [&compact[..], &["txids"]].concat();
        let sums = vec![
            ("-txindex".to_owned(), sum(&transactions)),
            ("compact".to_owned(), sum(&compact)),
            ("full".to_owned(), sum(&full)),
            ("-blockfilterindex".to_owned(), sum(&["filters"])),
            ("-coinstatsindex".to_owned(), sum(&["coinstats"])),
        ];
        Ok(Extrapolation { height, rows, sums })
    }

    pub fn to_text(&self, chains: &[&str]) -> String {
        let mut text = format!(
            "| at height {} of mainnet | unit | bytes per unit: {} | units, millions | GB |\n|---|---|---|---|---|\n",
            self.height,
            chains.join("; ")
        );
        for row in &self.rows {
            let measured: Vec<String> = row.measured.iter().map(|bytes| format!("{bytes:.2}")).collect();
            let (units, size) = (span(row.units, 1e6, 0), span(row.gigabytes, 1.0, 1));
            let _ = writeln!(text, "| {} | {} | {} | {units} | {size} |", row.table, row.unit, measured.join("; "));
        }
        text += "\n| profile or option | GB |\n|---|---|\n";
        for (name, bounds) in &self.sums {
            let _ = writeln!(text, "| {name} | {} |", span(*bounds, 1.0, 1));
        }
        text
    }
}

/// Both bounds, or one number if they are shown alike.
fn span(bounds: Bounds, by: f64, digits: usize) -> String {
    let show = |value: f64| format!("{:.digits$}", value / by);
    let (low, high) = (show(bounds.low), show(bounds.high));
    if low == high { low } else { format!("{low} to {high}") }
}

impl Scale {
    fn row(&self, table: &str, unit: &'static str, measured: Vec<f64>, units: (f64, f64)) -> Row {
        self.row_of(table, unit, Bounds::of(measured.iter().copied()), measured, units)
    }

    fn row_of(&self, table: &str, unit: &'static str, each: Bounds, measured: Vec<f64>, units: (f64, f64)) -> Row {
        let units = Bounds { low: units.0 * self.share, high: units.1 * self.share };
        let gigabytes = each.times(units.low / 1e9, units.high / 1e9);
        Row { table: table.to_owned(), unit, measured, units, gigabytes }
    }

    /// A table with a row of the same size for each unit.
    fn simple(
        &self,
        chains: &[Measured],
        table: &str,
        unit: &'static str,
        count: f64,
        of: impl Fn(&Measured) -> u64,
    ) -> Row {
        let each = chains.iter().map(|chain| bytes_of(chain, table) / float(of(chain)).max(1.0)).collect();
        self.row(table, unit, each, (count, count))
    }

    /// Positions have a page for each block, and a slot for each transaction whose width is that of a position: that of
    /// the generated blocks, and that of mainnet's average block.
    fn positions(&self, chains: &[Measured]) -> Row {
        let each: Vec<f64> = chains
            .iter()
            .map(|chain| {
                let blocks = float(chain.segment.blocks) * PAGE_HEAD;
                (bytes_of(chain, "positions") - blocks) / float(chain.segment.transactions).max(1.0)
            })
            .collect();
        let slot = |transactions: f64| (0.4 + 1.1 * transactions.log2().ceil() / 8.0) + PAGE_HEAD / transactions;
        let average = slot(TRANSACTIONS / HEIGHT);
        let bounds = Bounds::of([average, slot(4_000.0)]);
        self.row_of("positions", "transaction", bounds, each, (TRANSACTIONS, TRANSACTIONS))
    }

    fn events(&self, chains: &[Measured], key: f64, event: f64) -> [Row; 2] {
        let mean =
            |of: &dyn Fn(&Measured) -> u64| chains.iter().map(|chain| float(of(chain)).log2()).sum::<f64>() / 2.0;
        // Each doubling of the keys of a segment saves a bit of a key; each of its transactions costs a bit of a
        // number.
        let segments = HEIGHT / SEGMENT_BLOCKS;
        let key_bits = |scripts: f64| {
            let of_keys =
                (scripts / segments).log2() - chains.first().map_or(0.0, |chain| float(chain.segment.scripts).log2());
            let of_numbers = (TRANSACTIONS / segments).log2() - mean(&|chain| chain.segment.transactions);
            of_numbers - of_keys
        };
        let keys = |scripts: f64, share: f64| scripts + share * INPUTS;
        let key_bytes = |scripts: f64| key + key_bits(scripts) / 8.0;
        let (few, many) = (keys(SCRIPTS.0, SPENT_LATER.0), keys(SCRIPTS.1, SPENT_LATER.1));
        let each = Bounds::of([key_bytes(few), key_bytes(many)]);
        let of_keys = self.row_of("events: keys", "script and segment", each, vec![key], (few, many));
        let events = |outputs: f64, share: f64| outputs + INPUTS * (1.0 + share);
        let units = (events(OUTPUTS.0, SPENT_LATER.0), events(OUTPUTS.1, SPENT_LATER.1));
        // Only spends have a distance.
        let age = |bits: f64| event + bits / 8.0 * INPUTS / (OUTPUTS.0 + INPUTS);
        let each = Bounds { low: age(AGE_BITS.0), high: age(AGE_BITS.1) };
        [of_keys, self.row_of("events: events", "output or input", each, vec![event], units)]
    }

    /// Measured if the index has the table.
    fn txids(&self, chains: &[Measured]) -> Row {
        let is_measured = chains.iter().all(|chain| chain.tables.contains_key("txids"));
        match is_measured {
            true => self.simple(chains, "txids", "transaction", TRANSACTIONS, |chain| chain.segment.transactions),
            false => {
                let each = TXID_BYTES + PAGE_HEAD / TXIDS_PER_PAGE;
                self.row_of("txids", "transaction", Bounds::of([each]), Vec::new(), (TRANSACTIONS, TRANSACTIONS))
            }
        }
    }

    fn filters(&self, chains: &[Measured]) -> Row {
        let size = |chain: &Measured, name: &str| float(chain.others.get(name).copied().unwrap_or(0));
        let each: Vec<f64> = chains
            .iter()
            .map(|chain| {
                let heads = float(chain.all.blocks) * FILTER_HEAD;
                (size(chain, "filters.log") - heads) / float(chain.all.pairs).max(1.0)
            })
            .collect();
        let mut row = self.row("filters", "script and transaction", each, (PAIRS, PAIRS));
        let entries = chains.first().map_or(0.0, |chain| size(chain, "headers.log") / float(chain.all.blocks));
        let by_block = (entries + FILTER_HEAD) * HEIGHT * self.share / 1e9;
        row.gigabytes = row.gigabytes.plus(Bounds { low: by_block, high: by_block });
        row
    }

    fn coinstats(&self, chains: &[Measured]) -> Row {
        let size = |chain: &Measured| float(chain.others.get("stats.log").copied().unwrap_or(0));
        let each = chains.iter().map(|chain| size(chain) / float(chain.all.blocks)).collect();
        self.row("coinstats", "block", each, (HEIGHT, HEIGHT))
    }
}

#[cfg(test)]
mod tests {
    use super::super::count::Units;
    use super::*;

    /// A chain whose tables have these bytes per transaction, key and event.
    fn chain(scripts: u64, key: u64, event: u64) -> Measured {
        let segment =
            Units { blocks: 2_048, transactions: 100_000, outputs: 270_000, inputs: 246_000, scripts, pairs: 430_000 };
        let tables = [
            ("numbers", 530_000),
            ("sizes", 200_000),
            ("blocks", 82_000),
            ("positions", 220_000),
            ("events", scripts * key + segment.events() * event - 1_000),
            ("lists", 1_000),
        ];
        Measured {
            chain: "x".into(),
            height: 3_200,
            segment_blocks: 2_048,
            segment,
            all: segment,
            tables: tables.map(|(name, bytes)| (name.to_owned(), bytes)).into(),
            others: [("filters.log", 1_200_000), ("headers.log", 245_760), ("stats.log", 491_520)]
                .map(|(name, bytes)| (name.to_owned(), bytes))
                .into(),
            unsealed_bytes: 0,
            unsealed_transactions: 0,
        }
    }

    #[test]
    fn two_chains_give_the_bytes_of_a_key_and_of_an_event() {
        let chains = [chain(270_000, 6, 3), chain(3_000, 6, 3)];
        let (key, event) = solve(&chains).unwrap();
        assert!((key - 6.0).abs() < 1e-6 && (event - 3.0).abs() < 1e-6, "{key} {event}");
        assert!(solve(&chains[..1]).is_none() && solve(&[chain(5, 6, 3), chain(5, 6, 3)]).is_none());
        let found = Extrapolation::new(&chains, 928_000).unwrap();
        let row = |name: &str| found.rows.iter().find(|row| row.table == name).unwrap();
        let numbers = row("numbers").gigabytes;
        assert!((numbers.low - 1.283 * 5.3).abs() < 1e-6 && (numbers.high - numbers.low).abs() < 1e-9);
        assert!((row("coinstats").gigabytes.low - 240.0 * 0.000_928).abs() < 1e-6);
        assert!(row("txids").measured.is_empty() && row("txids").gigabytes.low > 41.0);
        for row in &found.rows {
            assert!(row.gigabytes.low > 0.0 && row.gigabytes.low <= row.gigabytes.high, "{row:?}");
        }
        let sum = |name: &str| found.sums.iter().find(|(sum, _)| sum == name).unwrap().1;
        assert!(sum("compact").low > sum("-txindex").high && sum("full").low > sum("compact").low + 41.0);
        let half = Extrapolation::new(&chains, 464_000).unwrap();
        assert!((half.rows[0].gigabytes.low * 2.0 - numbers.low).abs() < 1e-9, "in proportion to the height");
        let text = found.to_text(&["a", "b"]);
        assert!(text.contains("| numbers | transaction | 5.30; 5.30 | 1283 | 6.8 |"), "{text}");
    }
}
