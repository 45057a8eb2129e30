//! The mining pools that say their name in the coinbase.
//!
//! Input: the script of a coinbase input. Output: a name; none if no known tag is in it. Anyone can write any tag, so
//! the answer is a claim of the block's miner, and the page says so.
//!
//! The table is our own: a tag is what the pool itself writes into the blocks that it finds, and the name is the one
//! under which it is known. Both are facts that anyone reads from the chain; no list was copied, so no licence but this
//! project's applies. The names were compared with the public lists `bitcoin-data/mining-pools` and
//! `mempool/mining-pools`, which also know payout addresses.

/// A tag and the pool that writes it. Longer tags stand before those that they contain.
const POOLS: &[(&str, &str)] = &[
    ("Foundry USA Pool", "Foundry USA"),
    ("Mined by AntPool", "AntPool"),
    ("/AntPool/", "AntPool"),
    ("/ViaBTC/", "ViaBTC"),
    ("/F2Pool/", "F2Pool"),
    ("f2pool", "F2Pool"),
    ("\u{1f41f}", "F2Pool"),
    ("\u{4e03}\u{5f69}\u{795e}\u{4ed9}\u{9c7c}", "F2Pool"),
    ("/SpiderPool/", "SpiderPool"),
    ("MARA Pool", "MARA Pool"),
    ("MARA Made in USA", "MARA Pool"),
    ("< OCEAN.XYZ >", "OCEAN"),
    ("OCEAN.XYZ", "OCEAN"),
    ("/LUXOR/", "Luxor"),
    ("Powered by Luxor Tech", "Luxor"),
    ("/Binance/", "Binance Pool"),
    ("binance", "Binance Pool"),
    ("SECPOOL", "SECPOOL"),
    ("SBICrypto", "SBI Crypto"),
    ("SBI Crypto", "SBI Crypto"),
    ("/slush/", "Braiins Pool"),
    ("/poolin.com", "Poolin"),
    ("/BTC.COM/", "BTC.com"),
    ("/BTC.com/", "BTC.com"),
    ("btccom", "BTC.com"),
    ("WhitePool", "WhitePool"),
    ("/ultimus/", "Ultimus Pool"),
    ("KuCoinPool", "KuCoin Pool"),
    ("one_more_mcd", "EMCDPool"),
    ("bitFuFu", "BitFuFu"),
    ("BitFuFu", "BitFuFu"),
    ("Bitdeer", "Bitdeer"),
    ("/solo.ckpool.org/", "Solo CKPool"),
    ("/ckpool.org/", "CKPool"),
    ("ckpool", "CKPool"),
    ("/NiceHash", "NiceHash"),
    ("NiceHashSolo", "NiceHash"),
    ("/pegapool/", "Pega Pool"),
    ("terrapool.io", "Terra Pool"),
    ("/Sigmapool.com/", "Sigmapool.com"),
    ("BITFARMS", "Bitfarms"),
    ("/BitFury/", "BitFury"),
    ("/Bitfury/", "BitFury"),
    ("Kano", "KanoPool"),
    ("/BTCC/", "BTCC"),
    ("BTC Guild", "BTC Guild"),
    ("/BTC.TOP/", "BTC.TOP"),
    ("/Huobi/", "Huobi Pool"),
    ("/HuoBi/", "Huobi Pool"),
    ("Eligius", "Eligius"),
    ("ghash.io", "GHash.IO"),
];

/// The pool that the script names.
pub(crate) fn pool(script: &[u8]) -> Option<&'static str> {
    let has = |tag: &str| script.windows(tag.len()).any(|part| part == tag.as_bytes());
    POOLS.iter().find(|(tag, _)| has(tag)).map(|(_, name)| *name)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_pool_is_known_by_its_tag() {
        assert_eq!(pool(b"\x03\x01\x02\x03/ViaBTC/Mined by someone/"), Some("ViaBTC"));
        assert_eq!(pool("\x03abc\u{1f41f}".as_bytes()), Some("F2Pool"));
        assert_eq!(pool(b"\x04\x01Foundry USA Pool #dropgold/\x07"), Some("Foundry USA"));
        assert_eq!(pool(b"\x03abc/solo.ckpool.org/"), Some("Solo CKPool"), "the longer tag");
        assert_eq!((pool(b""), pool(b"/viabtc"), pool(b"\xff\xfe")), (None, None, None));
    }

    /// A tag that contains another one would never be found behind it.
    #[test]
    fn every_tag_can_be_found() {
        for (tag, name) in POOLS {
            assert_eq!(pool(format!("x{tag}y").as_bytes()), Some(*name), "{tag}");
        }
    }
}
