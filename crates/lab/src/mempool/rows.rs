//! The rows of the table, and the sessions in which they are measured.
//!
//! Data only. A session is one process of a node: rows that need the same state share one.

use crate::error::LabError;
use lydian_report::mempool::Unit;

/// A row of the table. The order is that of the table.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Row {
    Import,
    ImportReference,
    Tx,
    Memory,
    RawMempool,
    Block,
    CompactBlock,
    Forward,
    Peers,
    Pairs,
    Cluster,
}

/// One process of a node.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Session {
    /// The mempool is imported; everything about a full mempool follows.
    Loaded,
    /// The import alone, by Lydian with `-sigengine=reference`.
    Reference,
    /// The mempool comes as messages of one peer.
    Tx,
    /// The mempool comes from many peers.
    Peers,
    /// Transactions with two inputs and two outputs.
    Pairs,
    /// The mempool has one cluster.
    Cluster,
}

impl Row {
    pub const ALL: [Row; 11] = [
        Row::Import,
        Row::ImportReference,
        Row::Tx,
        Row::Memory,
        Row::RawMempool,
        Row::Block,
        Row::CompactBlock,
        Row::Forward,
        Row::Peers,
        Row::Pairs,
        Row::Cluster,
    ];

    /// As in `--only` and in the results.
    pub fn name(self) -> &'static str {
        match self {
            Row::Import => "import",
            Row::ImportReference => "import-reference",
            Row::Tx => "tx",
            Row::Memory => "memory",
            Row::RawMempool => "getrawmempool",
            Row::Block => "block",
            Row::CompactBlock => "compact-block",
            Row::Forward => "forward",
            Row::Peers => "peers",
            Row::Pairs => "two-in-two-out",
            Row::Cluster => "cluster",
        }
    }

    pub fn session(self) -> Session {
        match self {
            Row::ImportReference => Session::Reference,
            Row::Tx => Session::Tx,
            Row::Peers => Session::Peers,
            Row::Pairs => Session::Pairs,
            Row::Cluster => Session::Cluster,
            Row::Import | Row::Memory | Row::RawMempool | Row::Block | Row::CompactBlock | Row::Forward => {
                Session::Loaded
            }
        }
    }

    /// The rows with these names; all if there are none.
    pub fn named(names: &[String]) -> Result<Vec<Row>, LabError> {
        if let Some(wrong) = names.iter().find(|name| !Row::ALL.iter().any(|row| row.name() == *name)) {
            let known: Vec<&str> = Row::ALL.iter().map(|row| row.name()).collect();
            return Err(LabError::Usage(format!("--only: {wrong} is none of {}", known.join(", "))));
        }
        let is_wanted = |row: &Row| names.is_empty() || names.iter().any(|name| name == row.name());
        Ok(Row::ALL.into_iter().filter(is_wanted).collect())
    }
}

impl Session {
    pub const ALL: [Session; 6] =
        [Session::Loaded, Session::Reference, Session::Tx, Session::Peers, Session::Pairs, Session::Cluster];

    pub fn name(self) -> &'static str {
        match self {
            Session::Loaded => "loaded",
            Session::Reference => "reference",
            Session::Tx => "tx",
            Session::Peers => "peers",
            Session::Pairs => "pairs",
            Session::Cluster => "cluster",
        }
    }
}

/// What one session measured.
#[derive(Debug, Default)]
pub struct Measured {
    pub values: Vec<(Row, &'static str, Unit, f64)>,
    /// The mempool after the import.
    pub content: Option<lydian_report::mempool::Content>,
}

impl Measured {
    pub fn add(&mut self, row: Row, what: &'static str, unit: Unit, value: f64) {
        self.values.push((row, what, unit, value));
    }

    pub fn seconds(&mut self, row: Row, what: &'static str, seconds: f64) {
        self.add(row, what, Unit::Seconds, seconds);
    }

    pub fn microseconds(&mut self, row: Row, what: &'static str, seconds: f64) {
        self.add(row, what, Unit::Microseconds, seconds * 1e6);
    }

    pub fn milliseconds(&mut self, row: Row, what: &'static str, seconds: f64) {
        self.add(row, what, Unit::Milliseconds, seconds * 1e3);
    }
}

/// A count or a number of bytes as a figure.
#[allow(clippy::cast_precision_loss, reason = "counts and sizes of a mempool lie far below 2^52")]
pub fn as_f64(number: u64) -> f64 {
    number as f64
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rows_are_chosen_by_name_in_the_order_of_the_table() {
        let named = |names: &[&str]| Row::named(&names.iter().map(|name| (*name).to_owned()).collect::<Vec<_>>());
        assert_eq!(named(&[]).unwrap(), Row::ALL);
        assert_eq!(named(&["cluster", "import"]).unwrap(), [Row::Import, Row::Cluster]);
        let error = named(&["imports"]).unwrap_err().to_string();
        assert!(error.starts_with("--only: imports is none of import, import-reference, tx"), "{error}");
    }

    #[test]
    fn every_session_has_a_row() {
        assert!(Session::ALL.iter().all(|session| Row::ALL.iter().any(|row| row.session() == *session)));
    }
}
