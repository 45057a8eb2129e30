//! Faulty spends: cases of the preset `invalid`, chosen by name, and two with multisig.
//!
//! Input: the bench. Output: a block that funds the coins, then a group for each case; its twin spends the same coin
//! correctly.

use super::rules::{RULES, Rule};
use super::{Bench, Broken};
use crate::presets::invalid::{ScriptCase, Signing, Unlocked, script_cases};
use crate::presets::maker::free_tx;
use crate::wallet::Wallet;
use crate::wallet::script::{Script, multisig, p2sh, p2wsh};
use lydian_primitives::{OutPoint, Txid};
use secp256k1::Keypair;

const EVAL_FALSE: &str = "Script evaluated without error but finished with a false/empty top stack element";

/// The cases; one transaction has a coin for each.
pub(super) struct Funded {
    txid: Txid,
    cases: Vec<(ScriptCase, Broken)>,
}

impl Funded {
    pub(super) fn new(bench: &mut Bench) -> Funded {
        let mut known = script_cases(&bench.wallet);
        known.extend(multisigs(&bench.wallet));
        let find = |rule: &'static Rule| {
            let case = known.iter().find(|case| case.name() == rule.name)?.clone();
            let broken = Broken { rule, reason: case.reason() };
            Some((case, broken))
        };
        let cases: Vec<(ScriptCase, Broken)> = RULES.iter().filter_map(find).collect();
        let Some(coin) = bench.maker.rich_coin() else { unreachable!("coinbases are mature by now") };
        let funding = free_tx(&[coin], cases.iter().map(|(case, _)| case.coin()).collect());
        let txid = funding.txid();
        bench.trunk(vec![funding]);
        Funded { txid, cases }
    }

    pub(super) fn groups(self, bench: &mut Bench) {
        for (vout, (case, broken)) in (0..).zip(self.cases) {
            let outpoint = OutPoint { txid: self.txid, vout };
            let good = case.good_spend(outpoint).into_iter().collect();
            bench.txs(broken, vec![case.bad_spend(outpoint)], good);
        }
    }
}

/// 2-of-2 multisigs; in the second signature one bit of the byte before the hash type is flipped.
fn multisigs(wallet: &Wallet) -> [ScriptCase; 2] {
    let keys = [wallet.keypair(50, 0), wallet.keypair(50, 1)];
    let script = multisig(2, keys.map(|key| key.public_key().serialize().to_vec()));
    let legacy = {
        let script = script.clone();
        move |signing: &Signing<'_>, is_false: bool| -> Unlocked {
            let [first, second] = signatures(&keys, is_false, |key| signing.legacy(key, &script));
            (Script::new().push(&[]).push(&first).push(&second).push(&script).build(), Vec::new())
        }
    };
    let (legacy_bad, legacy_good) = (legacy.clone(), legacy);
    let witness = {
        let script = script.clone();
        move |signing: &Signing<'_>, is_false: bool| -> Unlocked {
            let [first, second] = signatures(&keys, is_false, |key| signing.segwit_v0(key, &script));
            (Vec::new(), vec![Vec::new(), first, second, script.clone()])
        }
    };
    let (witness_bad, witness_good) = (witness.clone(), witness);
    let p2sh_name = "p2sh-multisig-signature-false-by-a-bit";
    let p2wsh_name = "p2wsh-multisig-signature-false-by-a-bit";
    [
        ScriptCase::new(p2sh_name, EVAL_FALSE, p2sh(&script), move |signing| legacy_bad(signing, true))
            .twin(move |signing| legacy_good(signing, false)),
        ScriptCase::new(p2wsh_name, EVAL_FALSE, p2wsh(&script), move |signing| witness_bad(signing, true))
            .twin(move |signing| witness_good(signing, false)),
    ]
}

fn signatures(keys: &[Keypair; 2], is_false: bool, sign: impl Fn(&Keypair) -> Vec<u8>) -> [Vec<u8>; 2] {
    let [first, mut second] = [sign(&keys[0]), sign(&keys[1])];
    if is_false {
        let at = second.len() - 2;
        second[at] ^= 1;
    }
    [first, second]
}
