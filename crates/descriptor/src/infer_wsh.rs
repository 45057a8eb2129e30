//! Descriptors inferred from witness scripts: Core's `InferScript` inside wsh(), without a key provider.
//!
//! Input: a witness script. Output: text. A hash of a key says nothing about the key, so scripts with one have none.

use crate::checksum::with_checksum;
use crate::expression::decode_miniscript;
use crate::solver::{TxoutType, solve};
use lydian_primitives::to_hex;

/// The descriptor of the output that pays a witness script, with its checksum; `None` if the script is neither a
/// multisig of compressed keys nor sane miniscript.
pub fn infer_wsh(script: &[u8]) -> Option<String> {
    let is_compressed = |key: &&[u8]| matches!(key, [2 | 3, ..]);
    let inner = match solve(script) {
        TxoutType::Pubkey(key) if is_compressed(&key) => format!("pk({})", to_hex(key)),
        TxoutType::Multisig { required, keys } if keys.iter().all(is_compressed) => {
            let keys: String = keys.iter().map(|key| format!(",{}", to_hex(key))).collect();
            format!("multi({required}{keys})")
        }
        _ => {
            let (fragment, keys) = decode_miniscript(script, false, &mut |_| None)?;
            let text = |index: usize, _: bool| keys.get(index).map_or_else(String::new, |key| to_hex(key));
            Some(fragment).filter(|fragment| fragment.is_sane())?.text(&text)
        }
    };
    Some(with_checksum(format!("wsh({inner})")))
}

#[cfg(test)]
mod tests {
    use super::*;
    use lydian_primitives::hex;

    /// Core's answers to `decodescript`; the test of that method compares thousands more.
    #[test]
    fn witness_scripts_are_described() {
        let key = "0279be667ef9dcbbac55a06295ce870b07029bfcdb2dce28d959f2815b16f81798";
        let described =
            |script: &str| infer_wsh(&hex(script).unwrap()).map(|text| text.split('#').next().unwrap().to_owned());
        let expected = Some(format!("wsh(and_v(v:pk({key}),older(3)))"));
        assert_eq!(described(&format!("21{key}ad53b2")), expected);
        assert_eq!(described(&format!("5121{key}51ae")), Some(format!("wsh(multi(1,{key}))")));
        // Not minimal, not sane, no expression, and a key hash without its key.
        for script in [&format!("21{key}ac6953b2"), "51", "", &format!("21{key}ad76a914{}88ac", "11".repeat(20))] {
            assert_eq!(described(script), None, "{script}");
        }
    }

    /// limit: MINISCRIPT_DEPTH_MAX at
    /// limit: MINISCRIPT_DEPTH_MAX above
    #[test]
    fn scripts_are_nested_as_deep_as_text_may_be() {
        use crate::limits::MINISCRIPT_DEPTH_MAX;
        let key = hex("0279be667ef9dcbbac55a06295ce870b07029bfcdb2dce28d959f2815b16f81798").unwrap();
        // n:n:...pk(), in which the sequence, the check and the key take three levels.
        let nested = |wrappers: usize| {
            let script = [&[33][..], &key, &[0xac], &vec![0x92; wrappers]].concat();
            decode_miniscript(&script, false, &mut |_| None).is_some()
        };
        assert!(nested(MINISCRIPT_DEPTH_MAX - 3));
        assert!(!nested(MINISCRIPT_DEPTH_MAX - 2));
    }
}
