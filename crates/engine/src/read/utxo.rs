//! The hashes of all coins, as in Core's `gettxoutsetinfo`. Input: the coin store. Output: both hashes and sums, in one
//! ordered pass. Cost: a double SHA-256 over about 70 bytes and a 3,072-bit multiplication per coin; no memory but that
//! of the ordered export.

use crate::chainstate::manager::ChainstateManager;
use crate::engine::Engine;
use crate::error::EngineError;
use lydian_coins::Tip;
use lydian_consensus::Coin;
use lydian_consensus::utxo_hash::serialize_coin;
use lydian_hash::{MuHash3072, Sha256};
use lydian_primitives::{Amount, OutPoint};

/// Totals and hashes over all coins.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct UtxoHashes {
    pub tip: Tip,
    pub coins: u64,
    pub total: Amount,
    /// In internal byte order; displayed reversed.
    pub hash_serialized_3: [u8; 32],
    pub muhash: [u8; 32],
}

/// The requested hash of all coins.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum UtxoHash {
    None,
    HashSerialized3,
    Muhash,
}

/// The data of Core's `gettxoutsetinfo`.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct CoinsSummary {
    pub tip: Tip,
    pub coins: u64,
    /// Transactions with an unspent output.
    pub transactions: u64,
    /// Core's size measure of the set, independent of its storage.
    pub bogosize: u64,
    pub total: Amount,
    /// In internal byte order; displayed reversed.
    pub hash: Option<[u8; 32]>,
    pub disk_bytes: u64,
}

/// Bytes that Core counts for a coin besides its script: outpoint, height and flag, value, and the script's length.
const BOGOSIZE_OF_COIN: u64 = 32 + 4 + 4 + 8 + 2;

impl Engine {
    /// The hashes of the coins at the tip, as in Core's `gettxoutsetinfo`. Reads every coin.
    pub fn utxo_hashes(&self) -> Result<UtxoHashes, EngineError> {
        self.shared.read(utxo_hashes)
    }

    /// Sums over all coins at the tip, and the requested hash. Reads every coin; no block is validated meanwhile.
    pub fn coins_summary(&self, hash: UtxoHash) -> Result<CoinsSummary, EngineError> {
        self.shared.read(|chainstate| summary(chainstate, hash))
    }

    /// Visits all coins, ordered by txid bytes and output index; returns the tip they belong to. No block is validated
    /// meanwhile.
    pub fn visit_coins(
        &self,
        visit: &mut dyn FnMut(&OutPoint, &Coin) -> Result<(), EngineError>,
    ) -> Result<Tip, EngineError> {
        self.shared.read(|chainstate| {
            chainstate.coins.export(visit)?;
            Ok(chainstate.tip())
        })
    }
}

fn summary(chainstate: &ChainstateManager, kind: UtxoHash) -> Result<CoinsSummary, EngineError> {
    let (mut serialized, mut muhash) = (Sha256::new(), MuHash3072::new());
    let (mut coins, mut transactions, mut bogosize, mut total) = (0, 0, 0, 0);
    let mut last = None;
    chainstate.coins.export(&mut |outpoint, coin| -> Result<(), EngineError> {
        match kind {
            UtxoHash::None => {}
            UtxoHash::HashSerialized3 => {
                serialized.update(&serialize_coin(outpoint, coin));
            }
            UtxoHash::Muhash => {
                muhash.insert(&serialize_coin(outpoint, coin));
            }
        }
        // Coins come ordered by transaction.
        if last.replace(outpoint.txid) != Some(outpoint.txid) {
            transactions += 1;
        }
        coins += 1;
        bogosize += BOGOSIZE_OF_COIN + coin.script_pubkey.len() as u64;
        total += coin.value.0;
        Ok(())
    })?;
    let hash = match kind {
        UtxoHash::None => None,
        UtxoHash::HashSerialized3 => Some(serialized.finalize_double()),
        UtxoHash::Muhash => Some(muhash.finalize()),
    };
    let disk_bytes = chainstate.coins.stats().disk_bytes;
    Ok(CoinsSummary { tip: chainstate.tip(), coins, transactions, bogosize, total: Amount(total), hash, disk_bytes })
}

fn utxo_hashes(chainstate: &ChainstateManager) -> Result<UtxoHashes, EngineError> {
    let (mut serialized, mut muhash) = (Sha256::new(), MuHash3072::new());
    let (mut coins, mut total) = (0, 0);
    chainstate.coins.export(&mut |outpoint, coin| -> Result<(), EngineError> {
        let bytes = serialize_coin(outpoint, coin);
        serialized.update(&bytes);
        muhash.insert(&bytes);
        coins += 1;
        total += coin.value.0;
        Ok(())
    })?;
    let (hash_serialized_3, muhash) = (serialized.finalize_double(), muhash.finalize());
    Ok(UtxoHashes { tip: chainstate.tip(), coins, total: Amount(total), hash_serialized_3, muhash })
}
