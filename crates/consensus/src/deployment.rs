//! Script flags and the blocks for which BIP-0030 is checked. Pure functions of height, hash and params.

use crate::limits::BIP34_IMPLIES_BIP30_LIMIT;
use crate::params::{Deployment, Params};
use crate::view::HeaderView;
use lydian_primitives::{BlockHash, Height};
use lydian_script::Flags;

/// The flags for verifying the scripts of a block: Core's `GetBlockScriptFlags` (validation.cpp).
///
/// P2SH, WITNESS and TAPROOT apply to every block except the listed exceptions; the others from their activation
/// heights on.
pub fn script_flags(height: Height, hash: &BlockHash, params: &Params) -> Flags {
    let exception = params.script_flag_exceptions.iter().find(|exception| exception.hash == *hash);
    let always = Flags::P2SH.union(Flags::WITNESS).union(Flags::TAPROOT);
    let by_height = [
        (Deployment::Dersig, Flags::DERSIG),
        (Deployment::Cltv, Flags::CHECKLOCKTIMEVERIFY),
        (Deployment::Csv, Flags::CHECKSEQUENCEVERIFY),
        (Deployment::Segwit, Flags::NULLDUMMY),
    ];
    by_height
        .into_iter()
        .filter(|(deployment, _)| params.is_active(*deployment, height))
        .fold(exception.map_or(always, |exception| exception.flags), |flags, (_, flag)| flags.union(flag))
}

/// The two mainnet blocks with a coinbase that repeats an earlier one: Core's `IsBIP30Repeat`.
const BIP30_REPEATS: [(u32, &str); 2] = [
    (91_842, "00000000000a4d0a398161ffc163c503763b1f4360639393e0e4c8e300e0caec"),
    (91_880, "00000000000743f190a18c5577a3c2d2a1f610ae9601ac046a38084ccb7cd721"),
];

/// The two mainnet blocks with a coinbase that these repeats overwrote: Core's `IsBIP30Unspendable`.
const BIP30_UNSPENDABLES: [(u32, &str); 2] = [
    (91_722, "00000000000271a2dc26e7667f8419f2e15416dc6955e5a6c6cdf3f2574dd08e"),
    (91_812, "00000000000af0aed4792b1acee3d966af36cf5def14935db8de83d6f9306f2f"),
];

fn is_among(list: &[(u32, &str)], height: Height, hash: &BlockHash) -> bool {
    list.iter().any(|(at, text)| height == Height(*at) && text.parse() == Ok(*hash))
}

/// Whether a block's coinbase may overwrite an earlier one.
pub fn is_bip30_repeat(height: Height, hash: &BlockHash) -> bool {
    is_among(&BIP30_REPEATS, height, hash)
}

/// Whether a block's coinbase was overwritten later, so that disconnecting the block does not find its outputs.
pub fn is_bip30_unspendable(height: Height, hash: &BlockHash) -> bool {
    is_among(&BIP30_UNSPENDABLES, height, hash)
}

/// Whether BIP-0030 is checked for a block: Core's `ConnectBlock`.
///
/// It is not checked for the two repeats, nor if the ancestor at BIP-0034's activation height has the hash that Core
/// expects, because txids of coinbases cannot repeat after that block. From [`BIP34_IMPLIES_BIP30_LIMIT`] on it is
/// checked again.
pub fn is_bip30_checked(height: Height, hash: &BlockHash, headers: &impl HeaderView, params: &Params) -> bool {
    if height.0 >= BIP34_IMPLIES_BIP30_LIMIT {
        return true;
    }
    let anchor = params.activation_height(Deployment::HeightInCoinbase);
    let is_anchored = anchor < height
        && params.bip34_hash != BlockHash::ZERO
        && headers.ancestor(anchor).is_some_and(|ancestor| ancestor.hash == params.bip34_hash);
    !is_bip30_repeat(height, hash) && !is_anchored
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::params::Chain;
    use crate::view::Ancestor;
    use lydian_primitives::Header;

    /// A chain in which every block has the same hash.
    struct Uniform(BlockHash);

    impl HeaderView for Uniform {
        fn ancestor(&self, _: Height) -> Option<Ancestor> {
            let header = Header { version: 1, prev_block: self.0, merkle_root: [0; 32], time: 0, bits: 0, nonce: 0 };
            Some(Ancestor { hash: self.0, header })
        }
    }

    fn names(height: u32, hash: &str, chain: Chain) -> String {
        script_flags(Height(height), &hash.parse().unwrap_or_default(), &Params::new(chain)).names().join(",")
    }

    /// checklist: 27
    #[test]
    fn flags_by_height_and_their_exceptions() {
        let usual = "P2SH,WITNESS,TAPROOT";
        assert_eq!(names(0, "", Chain::Main), usual);
        assert_eq!(names(363_724, "", Chain::Main), usual);
        assert_eq!(names(363_725, "", Chain::Main), "P2SH,DERSIG,WITNESS,TAPROOT");
        assert_eq!(names(388_381, "", Chain::Main), "P2SH,DERSIG,CHECKLOCKTIMEVERIFY,WITNESS,TAPROOT");
        assert!(!names(419_327, "", Chain::Main).contains("CHECKSEQUENCEVERIFY"));
        assert!(names(419_328, "", Chain::Main).contains("CHECKSEQUENCEVERIFY"));
        assert!(!names(481_823, "", Chain::Main).contains("NULLDUMMY"));
        assert!(names(481_824, "", Chain::Main).contains("NULLDUMMY"));
        let bip16 = "00000000000002dc756eebf4f49723ed8d30cc28a5f108eb94b1ba88ac4f9c22";
        assert_eq!(names(170_060, bip16, Chain::Main), "");
        assert_eq!(names(170_060, bip16, Chain::Test), usual);
        let taproot = "0000000000000000000f14c35b2d841e986ab5441de8c585d5ffe55ea1e395ad";
        assert!(!names(692_261, taproot, Chain::Main).contains("TAPROOT"));
        assert!(names(692_261, taproot, Chain::Main).contains("NULLDUMMY"));
        let test = "00000000dd30457c001f4095d208cc1296b0eed002427aa599874af7a432b105";
        assert_eq!(names(394, test, Chain::Test), "");
        assert!(names(394, test, Chain::Regtest).contains("P2SH"));
        for exception in [Chain::Main, Chain::Test].map(Params::new).iter().flat_map(|p| &p.script_flag_exceptions) {
            assert_ne!(exception.hash, BlockHash::ZERO);
        }
    }

    /// checklist: 4, 6
    #[test]
    fn bip30_is_checked_but_for_the_exceptions() {
        let main = Params::new(Chain::Main);
        let known = Uniform(main.bip34_hash);
        let other = Uniform(BlockHash([7; 32]));
        let checked = |height, hash: &str, view: &Uniform| {
            is_bip30_checked(Height(height), &hash.parse().unwrap_or_default(), view, &main)
        };
        for (height, hash) in BIP30_REPEATS {
            assert!(!checked(height, hash, &other));
            assert!(checked(height + 1, hash, &other), "bound to the height");
            assert!(checked(height, "", &other), "bound to the hash");
        }
        assert!(checked(227_931, "", &known), "the anchor is not an ancestor yet");
        assert!(!checked(227_932, "", &known));
        assert!(checked(227_932, "", &other), "another chain");
        assert!(!checked(1_983_701, "", &known));
        assert!(checked(1_983_702, "", &known));
        let regtest = Params::new(Chain::Regtest);
        assert!(is_bip30_checked(Height(500), &BlockHash::ZERO, &Uniform(BlockHash::ZERO), &regtest));
        for (height, hash) in BIP30_UNSPENDABLES {
            assert!(is_bip30_unspendable(Height(height), &hash.parse().unwrap()));
            assert!(!is_bip30_unspendable(Height(height), &BlockHash::ZERO));
        }
    }
}
