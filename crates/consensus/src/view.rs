//! The queries of the rules and the types of the answers. Stores of headers and coins implement the traits; the rules
//! do not depend on how. The engine passes coins as values instead, because it looks them up for many blocks at once.
//!
//! Input: heights, outpoints. Output: ancestors, coins. Invariant: every answer is about the chain that ends with the
//! parent of the block being checked, whichever chain is active.

use crate::limits::MEDIAN_TIME_SPAN;
use lydian_primitives::{Amount, BlockHash, Header, Height, OutPoint, Output};

/// A block's ancestors by height.
pub trait HeaderView {
    /// The ancestor at `height`. `None` above the parent, or below the first header that the store has.
    fn ancestor(&self, height: Height) -> Option<Ancestor>;

    /// Median of the times of the block at `height` and its ten predecessors (fewer near the genesis block), in
    /// seconds: Core's `GetMedianTimePast`.
    fn median_time_past(&self, height: Height) -> Option<i64> {
        let lowest = (height.0 + 1).saturating_sub(MEDIAN_TIME_SPAN);
        let mut times = (lowest..=height.0)
            .map(|height| self.ancestor(Height(height)).map(|ancestor| i64::from(ancestor.header.time)))
            .collect::<Option<Vec<_>>>()?;
        times.sort_unstable();
        times.get(times.len() / 2).copied()
    }
}

/// An ancestor's header with its known hash.
#[derive(Clone, Copy, Debug)]
pub struct Ancestor {
    pub hash: BlockHash,
    pub header: Header,
}

/// An unspent output: Core's `Coin`.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Coin {
    pub value: Amount,
    pub script_pubkey: Box<[u8]>,
    /// Height of the block that created it.
    pub height: Height,
    pub is_coinbase: bool,
}

impl Coin {
    pub fn new(output: Output<'_>, height: Height, is_coinbase: bool) -> Coin {
        Coin { value: output.value, script_pubkey: output.script_pubkey.into(), height, is_coinbase }
    }

    pub fn output(&self) -> Output<'_> {
        Output { value: self.value, script_pubkey: &self.script_pubkey }
    }

    #[allow(clippy::should_implement_trait, reason = "a CoinRef is no plain reference")]
    pub fn as_ref(&self) -> CoinRef<'_> {
        CoinRef {
            value: self.value,
            script_pubkey: &self.script_pubkey,
            height: self.height,
            is_coinbase: self.is_coinbase,
        }
    }
}

/// A [`Coin`] that borrows its script, for example from the block that creates it.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct CoinRef<'a> {
    pub value: Amount,
    pub script_pubkey: &'a [u8],
    /// Height of the block that created it.
    pub height: Height,
    pub is_coinbase: bool,
}

impl<'a> CoinRef<'a> {
    pub fn new(output: Output<'a>, height: Height, is_coinbase: bool) -> CoinRef<'a> {
        CoinRef { value: output.value, script_pubkey: output.script_pubkey, height, is_coinbase }
    }

    pub fn to_coin(&self) -> Coin {
        Coin {
            value: self.value,
            script_pubkey: self.script_pubkey.into(),
            height: self.height,
            is_coinbase: self.is_coinbase,
        }
    }
}

/// The coins before a block. Each query is for many outpoints.
pub trait CoinView {
    /// Returns the coin of each outpoint, or `None` if it does not exist or is spent.
    fn coins(&self, outpoints: &[OutPoint]) -> Vec<Option<Coin>>;

    /// Whether any of the outpoints is unspent.
    fn has_any(&self, outpoints: &[OutPoint]) -> bool;
}
