//! Multisig outputs from keys: Core's `AddAndGetMultisigDestination` (rpc/util.cpp).
//!
//! Input: public keys, and the type of the address. Output: the script, the address that pays it, and its descriptor.

use crate::address::Address;
use crate::checksum::with_checksum;
use lydian_consensus::Chain;
use lydian_hash::{hash160, sha256};
use lydian_primitives::to_hex;
use lydian_script::builder::scripts;

/// How an address pays a script: Core's `OutputType`, except taproot.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum MultisigType {
    Legacy,
    P2shSegwit,
    Bech32,
}

/// A multisig script and the output that pays it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Multisig {
    pub script: Vec<u8>,
    pub address: Address,
    /// With its checksum.
    pub descriptor: String,
    /// `Legacy` if a key is not compressed, and otherwise the type that was asked for.
    pub made: MultisigType,
}

impl Multisig {
    /// Needs `required` of the keys, which are points on the curve.
    pub fn new(required: u8, keys: &[Vec<u8>], asked: MultisigType, chain: Chain) -> Multisig {
        let views: Vec<&[u8]> = keys.iter().map(Vec::as_slice).collect();
        let script = scripts::multisig(required, &views);
        let is_compressed = keys.iter().all(|key| key.len() == 33);
        let made = if is_compressed { asked } else { MultisigType::Legacy };
        let program = || scripts::witness_program(0, &sha256(&script));
        let address = match made {
            MultisigType::Legacy => Address::ScriptHash(hash160(&script)),
            MultisigType::P2shSegwit => Address::ScriptHash(hash160(&program())),
            MultisigType::Bech32 => Address::WitnessV0ScriptHash(sha256(&script)),
        };
        // A descriptor has no hybrid keys.
        let is_hybrid = keys.iter().any(|key| matches!(key.first(), Some(6 | 7)));
        let texts: String = keys.iter().map(|key| format!(",{}", to_hex(key))).collect();
        let multi = format!("multi({required}{texts})");
        let descriptor = match made {
            _ if is_hybrid => format!("addr({})", address.text(chain)),
            MultisigType::Legacy => format!("sh({multi})"),
            MultisigType::P2shSegwit => format!("sh(wsh({multi}))"),
            MultisigType::Bech32 => format!("wsh({multi})"),
        };
        Multisig { descriptor: with_checksum(descriptor), script, address, made }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Descriptors;
    use lydian_primitives::hex;

    const X: &str = "79be667ef9dcbbac55a06295ce870b07029bfcdb2dce28d959f2815b16f81798";
    const Y: &str = "483ada7726a3c4655da4fbfc0e1108a8fd17b448a68554199c47d08ffb10d4b8";

    /// The descriptor is read again and pays the same output.
    #[test]
    fn the_descriptor_describes_the_address() {
        let (short, long) = (hex(&format!("02{X}")).unwrap(), hex(&format!("04{X}{Y}")).unwrap());
        let hybrid = hex(&format!("06{X}{Y}")).unwrap();
        let types = [MultisigType::Legacy, MultisigType::P2shSegwit, MultisigType::Bech32];
        for asked in types {
            for (keys, made, start) in [
                (vec![short.clone(), short.clone()], asked, None),
                (vec![short.clone(), long.clone()], MultisigType::Legacy, Some("sh(multi(2,02")),
                (vec![hybrid.clone(), short.clone()], MultisigType::Legacy, Some("addr(3")),
            ] {
                let found = Multisig::new(2, &keys, asked, Chain::Main);
                assert_eq!(found.made, made);
                assert!(start.is_none_or(|start| found.descriptor.starts_with(start)), "{}", found.descriptor);
                let read = Descriptors::parse(&found.descriptor, Chain::Main, true).unwrap();
                assert_eq!(read.expand(0, 0).unwrap()[0].script, found.address.script());
            }
        }
        let most = Multisig::new(20, &vec![short; 20], MultisigType::Bech32, Chain::Main);
        assert!(Descriptors::parse(&most.descriptor, Chain::Main, true).is_ok());
    }
}
