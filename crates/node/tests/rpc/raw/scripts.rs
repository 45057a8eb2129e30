//! `decodescript`, with scripts of every kind.

use super::locks::{expression, keys, lock};
use super::seeded;
use crate::chain::Pair;
use lydian_primitives::to_hex;

#[test]
fn scripts_are_decoded_as_core_decodes_them() {
    let Some(pair) = Pair::start("scripts_are_decoded", &[]) else { return };
    let keys = keys(&pair, 6);
    let compressed = &keys[..4];
    let mut random = seeded(31);
    let (mut scripts, mut sane) = (Vec::new(), 0);
    for _ in 0..300 {
        let lock = lock(&mut random, &keys);
        scripts.extend([Some(lock.script), lock.redeem_script, lock.witness_script].into_iter().flatten());
    }
    for _ in 0..2_500 {
        let usable = if random.below(8) == 0 { &keys } else { compressed };
        let mut script = expression(&mut random, usable, 3);
        if random.below(4) == 0 {
            let place = random.below(script.len());
            script[place] = random.byte();
        }
        scripts.push(script);
    }
    for script in &scripts {
        let params = format!("[\"{}\"]", to_hex(script));
        let answer = pair.core.result("decodescript", &params);
        let desc = answer["segwit"]["desc"].as_str().unwrap_or_default();
        sane += usize::from(desc.starts_with("wsh("));
        pair.ask("decodescript", &params);
    }
    assert!(sane > 100, "{sane} of {} scripts are miniscript", scripts.len());
    for params in ["[\"\"]", "[\"0\"]", "[\"zz\"]", "[1]", "[null]"] {
        pair.ask("decodescript", params);
    }
    pair.comparison.finish();
}
