//! The hashes of all coins, as Core's `gettxoutsetinfo` tells them. Input: the coin store. Output: both hashes and sums, in one
//! ordered pass. Cost: a double hash over about 70 bytes a coin and a multiplication of 3,072 bits; nothing is kept in memory
//! but what the ordered export needs.

use crate::core::Core;
use crate::error::EngineError;
use lydian_coins::Tip;
use lydian_consensus::utxo_hash::serialize_coin;
use lydian_hash::{MuHash3072, Sha256};
use lydian_primitives::Amount;

/// What there is to say of all coins together.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct UtxoHashes {
    pub tip: Tip,
    pub coins: u64,
    pub total: Amount,
    /// In internal byte order, shown reversed.
    pub hash_serialized_3: [u8; 32],
    pub muhash: [u8; 32],
}

pub(crate) fn utxo_hashes(core: &Core) -> Result<UtxoHashes, EngineError> {
    let (mut serialized, mut muhash) = (Sha256::new(), MuHash3072::new());
    let (mut coins, mut total) = (0, 0);
    core.coins.export(&mut |outpoint, coin| -> Result<(), EngineError> {
        let bytes = serialize_coin(outpoint, coin);
        serialized.update(&bytes);
        muhash.insert(&bytes);
        coins += 1;
        total += coin.value.0;
        Ok(())
    })?;
    let (hash_serialized_3, muhash) = (serialized.finalize_double(), muhash.finalize());
    Ok(UtxoHashes { tip: core.tip(), coins, total: Amount(total), hash_serialized_3, muhash })
}
