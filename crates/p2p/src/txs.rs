//! Relay of unconfirmed transactions: which transactions are requested from which peer, which are kept as orphans,
//! which are remembered as rejected, and which are announced to which peer.
//!
//! Bitcoin Core's `txrequest`, `txorphanage`, `txdownloadman` and the parts of `net_processing` about transactions.
//! Input: announcements, transactions, verdicts of the mempool, blocks, the time. Output: values that the peer manager
//! turns into messages. Invariants: no socket, no clock, no thread; randomness comes from the caller's generator, so
//! that the simulator runs this code; the mempool is seen only through [`PoolView`] and [`RelayPool`], which are
//! snapshots, so nothing waits for it; no peer is punished here. All times are of [`crate::Moment::mockable`], Core's
//! `NodeClock`, unless a function says otherwise.

pub mod announce;
pub mod download;
pub mod fee_filter;
pub mod orphanage;
pub mod peer;
pub mod recent_block;
pub mod rejects;
pub mod requests;
pub mod unbroadcast;

#[cfg(any(test, fuzzing))]
mod sample;

pub use announce::{RelayPool, RelayedTx, TxAnnouncer};
pub use download::{PoolView, RejectClass, TxDownload};
pub use fee_filter::FeeFilters;
pub use orphanage::Orphanage;
pub use peer::RelayPeer;
pub use recent_block::RecentBlock;
pub use rejects::Rejects;
pub use requests::TxRequests;
pub use unbroadcast::Unbroadcast;

use lydian_primitives::{Txid, Wtxid};
use lydian_wire::{Inv, InvType};

/// A txid or a wtxid: Core's `GenTxid`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum GenTxid {
    Txid(Txid),
    Wtxid(Wtxid),
}

impl GenTxid {
    /// Returns the 32 bytes of the id.
    pub fn hash(&self) -> [u8; 32] {
        match self {
            GenTxid::Txid(txid) => txid.0,
            GenTxid::Wtxid(wtxid) => wtxid.0,
        }
    }

    pub fn is_wtxid(&self) -> bool {
        matches!(self, GenTxid::Wtxid(_))
    }

    /// Returns the id in an `inv`, `getdata` or `notfound`: Core's `ToGenTxid`. `None` if the item is not a
    /// transaction.
    pub fn from_inv(item: &Inv) -> Option<GenTxid> {
        match item.kind {
            InvType::WTX => Some(GenTxid::Wtxid(Wtxid(item.hash))),
            kind if kind.is_gen_tx() => Some(GenTxid::Txid(Txid(item.hash))),
            _ => None,
        }
    }

    /// Returns the item of a `getdata` that asks for the transaction. By txid, the witness is requested if the peer
    /// serves witnesses: Core's `GetFetchFlags`.
    pub fn to_getdata(&self, serves_witnesses: bool) -> Inv {
        let kind = match self {
            GenTxid::Wtxid(_) => InvType::WTX,
            GenTxid::Txid(_) if serves_witnesses => InvType::WITNESS_TX,
            GenTxid::Txid(_) => InvType::TX,
        };
        Inv { kind, hash: self.hash() }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ids_come_from_and_go_to_messages() {
        let inv = |kind| Inv { kind, hash: [7; 32] };
        let (txid, wtxid) = (GenTxid::Txid(Txid([7; 32])), GenTxid::Wtxid(Wtxid([7; 32])));
        assert_eq!(GenTxid::from_inv(&inv(InvType::TX)), Some(txid));
        assert_eq!(GenTxid::from_inv(&inv(InvType::WITNESS_TX)), Some(txid));
        assert_eq!(GenTxid::from_inv(&inv(InvType::WTX)), Some(wtxid));
        for kind in [InvType::BLOCK, InvType::WITNESS_BLOCK, InvType(0), InvType(5 | 1 << 30)] {
            assert_eq!(GenTxid::from_inv(&inv(kind)), None);
        }
        assert_eq!(txid.to_getdata(true), inv(InvType::WITNESS_TX));
        assert_eq!(txid.to_getdata(false), inv(InvType::TX));
        assert_eq!(wtxid.to_getdata(true), inv(InvType::WTX));
        assert!(wtxid.is_wtxid() && !txid.is_wtxid());
    }
}
