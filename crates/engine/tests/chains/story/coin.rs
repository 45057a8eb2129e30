//! Coins of a story: their scripts and how to spend them. Most can be spent by anyone; some need signatures. Input: a
//! choice. Output: scripts, satisfied inputs. Keys are few and made once, since a key costs more than everything else
//! about a coin.

use lydian_chains::rng::Random;
use lydian_chains::wallet::script::{OP_0, OP_1, OP_DROP, OP_HASH160, Script, p2wsh};
use lydian_chains::wallet::{Kind, Lock, Opened, Spending, Wallet, sign_input};
use lydian_hash::{hash160, sha256};
use lydian_primitives::OutPoint;
use lydian_primitives::build::MutTx;
use std::collections::HashMap;
use std::rc::Rc;
use std::sync::LazyLock;

/// A coin.
#[derive(Clone, Debug)]
pub(super) struct Own {
    pub(super) outpoint: OutPoint,
    pub(super) value: i64,
    pub(super) script_pubkey: Rc<[u8]>,
    pub(super) opener: Opener,
    pub(super) height: u32,
    pub(super) is_coinbase: bool,
}

/// The way to spend a coin.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Opener {
    Nothing,
    P2sh,
    P2wsh,
    /// An entry of the pool of locks.
    Key(usize),
    /// Unspendable: the script is false.
    Never,
    /// A witness script with more signature operations than a block may have.
    ManySigops,
}

const KINDS: [Kind; 7] =
    [Kind::P2pkh, Kind::P2wpkh, Kind::P2shP2wpkh, Kind::P2wsh2of3, Kind::P2sh2of3, Kind::Bare2of3, Kind::P2trKey];

static POOL: LazyLock<Vec<(Lock, Opened)>> = LazyLock::new(|| {
    let wallet = Wallet::new(7);
    let locks = KINDS.iter().flat_map(|kind| (0..3).map(|key| Lock { kind: *kind, key }));
    locks.map(|lock| (lock, wallet.open(lock))).collect()
});

static BY_SCRIPT: LazyLock<HashMap<Vec<u8>, Opener>> = LazyLock::new(|| {
    let keys = POOL.iter().enumerate().map(|(index, (_, opened))| (opened.script_pubkey.clone(), Opener::Key(index)));
    let random = &mut Random::new(0, "unused");
    let fixed = [Opener::P2sh, Opener::P2wsh, Opener::Never, Opener::ManySigops];
    keys.chain(fixed.map(|opener| (opener.script_pubkey(random), opener))).collect()
});

/// `OP_CHECKMULTISIG` without a number before it counts as 20 signature operations.
pub(super) const OP_CHECKMULTISIG: u8 = 0xae;

static MANY_SIGOPS: LazyLock<Vec<u8>> = LazyLock::new(|| vec![OP_CHECKMULTISIG; 4_001]);

impl Opener {
    /// Every other script is satisfied by an empty input.
    pub(super) fn of(script_pubkey: &[u8]) -> Opener {
        BY_SCRIPT.get(script_pubkey).copied().unwrap_or(Opener::Nothing)
    }

    pub(super) fn random(random: &mut Random, keys_per_mille: u64) -> Opener {
        if random.chance(keys_per_mille) {
            return Opener::Key(random.index(POOL.len()));
        }
        match random.below(20) {
            0 => Opener::P2sh,
            1 => Opener::P2wsh,
            2 => Opener::Never,
            _ => Opener::Nothing,
        }
    }

    pub(super) fn script_pubkey(self, random: &mut Random) -> Vec<u8> {
        match self {
            Opener::Nothing => match random.below(40) {
                0 => junk(random, 500, 3_000),
                1..=8 => junk(random, 1, 75),
                _ => vec![OP_1],
            },
            Opener::P2sh => Script::new().op(OP_HASH160).push(&hash160(&[OP_1])).op(0x87).build(),
            Opener::P2wsh => p2wsh(&[OP_1]),
            Opener::Key(index) => POOL[index].1.script_pubkey.clone(),
            Opener::Never => vec![OP_0],
            Opener::ManySigops => Script::new().op(OP_0).push(&sha256(&MANY_SIGOPS)).build(),
        }
    }
}

/// Data of random size, pushed in pieces of at most 520 bytes and dropped, then true.
fn junk(random: &mut Random, low: u64, high: u64) -> Vec<u8> {
    let mut bytes = vec![0; usize::try_from(random.between(low, high)).unwrap()];
    random.fill(&mut bytes);
    let script = bytes.chunks(520).fold(Script::new(), |script, chunk| script.push(chunk).op(OP_DROP));
    script.op(OP_1).build()
}

/// Fills in scripts and witnesses of all inputs of a transaction that spends these coins.
pub(super) fn open_all(tx: &mut MutTx, spent: &[Own]) {
    let outputs: Vec<(i64, Vec<u8>)> = spent.iter().map(|coin| (coin.value, coin.script_pubkey.to_vec())).collect();
    let mut spending = Spending::new(&outputs);
    for (index, coin) in spent.iter().enumerate() {
        match coin.opener {
            Opener::Nothing | Opener::Never => {}
            Opener::P2sh => tx.inputs[index].script_sig = Script::new().push(&[OP_1]).build(),
            Opener::P2wsh => tx.inputs[index].witness = vec![vec![OP_1]],
            Opener::ManySigops => tx.inputs[index].witness = vec![MANY_SIGOPS.clone()],
            Opener::Key(key) => {
                let (lock, opened) = &POOL[key];
                sign_input(tx, index, *lock, opened, &mut spending);
            }
        }
    }
}
