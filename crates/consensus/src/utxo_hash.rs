//! Hashes of a set of coins, equal to those of Core's `gettxoutsetinfo`.
//!
//! Input: coins. Output: 32 bytes, displayed in reverse order like any hash. Source: Core's kernel/coinstats.cpp
//! (`TxOutSer`, `ApplyHash`). Cost: hashing about 70 bytes per coin; MuHash also needs a 3,072-bit multiplication per
//! coin.

use crate::view::{Coin, CoinRef};
use lydian_hash::{MuHash3072, Sha256};
use lydian_primitives::OutPoint;
use lydian_primitives::build::write_var_bytes;

/// The serialisation of one coin for both hashes: outpoint, height and coinbase flag, value, script.
pub fn serialize_coin(outpoint: &OutPoint, coin: &Coin) -> Vec<u8> {
    let mut out = Vec::new();
    write_coin(outpoint, coin.as_ref(), &mut out);
    out
}

/// Core's size measure of a coin, independent of its storage: its script, and 50 bytes for outpoint, height and flag,
/// value, and the script's length (`GetBogoSize`, kernel/coinstats.cpp).
pub fn bogosize(coin: CoinRef<'_>) -> u64 {
    const BESIDES_SCRIPT: u64 = 32 + 4 + 4 + 8 + 2;
    BESIDES_SCRIPT + coin.script_pubkey.len() as u64
}

/// Appends the serialisation of one coin.
pub fn write_coin(outpoint: &OutPoint, coin: CoinRef<'_>, out: &mut Vec<u8>) {
    out.extend_from_slice(&outpoint.to_bytes());
    let code = coin.height.0 << 1 | u32::from(coin.is_coinbase);
    out.extend_from_slice(&code.to_le_bytes());
    out.extend_from_slice(&coin.value.0.to_le_bytes());
    write_var_bytes(out, coin.script_pubkey);
}

/// `hash_serialized_3`: the double SHA-256 of all coins in order of txid bytes and output index.
pub fn hash_serialized_3<'a>(coins: impl Iterator<Item = (&'a OutPoint, &'a Coin)>) -> [u8; 32] {
    let mut hasher = Sha256::new();
    for (outpoint, coin) in coins {
        hasher.update(&serialize_coin(outpoint, coin));
    }
    hasher.finalize_double()
}

/// `muhash`: independent of the order of the coins.
pub fn muhash<'a>(coins: impl Iterator<Item = (&'a OutPoint, &'a Coin)>) -> [u8; 32] {
    let mut muhash = MuHash3072::new();
    for (outpoint, coin) in coins {
        muhash.insert(&serialize_coin(outpoint, coin));
    }
    muhash.finalize()
}
