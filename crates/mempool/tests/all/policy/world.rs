//! A regtest chain whose coins have the locks that the tests need. Made once, then given to every daemon.
//!
//! Output: blocks, the unspent coins by lock, and the headers as the rules see them ([`HeaderView`]).

use super::locks::{Lock, public};
use lydian_consensus::{Ancestor, Chain, Coin, HeaderView, Params, block_subsidy};
use lydian_hash::sha256;
use lydian_oracle::{Daemon, Submission};
use lydian_primitives::build::{MutBlock, MutInput, MutOutput, MutTx};
use lydian_primitives::{Amount, Header, Height, OutPoint, RawBlock};
use lydian_script::builder::scripts::witness_program;
use lydian_script::opcodes::*;
use lydian_script::{ScriptBuilder, is_unspendable};
use std::collections::BTreeMap;

/// Height of the tip. Coinbases up to one hundred blocks below the next block are mature.
pub const TIP: u32 = 120;
/// Height of the block that makes the coins.
pub const SPLIT_HEIGHT: u32 = 105;
/// Value of each coin in satoshi.
pub const VALUE: i64 = 10_000_000;
const START: u32 = 1_700_000_000;
const SPACING: u32 = 600;

/// An unspent output with its lock.
#[derive(Clone, Debug)]
pub struct Fund {
    pub outpoint: OutPoint,
    pub lock: Lock,
}

pub struct World {
    pub headers: Vec<Header>,
    pub blocks: Vec<Vec<u8>>,
    pub coins: BTreeMap<OutPoint, Coin>,
    pub funds: Vec<Fund>,
    /// The coinbase's output of each height, from 0 on; the genesis block's is not one.
    pub coinbases: Vec<OutPoint>,
    /// The transactions that made the coins besides coinbases.
    pub splits: Vec<MutTx>,
}

/// `OP_1` in a witness script: anyone can spend.
pub fn open_lock() -> Lock {
    Lock::Wsh(vec![OP_1])
}

/// A script with `count` signature operations that are never executed.
pub fn sigops(opcode: u8, count: usize) -> Vec<u8> {
    let script = ScriptBuilder::new().op(OP_0).op(OP_IF).raw(&vec![opcode; count]).op(OP_ENDIF).op(OP_1);
    script.into_bytes()
}

/// A script of exactly `size` bytes that anyone can satisfy.
pub fn padded(size: usize) -> Vec<u8> {
    let mut script = ScriptBuilder::new();
    loop {
        match size - script.clone().into_bytes().len() {
            1 => return script.op(OP_1).into_bytes(),
            left @ 2..150 => script = script.raw(&vec![OP_NOP; left - 1]),
            left => script = script.push_slice(&vec![7; (left - 100).min(520)]).op(OP_DROP),
        }
    }
}

/// A script that drops `count` elements.
pub fn dropping(count: usize) -> Vec<u8> {
    [vec![OP_2DROP; count / 2], vec![OP_DROP; count % 2], vec![OP_1]].concat()
}

/// Every lock with the number of its coins.
fn locks() -> Vec<(Lock, usize)> {
    let script = ScriptBuilder::new;
    let uncompressed = [&[4][..], &[0x11; 64]].concat();
    let mut locks = vec![
        (open_lock(), 140),
        (Lock::Wsh(dropping(1)), 4),
        (Lock::Sh(vec![OP_1]), 4),
        (Lock::Sh(dropping(1)), 2),
        (Lock::Sh(dropping(4)), 2),
        (Lock::ShWsh(dropping(1)), 2),
        (Lock::Pk, 2),
        (Lock::Pkh, 2),
        (Lock::Wpkh, 2),
        (Lock::ShWpkh, 2),
        (Lock::Multi, 2),
        (Lock::TapKey, 2),
        (Lock::Tap(0xc0, dropping(1)), 2),
        (Lock::Tap(0xc2, dropping(1)), 2),
        (Lock::Anchor, 2),
        (Lock::Raw(vec![OP_1]), 2),
        (Lock::Raw(witness_program(0, &[7; 16])), 1),
        (Lock::Raw(witness_program(2, &[7; 32])), 2),
        (Lock::Raw(witness_program(1, &[7; 33])), 1),
        (Lock::Sh(sigops(OP_CHECKSIG, 15)), 168),
        (Lock::Sh(sigops(OP_CHECKSIG, 16)), 1),
        (Lock::Sh(sigops(OP_CHECKSIG, 10)), 1),
        (Lock::Sh(sigops(OP_CHECKSIG, 11)), 1),
        (Lock::Wsh(sigops(OP_CHECKMULTISIG, 195)), 5),
        (Lock::Wsh(sigops(OP_CHECKMULTISIG, 20)), 1),
        (Lock::Wsh(sigops(OP_CHECKSIG, 1)), 1),
        (Lock::Wsh(padded(3600)), 1),
        (Lock::Wsh(padded(3601)), 1),
        (Lock::Wsh(dropping(100)), 1),
        (Lock::Wsh(dropping(101)), 1),
        (Lock::ShWsh(dropping(101)), 1),
    ];
    locks.extend(failing(script, &uncompressed).into_iter().map(|lock| (lock, 1)));
    locks
}

/// Locks whose scripts succeed by consensus, and fail by one standard flag each. They need no elements.
pub fn failing(script: fn() -> ScriptBuilder, uncompressed: &[u8]) -> Vec<Lock> {
    let order = [0xff; 32];
    let der = |s: &[u8]| {
        let body = [&[2, 1, 1, 2, u8::try_from(s.len()).unwrap()][..], s].concat();
        [&[0x30, u8::try_from(body.len()).unwrap()][..], &body, &[1]].concat()
    };
    let high_s = der(&[&[0x7f][..], &order[1..]].concat());
    let not = |signature: &[u8], key: &[u8]| {
        script().push_slice(signature).push_slice(key).op(OP_CHECKSIG).op(OP_NOT).into_bytes()
    };
    vec![
        Lock::Wsh(not(&[], &[5; 5])),
        Lock::Wsh(not(&high_s, &public())),
        Lock::Wsh(not(&der(&[1]), &public())),
        Lock::Sh(script().raw(&[1, 5]).into_bytes()),
        Lock::Sh(script().op(OP_1).op(OP_NOP10).into_bytes()),
        Lock::Sh(script().op(OP_1).op(OP_1).into_bytes()),
        Lock::Sh(script().op(OP_CODESEPARATOR).op(OP_1).into_bytes()),
        Lock::Sh(not(&der(&[1]), &public())),
        Lock::Wsh(script().push_int(2).op(OP_IF).op(OP_1).op(OP_ENDIF).into_bytes()),
        Lock::Wsh(not(&[], uncompressed)),
        Lock::Tap(0xc0, vec![0x50]),
        Lock::Tap(0xc0, script().push_slice(&[1, 1]).push_slice(&[5; 5]).op(OP_CHECKSIG).into_bytes()),
    ]
}

impl World {
    /// The chain with the coins of all locks.
    pub fn new() -> World {
        let locks: Vec<Lock> = locks().into_iter().flat_map(|(lock, count)| vec![lock; count]).collect();
        let mut world =
            World::with_outputs(vec![locks.iter().map(|lock| output(VALUE, lock.script_pubkey())).collect()]);
        let txid = world.splits[0].txid();
        world.funds = (0..).zip(locks).map(|(vout, lock)| Fund { outpoint: OutPoint { txid, vout }, lock }).collect();
        world
    }

    /// A chain with a transaction at [`SPLIT_HEIGHT`] for each list of outputs, which are worth at most a coinbase.
    pub fn with_outputs(lists: Vec<Vec<MutOutput>>) -> World {
        let params = Params::new(Chain::Regtest);
        let genesis = params.genesis_block().parse().unwrap();
        let mut world = World {
            headers: vec![*genesis.header()],
            blocks: Vec::new(),
            coins: BTreeMap::new(),
            funds: Vec::new(),
            coinbases: vec![OutPoint::NULL],
            splits: Vec::new(),
        };
        for height in 1..=TIP {
            if height == SPLIT_HEIGHT {
                let split = |(index, outputs): (usize, &Vec<MutOutput>)| MutTx {
                    version: 2,
                    inputs: vec![spend_open(world.coinbases[1 + index])],
                    outputs: outputs.clone(),
                    lock_time: 0,
                };
                world.splits = lists.iter().enumerate().map(split).collect();
            }
            let txs = if height == SPLIT_HEIGHT { world.splits.clone() } else { Vec::new() };
            world.connect(height, txs, &params);
        }
        world
    }

    fn connect(&mut self, height: u32, txs: Vec<MutTx>, params: &Params) {
        let mut coinbase = coinbase(height, block_subsidy(Height(height), params));
        coinbase.outputs.push(output(0, [&[OP_RETURN, 36, 0xaa, 0x21, 0xa9, 0xed][..], &[0; 32]].concat()));
        let header = Header {
            version: 0x2000_0000,
            prev_block: self.headers[height as usize - 1].hash(),
            merkle_root: [0; 32],
            time: START + height * SPACING,
            bits: 0x207f_ffff,
            nonce: 0,
        };
        let mut block = MutBlock { header, txs: [vec![coinbase], txs].concat() };
        block.seal_on_regtest();
        for (index, tx) in block.txs.iter().enumerate() {
            let txid = tx.txid();
            for input in &tx.inputs {
                self.coins.remove(&input.prevout);
            }
            for (vout, made) in (0..).zip(&tx.outputs).filter(|(_, made)| !is_unspendable(&made.script_pubkey)) {
                let (value, script_pubkey) = (made.value, made.script_pubkey.clone().into_boxed_slice());
                let coin = Coin { value, script_pubkey, height: Height(height), is_coinbase: index == 0 };
                self.coins.insert(OutPoint { txid, vout }, coin);
            }
        }
        self.coinbases.push(OutPoint { txid: block.txs[0].txid(), vout: 0 });
        self.headers.push(block.header);
        self.blocks.push(block.encode());
    }

    /// A daemon with this chain and these options.
    pub fn daemon(&self, test: &str, options: &[&str]) -> Option<Daemon> {
        let mut daemon = lydian_oracle::or_skip(test, Daemon::start(options))?;
        daemon.set_mock_time(u64::from(START + (TIP + 1) * SPACING)).unwrap();
        for submission in daemon.submit_blocks(&self.blocks).unwrap() {
            assert_eq!(submission, Submission::Accepted);
        }
        Some(daemon)
    }

    /// The coins with this lock.
    pub fn funds(&self, lock: &Lock) -> Vec<Fund> {
        let funds: Vec<Fund> = self.funds.iter().filter(|fund| fund.lock == *lock).cloned().collect();
        assert!(!funds.is_empty(), "no coin has the lock {lock:?}");
        funds
    }

    /// The coinbase's output of a height.
    pub fn coinbase(&self, height: u32) -> Fund {
        Fund { outpoint: self.coinbases[height as usize], lock: open_lock() }
    }

    /// Median time past of the tip.
    pub fn tip_time(&self) -> u32 {
        u32::try_from(self.median_time_past(Height(TIP)).unwrap()).unwrap()
    }
}

/// An input with the open lock.
pub fn spend_open(prevout: OutPoint) -> MutInput {
    MutInput { prevout, script_sig: Vec::new(), sequence: u32::MAX, witness: vec![vec![OP_1]] }
}

pub fn output(value: i64, script_pubkey: Vec<u8>) -> MutOutput {
    MutOutput { value: Amount(value), script_pubkey }
}

fn coinbase(height: u32, value: Amount) -> MutTx {
    let script_sig = ScriptBuilder::new().push_int(i64::from(height)).op(OP_0).into_bytes();
    let input = MutInput { prevout: OutPoint::NULL, script_sig, sequence: u32::MAX, witness: vec![vec![0; 32]] };
    let to = witness_program(0, &sha256(&[OP_1]));
    MutTx { version: 2, inputs: vec![input], outputs: vec![output(value.0, to)], lock_time: 0 }
}

impl HeaderView for World {
    fn ancestor(&self, height: Height) -> Option<Ancestor> {
        let header = *self.headers.get(height.0 as usize)?;
        Some(Ancestor { hash: header.hash(), header })
    }
}

/// A block that a parser accepts.
#[test]
fn the_chain_is_well_formed() {
    let world = World::new();
    assert_eq!(world.headers.len(), TIP as usize + 1);
    for block in &world.blocks {
        assert!(RawBlock::new(block.clone()).parse().is_ok());
    }
    for size in [299, 300, 301, 3600, 3601] {
        assert_eq!(padded(size).len(), size);
    }
}
