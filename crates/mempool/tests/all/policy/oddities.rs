//! The table of oddities: each changes a plain payment so that it goes to a limit of policy, or one beyond.
//!
//! Input: a draft, the settings. Output: the changed draft. An oddity states no verdict: Core does.

use super::draft::{Draft, Fee};
use super::locks::{Lock, public};
use super::world::{Fund, SPLIT_HEIGHT, TIP, VALUE, World, dropping, failing, open_lock, output, padded, sigops};
use lydian_mempool::policy::{Settings, dust_threshold};
use lydian_primitives::build::MutOutput;
use lydian_primitives::{Amount, OutPoint, Output, Txid};
use lydian_script::ScriptBuilder;
use lydian_script::builder::scripts::{multisig, p2pk, witness_program};
use lydian_script::opcodes::*;

/// What an oddity may look at.
pub struct Scene<'a> {
    pub world: &'a World,
    pub settings: &'a Settings,
}

pub type Oddity = (&'static str, fn(&mut Draft, &Scene<'_>));

pub const ODDITIES: &[Oddity] = &[
    ("version 0", |draft, _| draft.version = 0),
    ("version 1", |draft, _| draft.version = 1),
    ("version 3", |draft, _| draft.version = 3),
    ("version 4", |draft, _| draft.version = 4),
    ("version 2^32 - 1", |draft, _| draft.version = u32::MAX),
    ("weight 400000", |draft, scene| weigh(draft, scene, 400_000)),
    ("weight 400001", |draft, scene| weigh(draft, scene, 400_001)),
    ("weight of 10000 vB, version 3", |draft, scene| {
        draft.version = 3;
        weigh(draft, scene, 40_000);
    }),
    ("weight of 10001 vB, version 3", |draft, scene| {
        draft.version = 3;
        weigh(draft, scene, 40_001);
    }),
    ("scriptSig of 1650 bytes", |draft, scene| long_script_sig(draft, scene, 1650)),
    ("scriptSig of 1651 bytes", |draft, scene| long_script_sig(draft, scene, 1651)),
    ("scriptSig with a NOP", |draft, scene| {
        draft.add(&Lock::Sh(vec![OP_1]), scene.world);
        on_script_sig(draft, |script| script.insert(0, OP_NOP));
    }),
    ("scriptSig with OP_RESERVED", |draft, scene| {
        draft.add(&Lock::Sh(vec![OP_1]), scene.world);
        on_script_sig(draft, |script| script.insert(0, OP_RESERVED));
    }),
    ("P2SH scriptSig that is empty", |draft, scene| {
        draft.add(&Lock::Sh(vec![OP_1]), scene.world);
        on_script_sig(draft, |script| script.clear());
    }),
    ("P2SH scriptSig with a push of 521 bytes", |draft, scene| {
        draft.add_with(&Lock::Sh(dropping(1)), vec![vec![1; 521]], scene.world);
    }),
    ("output of an unknown type", |draft, _| draft.pay(10_000, vec![OP_1])),
    ("output without a script", |draft, _| draft.pay(10_000, Vec::new())),
    ("output of witness version 0 with 16 bytes", |draft, _| draft.pay(10_000, witness_program(0, &[1; 16]))),
    ("output of witness version 2", |draft, _| draft.pay(10_000, witness_program(2, &[1; 32]))),
    ("pay-to-anchor output", |draft, _| draft.pay(10_000, Lock::Anchor.script_pubkey())),
    ("P2PK output with an uncompressed key", |draft, _| draft.pay(10_000, p2pk(&[&[4][..], &[1; 64]].concat()))),
    ("bare multisig, 1 of 1", |draft, _| pay_multisig(draft, 1, 1)),
    ("bare multisig, 3 of 3", |draft, _| pay_multisig(draft, 3, 3)),
    ("bare multisig, 1 of 4", |draft, _| pay_multisig(draft, 1, 4)),
    ("OP_RETURN alone", |draft, _| draft.pay(0, vec![OP_RETURN])),
    ("OP_RETURN with a value", |draft, _| draft.pay(546, vec![OP_RETURN, 2, 1, 1])),
    ("OP_RETURN, not only pushes", |draft, _| draft.pay(0, vec![OP_RETURN, OP_CHECKSIG])),
    ("OP_RETURN of 83 bytes", |draft, _| draft.pay(0, data(83))),
    ("OP_RETURN of 84 bytes", |draft, _| draft.pay(0, data(84))),
    ("two OP_RETURN of 84 bytes together", |draft, _| {
        draft.pay(0, data(40));
        draft.pay(0, data(44));
    }),
    ("OP_RETURN at -datacarriersize", |draft, scene| draft.pay(0, data(datacarrier(scene)))),
    ("OP_RETURN above -datacarriersize", |draft, scene| draft.pay(0, data(datacarrier(scene) + 1))),
    ("two OP_RETURN above -datacarriersize", |draft, scene| {
        draft.pay(0, data(datacarrier(scene)));
        draft.pay(0, vec![OP_RETURN]);
    }),
    ("outputs at the dust threshold", |draft, scene| pay_at_threshold(draft, scene, 0)),
    ("outputs below the dust threshold", |draft, scene| pay_at_threshold(draft, scene, -1)),
    ("dust that pays a fee", |draft, _| draft.pay(0, Lock::Anchor.script_pubkey())),
    ("dust that pays no fee", |draft, _| {
        draft.pay(0, Lock::Anchor.script_pubkey());
        draft.fee = Fee::Fixed(0);
    }),
    ("two outputs of dust", |draft, _| {
        draft.pay(0, Lock::Anchor.script_pubkey());
        draft.pay(1, Lock::Wpkh.script_pubkey());
    }),
    ("64 bytes without witness", |draft, scene| tiny(draft, scene, vec![OP_RETURN, 2, 1, 1])),
    ("65 bytes without witness", |draft, scene| tiny(draft, scene, vec![OP_RETURN, 3, 1, 1, 1])),
    ("lock time at the next block", |draft, _| lock(draft, TIP)),
    ("lock time after the next block", |draft, _| lock(draft, TIP + 1)),
    ("lock time after the next block, final", |draft, _| draft.lock_time = TIP + 1),
    ("lock time at the tip's time", |draft, scene| lock(draft, scene.world.tip_time() - 1)),
    ("lock time after the tip's time", |draft, scene| lock(draft, scene.world.tip_time())),
    ("relative lock at the next block", |draft, _| relative(draft, TIP + 1 - SPLIT_HEIGHT)),
    ("relative lock after the next block", |draft, _| relative(draft, TIP + 1 - SPLIT_HEIGHT + 1)),
    ("relative lock after the next block, version 1", |draft, _| {
        draft.version = 1;
        relative(draft, TIP + 1 - SPLIT_HEIGHT + 1);
    }),
    ("relative time at the tip's time", |draft, scene| relative(draft, 1 << 22 | relative_time(scene))),
    ("relative time after the tip's time", |draft, scene| relative(draft, 1 << 22 | (relative_time(scene) + 1))),
    ("no output", |draft, _| draft.outputs.clear()),
    ("negative output", |draft, _| draft.pay(-1, open_lock().script_pubkey())),
    ("output above all money", |draft, _| {
        draft.after(|tx| tx.outputs.push(output(Amount::MAX_MONEY.0 + 1, open_lock().script_pubkey())));
    }),
    ("outputs above all money", |draft, _| {
        draft.after(|tx| {
            tx.outputs.push(output(Amount::MAX_MONEY.0, open_lock().script_pubkey()));
            tx.outputs.push(output(1, open_lock().script_pubkey()));
        });
    }),
    ("outputs above inputs", |draft, _| draft.fee = Fee::Fixed(-1)),
    ("an input twice", |draft, _| draft.after(|tx| tx.inputs.push(tx.inputs[0].clone()))),
    ("an input with the null prevout", |draft, scene| {
        draft.spend(Fund { outpoint: OutPoint::NULL, lock: open_lock() });
        draft.add(&open_lock(), scene.world);
    }),
    ("a coinbase", |draft, _| {
        draft.inputs.clear();
        draft.spend(Fund { outpoint: OutPoint::NULL, lock: Lock::Raw(Vec::new()) });
        draft.after(|tx| tx.inputs[0].script_sig = vec![1, 1]);
    }),
    ("a coinbase with a scriptSig of 1 byte", |draft, _| {
        draft.inputs.clear();
        draft.spend(Fund { outpoint: OutPoint::NULL, lock: Lock::Raw(Vec::new()) });
        draft.after(|tx| tx.inputs[0].script_sig = vec![1]);
    }),
    ("an unknown coin", |draft, _| {
        draft.spend(Fund { outpoint: OutPoint { txid: Txid([9; 32]), vout: 0 }, lock: open_lock() });
    }),
    ("an output that does not exist", |draft, scene| {
        draft.spend(Fund { outpoint: OutPoint { txid: scene.world.splits[0].txid(), vout: 9999 }, lock: open_lock() });
    }),
    ("a coinbase of 100 blocks", |draft, scene| draft.spend(scene.world.coinbase(TIP + 1 - 100))),
    ("a coinbase of 99 blocks", |draft, scene| draft.spend(scene.world.coinbase(TIP + 1 - 99))),
    ("a coin of an unknown type", |draft, scene| draft.add(&Lock::Raw(vec![OP_1]), scene.world)),
    ("a coin of witness version 0 with 16 bytes", |draft, scene| {
        draft.add(&Lock::Raw(witness_program(0, &[7; 16])), scene.world);
    }),
    ("a coin of witness version 2", |draft, scene| {
        draft.add(&Lock::Raw(witness_program(2, &[7; 32])), scene.world);
    }),
    ("a coin of witness version 1 with 33 bytes", |draft, scene| {
        draft.add(&Lock::Raw(witness_program(1, &[7; 33])), scene.world);
    }),
    ("P2SH with 15 sigops", |draft, scene| draft.add(&Lock::Sh(sigops(OP_CHECKSIG, 15)), scene.world)),
    ("P2SH with 16 sigops", |draft, scene| draft.add(&Lock::Sh(sigops(OP_CHECKSIG, 16)), scene.world)),
    ("2500 legacy sigops", |draft, scene| legacy_sigops(draft, scene, 10)),
    ("2501 legacy sigops", |draft, scene| legacy_sigops(draft, scene, 11)),
    ("sigops cost of 16000", |draft, scene| witness_sigops(draft, scene, false)),
    ("sigops cost of 16001", |draft, scene| witness_sigops(draft, scene, true)),
    ("many sigops in outputs", |draft, _| (0..30).for_each(|_| pay_multisig(draft, 1, 3))),
    ("one witness script of 3900 sigops", |draft, scene| {
        draft.add(&Lock::Wsh(sigops(OP_CHECKMULTISIG, 195)), scene.world);
    }),
    ("a spent bare multisig", |draft, scene| draft.add(&Lock::Multi, scene.world)),
    ("a spent P2PK", |draft, scene| draft.add(&Lock::Pk, scene.world)),
    ("pay-to-anchor spent with a witness", |draft, scene| {
        draft.add(&Lock::Anchor, scene.world);
        stuff_witness(draft);
    }),
    ("P2SH spent with a witness", |draft, scene| {
        draft.add(&Lock::Sh(vec![OP_1]), scene.world);
        stuff_witness(draft);
    }),
    ("P2PKH spent with a witness", |draft, scene| {
        draft.add(&Lock::Pkh, scene.world);
        stuff_witness(draft);
    }),
    ("witness script of 3600 bytes", |draft, scene| draft.add(&Lock::Wsh(padded(3600)), scene.world)),
    ("witness script of 3601 bytes", |draft, scene| draft.add(&Lock::Wsh(padded(3601)), scene.world)),
    ("100 witness elements", |draft, scene| {
        draft.add_with(&Lock::Wsh(dropping(100)), vec![vec![1]; 100], scene.world);
    }),
    ("101 witness elements", |draft, scene| {
        draft.add_with(&Lock::Wsh(dropping(101)), vec![vec![1]; 101], scene.world);
    }),
    ("101 witness elements in P2SH", |draft, scene| {
        draft.add_with(&Lock::ShWsh(dropping(101)), vec![vec![1]; 101], scene.world);
    }),
    ("witness element of 80 bytes", |draft, scene| {
        draft.add_with(&Lock::Wsh(dropping(1)), vec![vec![1; 80]], scene.world);
    }),
    ("witness element of 81 bytes", |draft, scene| {
        draft.add_with(&Lock::Wsh(dropping(1)), vec![vec![1; 81]], scene.world);
    }),
    ("witness element of 81 bytes in P2SH", |draft, scene| {
        draft.add_with(&Lock::ShWsh(dropping(1)), vec![vec![1; 81]], scene.world);
    }),
    ("tapscript element of 80 bytes", |draft, scene| {
        draft.add_with(&Lock::Tap(0xc0, dropping(1)), vec![vec![1; 80]], scene.world);
    }),
    ("tapscript element of 81 bytes", |draft, scene| {
        draft.add_with(&Lock::Tap(0xc0, dropping(1)), vec![vec![1; 81]], scene.world);
    }),
    ("element of 81 bytes with another leaf version", |draft, scene| {
        draft.add_with(&Lock::Tap(0xc2, dropping(1)), vec![vec![1; 81]], scene.world);
    }),
    ("annex", |draft, scene| {
        draft.add(&Lock::TapKey, scene.world);
        on_witness(draft, |witness| witness.push(vec![0x50]));
    }),
    ("empty control block", |draft, scene| {
        draft.add_with(&Lock::Tap(0xc0, dropping(1)), vec![vec![1]], scene.world);
        on_witness(draft, |witness| witness.last_mut().unwrap().clear());
    }),
    ("the minimum relay fee", |draft, _| pay_fee(draft, Fee::Above(0))),
    ("below the minimum relay fee", |draft, _| pay_fee(draft, Fee::Above(-1))),
    ("no fee", |draft, _| draft.fee = Fee::Fixed(0)),
    ("a huge fee", |draft, _| draft.fee = Fee::Fixed(VALUE - 200_000)),
    ("P2WPKH without its witness", |draft, scene| {
        draft.add(&Lock::Wpkh, scene.world);
        draft.after(|tx| tx.inputs.iter_mut().for_each(|input| input.witness.clear()));
    }),
    ("a wrong key's signature", |draft, scene| {
        draft.add(&Lock::Pkh, scene.world);
        draft.after(|tx| tx.outputs.iter_mut().for_each(|output| output.value.0 -= 1));
    }),
    ("STRICTENC", |draft, scene| fail(draft, scene, 0)),
    ("LOW_S", |draft, scene| fail(draft, scene, 1)),
    ("NULLFAIL", |draft, scene| fail(draft, scene, 2)),
    ("MINIMALDATA", |draft, scene| fail(draft, scene, 3)),
    ("DISCOURAGE_UPGRADABLE_NOPS", |draft, scene| fail(draft, scene, 4)),
    ("CLEANSTACK", |draft, scene| fail(draft, scene, 5)),
    ("CONST_SCRIPTCODE", |draft, scene| fail(draft, scene, 6)),
    ("CONST_SCRIPTCODE, a signature in its script", |draft, scene| fail(draft, scene, 7)),
    ("MINIMALIF", |draft, scene| fail(draft, scene, 8)),
    ("WITNESS_PUBKEYTYPE", |draft, scene| fail(draft, scene, 9)),
    ("DISCOURAGE_OP_SUCCESS", |draft, scene| fail(draft, scene, 10)),
    ("DISCOURAGE_UPGRADABLE_PUBKEYTYPE", |draft, scene| fail(draft, scene, 11)),
    ("DISCOURAGE_UPGRADABLE_TAPROOT_VERSION", |draft, scene| {
        draft.add_with(&Lock::Tap(0xc2, dropping(1)), vec![vec![1]], scene.world);
    }),
];

/// Changes the last scriptSig that is not empty.
fn on_script_sig(draft: &mut Draft, change: fn(&mut Vec<u8>)) {
    draft.after(move |tx| {
        let last = tx.inputs.iter_mut().rfind(|input| !input.script_sig.is_empty());
        last.into_iter().for_each(|input| change(&mut input.script_sig));
    });
}

/// Changes the last witness that is not empty.
fn on_witness(draft: &mut Draft, change: fn(&mut Vec<Vec<u8>>)) {
    draft.after(move |tx| {
        let last = tx.inputs.iter_mut().rfind(|input| !input.witness.is_empty());
        last.into_iter().for_each(|input| change(&mut input.witness));
    });
}

fn stuff_witness(draft: &mut Draft) {
    let last = draft.inputs.len().saturating_sub(1);
    draft.after(move |tx| tx.inputs.get_mut(last).into_iter().for_each(|input| input.witness = vec![vec![1]]));
}

/// Removes inputs whose signatures may differ in size from one signing to the next.
fn keep_size(draft: &mut Draft) {
    let signed = [Lock::Pk, Lock::Pkh, Lock::Wpkh, Lock::ShWpkh, Lock::Multi];
    draft.inputs.retain(|input| !signed.contains(&input.fund.lock));
}

fn pay_fee(draft: &mut Draft, fee: Fee) {
    keep_size(draft);
    draft.fee = fee;
}

/// Puts an input first whose element can grow by single units of weight.
fn weigh(draft: &mut Draft, scene: &Scene<'_>, weight: usize) {
    keep_size(draft);
    draft.add_with(&Lock::Wsh(dropping(1)), vec![vec![1]], scene.world);
    let last = draft.inputs.len().saturating_sub(1);
    draft.inputs.swap(0, last);
    draft.weight = Some(weight);
}

/// Four elements and a redeem script of three bytes: pushes of 523, 523, 522, the rest, and 4 bytes.
fn long_script_sig(draft: &mut Draft, scene: &Scene<'_>, size: usize) {
    let rest = size - 523 - 523 - 522 - 4;
    let items = [520, 520, 519, rest - 2].map(|size| vec![1; size]).to_vec();
    draft.add_with(&Lock::Sh(dropping(4)), items, scene.world);
}

fn pay_multisig(draft: &mut Draft, required: u8, keys: usize) {
    let key = public();
    draft.pay(10_000, multisig(required, &vec![&key[..]; keys]));
}

fn datacarrier(scene: &Scene<'_>) -> usize {
    scene.settings.datacarrier_bytes_max.unwrap_or(0) as usize
}

/// A data-carrying script of exactly this size, which is at least one.
fn data(size: usize) -> Vec<u8> {
    [&[OP_RETURN][..], &vec![OP_0; size.saturating_sub(1)]].concat()
}

/// One output of each type that pays the threshold plus `more`.
fn pay_at_threshold(draft: &mut Draft, scene: &Scene<'_>, more: i64) {
    let scripts = if more < 0 {
        vec![Lock::Pkh.script_pubkey(), Lock::Wpkh.script_pubkey()]
    } else {
        let locks = [Lock::Pk, Lock::Pkh, Lock::Wpkh, Lock::TapKey, Lock::Anchor, Lock::Sh(vec![OP_1]), open_lock()];
        locks.iter().map(Lock::script_pubkey).collect()
    };
    for script in scripts {
        let output = Output { value: Amount(0), script_pubkey: &script };
        let threshold = dust_threshold(&output, scene.settings.dust_relay_fee);
        draft.pay((threshold + more).max(0), script);
    }
}

/// One input of 41 bytes without a witness, one output, ten bytes of frame.
fn tiny(draft: &mut Draft, scene: &Scene<'_>, script_pubkey: Vec<u8>) {
    draft.inputs.truncate(1);
    let MutOutput { value, .. } = output(0, Vec::new());
    draft.outputs = vec![MutOutput { value, script_pubkey }];
    draft.fee = Fee::Fixed(VALUE);
    debug_assert!(!scene.world.funds.is_empty());
}

fn lock(draft: &mut Draft, lock_time: u32) {
    draft.lock_time = lock_time;
    draft.inputs.iter_mut().for_each(|input| input.sequence = 0xffff_fffe);
}

/// A relative lock on the first input, whose coin is from [`SPLIT_HEIGHT`].
fn relative(draft: &mut Draft, sequence: u32) {
    if let Some(first) = draft.inputs.first_mut() {
        first.sequence = sequence;
    }
}

/// The last number of 512 seconds that has passed since the parent of the coins' block.
fn relative_time(scene: &Scene<'_>) -> u32 {
    use lydian_consensus::HeaderView;
    let time = |height| scene.world.median_time_past(lydian_primitives::Height(height)).unwrap();
    u32::try_from((time(TIP) - time(SPLIT_HEIGHT - 1)) / 512).unwrap()
}

fn legacy_sigops(draft: &mut Draft, scene: &Scene<'_>, last: usize) {
    draft.inputs.truncate(1);
    (0..166).for_each(|_| draft.add(&Lock::Sh(sigops(OP_CHECKSIG, 15)), scene.world));
    draft.add(&Lock::Sh(sigops(OP_CHECKSIG, last)), scene.world);
}

fn witness_sigops(draft: &mut Draft, scene: &Scene<'_>, is_above: bool) {
    draft.inputs.truncate(1);
    draft.outputs.truncate(1);
    (0..4).for_each(|_| draft.add(&Lock::Wsh(sigops(OP_CHECKMULTISIG, 195)), scene.world));
    draft.add(&Lock::Wsh(sigops(OP_CHECKMULTISIG, 20)), scene.world);
    if is_above {
        draft.add(&Lock::Wsh(sigops(OP_CHECKSIG, 1)), scene.world);
    }
}

/// Spends the coin that fails by this flag only.
fn fail(draft: &mut Draft, scene: &Scene<'_>, index: usize) {
    let uncompressed = [&[4][..], &[0x11; 64]].concat();
    draft.add(&failing(ScriptBuilder::new, &uncompressed)[index], scene.world);
}
