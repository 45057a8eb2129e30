//! Options of the blocks that the node makes. Data only: entries of the option table.

use super::{Opt, TEXT, group, integer};

/// Whole numbers as Core reads them.
const NUMBER: Opt = Opt { group: group::BLOCK_CREATION, ..integer(i64::MIN, i64::MAX) };

pub(super) const OPTIONS: &[Opt] = &[
    Opt { name: "blockmaxweight", default: "4000000", help: "Set maximum BIP141 block weight", ..NUMBER },
    Opt {
        name: "blockmintxfee",
        argument: "<amt>",
        group: group::BLOCK_CREATION,
        default: "0.00000001",
        help: "Set lowest fee rate (in BTC/kvB) for transactions to be included in block creation",
        ..TEXT
    },
    Opt {
        name: "blockreservedweight",
        default: "8000",
        help: "Reserve space for the fixed-size block header plus the largest coinbase transaction the mining software may add to the block",
        ..NUMBER
    },
];
