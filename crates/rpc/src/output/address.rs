//! Addresses. Input: an output script's kind, or text; the chain. Output: text (Core's `EncodeDestination`), or the script it stands for
//! (`DecodeDestination`, with its words for what is wrong).

use super::solver::Kind;
use bech32::{Fe32, Hrp, segwit};
use lydian_consensus::Chain;
use lydian_hash::sha256d;

/// What addresses of a chain begin with: Core's `base58Prefixes` and `bech32_hrp`.
fn prefixes(chain: Chain) -> (u8, u8, &'static str) {
    match chain {
        Chain::Main => (0, 5, "bc"),
        Chain::Test | Chain::Testnet4 | Chain::Signet => (111, 196, "tb"),
        Chain::Regtest => (111, 196, "bcrt"),
    }
}

/// The address of a script, where it has one.
pub(crate) fn encode(kind: &Kind<'_>, chain: Chain) -> Option<String> {
    let (key_prefix, script_prefix, hrp) = prefixes(chain);
    match kind {
        Kind::PubkeyHash(hash) => Some(base58(key_prefix, hash)),
        Kind::ScriptHash(hash) => Some(base58(script_prefix, hash)),
        Kind::WitnessV0KeyHash(program) | Kind::WitnessV0ScriptHash(program) => segwit(hrp, 0, program),
        Kind::WitnessV1Taproot(program) => segwit(hrp, 1, program),
        Kind::Anchor => segwit(hrp, 1, &[0x4e, 0x73]),
        Kind::WitnessUnknown { version, program } => segwit(hrp, *version, program),
        Kind::Nonstandard | Kind::Pubkey(_) | Kind::Multisig { .. } | Kind::NullData => None,
    }
}

fn segwit(hrp: &'static str, version: u8, program: &[u8]) -> Option<String> {
    let version = Fe32::try_from(version).ok()?;
    segwit::encode(Hrp::parse_unchecked(hrp), version, program).ok()
}

fn base58(prefix: u8, hash: &[u8]) -> String {
    let mut bytes = Vec::with_capacity(25);
    bytes.push(prefix);
    bytes.extend_from_slice(hash);
    let checksum = sha256d(&bytes);
    bytes.extend_from_slice(&checksum[..4]);
    bs58::encode(bytes).into_string()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::output::solver::solve;
    use lydian_primitives::hex;

    /// From BIP-0173, BIP-0350 and Core's key_io tests.
    #[test]
    fn addresses_of_scripts() {
        let address = |script: &str, chain| encode(&solve(&hex(script).unwrap()), chain);
        for (script, chain, text) in [
            ("76a91462e907b15cbf27d5425399ebf6f0fb50ebb88f1888ac", Chain::Main, "1A1zP1eP5QGefi2DMPTfTL5SLmv7DivfNa"),
            ("0014751e76e8199196d454941c45d1b3a323f1433bd6", Chain::Main, "bc1qw508d6qejxtdg4y5r3zarvary0c5xw7kv8f3t4"),
            ("6002751e", Chain::Main, "bc1sw50qgdz25j"),
            ("51024e73", Chain::Main, "bc1pfeessrawgf"),
            ("51024e73", Chain::Regtest, "bcrt1pfeesnyr2tx"),
        ] {
            assert_eq!(address(script, chain).as_deref(), Some(text), "{script}");
        }
        assert_eq!(address("6a", Chain::Main), None);
    }
}
