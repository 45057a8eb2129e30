//! Compares block and undo files with Bitcoin Core's: the same blocks must give the same bytes.
#![allow(clippy::disallowed_methods, reason = "tests read Core's own files themselves")]

use crate::common::blocks::params;
use lydian_chain::{
    BlockStore, BlockUndo, IndexEntry, Layout, Obfuscation, Opened, UndoParts, decode_undo, encode_undo,
};
use lydian_consensus::Coin;
use lydian_disk::RealDisk;
use lydian_hash::{hash160, sha256d};
use lydian_oracle::{Daemon, Scratch, Submission, or_skip};
use lydian_primitives::build::{MutBlock, MutInput, MutOutput, MutTx};
use lydian_primitives::{Amount, Block, BlockHash, Header, Height, OutPoint, RawBlock};
use secp256k1::{Message, PublicKey, SecretKey, ecdsa};
use std::collections::HashMap;
use std::sync::Arc;

/// Number of blocks until the first coinbase can be spent, and number of spending blocks.
const MATURITY: u32 = 100;
const SPENDING: u32 = 30;

/// Number of script types that undo data distinguishes.
const FORMS: usize = 7;

struct Wallet {
    secret: SecretKey,
    even: SecretKey,
}

impl Wallet {
    /// Two keys, one for each parity of y.
    fn new() -> Wallet {
        let key = |byte: u8| SecretKey::from_secret_bytes([byte; 32]).unwrap();
        let parity = |key: &SecretKey| PublicKey::from_secret_key(key).serialize()[0];
        let mut keys = (1..=100).map(key);
        let even = keys.clone().find(|key| parity(key) == 2).unwrap();
        Wallet { secret: keys.find(|key| parity(key) == 3).unwrap(), even }
    }

    fn key(&self, form: usize) -> &SecretKey {
        if form.is_multiple_of(2) { &self.even } else { &self.secret }
    }

    fn script(&self, form: usize) -> Vec<u8> {
        let key = PublicKey::from_secret_key(self.key(form));
        let hash = |bytes: &[u8]| hash160(bytes).to_vec();
        let pieces: Vec<Vec<u8>> = match form {
            0 | 1 => vec![vec![33], key.serialize().to_vec(), vec![0xac]],
            2 | 3 => vec![vec![65], key.serialize_uncompressed().to_vec(), vec![0xac]],
            4 => vec![vec![0x76, 0xa9, 20], hash(&key.serialize()), vec![0x88, 0xac]],
            5 => vec![vec![0xa9, 20], hash(&[0x51]), vec![0x87]],
            _ => vec![vec![0x51; 300]],
        };
        pieces.concat()
    }

    /// The scriptSig for spending an output of this form.
    fn unlock(&self, tx: &MutTx, input: usize, form: usize) -> Vec<u8> {
        match form {
            5 => return vec![1, 0x51],
            6 => return Vec::new(),
            _ => {}
        }
        let mut signed = tx.clone();
        signed.inputs.iter_mut().for_each(|input| input.script_sig.clear());
        signed.inputs[input].script_sig = self.script(form);
        let message = sha256d(&[signed.encode_stripped(), vec![1, 0, 0, 0]].concat());
        let mut signature = ecdsa::sign(Message::from_digest(message), self.key(form)).serialize_der().to_vec();
        signature.push(1);
        let push = |bytes: &[u8]| [&[u8::try_from(bytes.len()).unwrap()][..], bytes].concat();
        match form {
            4 => [push(&signature), push(&PublicKey::from_secret_key(self.key(form)).serialize())].concat(),
            _ => push(&signature),
        }
    }
}

fn output(value: i64, script_pubkey: Vec<u8>) -> MutOutput {
    MutOutput { value: Amount(value), script_pubkey }
}

fn input(prevout: OutPoint) -> MutInput {
    MutInput { prevout, script_sig: Vec::new(), sequence: u32::MAX, witness: Vec::new() }
}

/// A coinbase that pays to every form, with odd and round amounts.
fn coinbase(wallet: &Wallet, height: u32) -> MutTx {
    let script_sig = match height {
        1..=16 => vec![0x50 + u8::try_from(height).unwrap(), 0],
        17..=127 => vec![1, u8::try_from(height).unwrap()],
        _ => vec![2, u8::try_from(height).unwrap(), 0],
    };
    let value = |form: usize| [500_000_000, 1, 123_456_789, 10, 99_999_999, 700_000_000, 3][form];
    let outputs = (0..FORMS).map(|form| output(value(form), wallet.script(form))).collect();
    MutTx { version: 1, inputs: vec![MutInput { script_sig, ..input(OutPoint::NULL) }], outputs, lock_time: 0 }
}

/// Spends the outputs of a transaction, two of them together and the others one by one, and then spends the output of
/// the first spend in the same block.
fn spends(wallet: &Wallet, spent: &MutTx) -> Vec<MutTx> {
    let mut txs = Vec::new();
    let groups: [&[usize]; 6] = [&[0, 5], &[1], &[2], &[3], &[4], &[6]];
    for forms in groups {
        let prevout = |form: usize| OutPoint { txid: spent.txid(), vout: u32::try_from(form).unwrap() };
        let inputs = forms.iter().map(|form| input(prevout(*form))).collect();
        let value = forms.iter().map(|form| spent.outputs[*form].value.0).sum();
        let mut tx = MutTx { version: 1, inputs, outputs: vec![output(value, wallet.script(4))], lock_time: 0 };
        for (index, form) in forms.iter().enumerate() {
            tx.inputs[index].script_sig = wallet.unlock(&tx, index, *form);
        }
        txs.push(tx);
    }
    let again = input(OutPoint { txid: txs[0].txid(), vout: 0 });
    let value = txs[0].outputs[0].value.0;
    let mut tx = MutTx { version: 1, inputs: vec![again], outputs: vec![output(value, vec![0x51])], lock_time: 0 };
    tx.inputs[0].script_sig = wallet.unlock(&tx, 0, 4);
    txs.push(tx);
    txs
}

fn chain() -> Vec<Block> {
    let wallet = Wallet::new();
    let genesis = params().genesis_block().parse().unwrap();
    let (mut prev_block, mut time) = (genesis.hash(), genesis.header().time);
    let mut coinbases = Vec::new();
    let mut blocks = Vec::new();
    for height in 1..=MATURITY + SPENDING {
        let mut txs = vec![coinbase(&wallet, height)];
        coinbases.push(txs[0].clone());
        if height > MATURITY {
            txs.extend(spends(&wallet, &coinbases[(height - MATURITY - 1) as usize]));
        }
        time += 1;
        let header = Header { version: 4, prev_block, merkle_root: [0; 32], time, bits: 0x207f_ffff, nonce: 0 };
        let mut block = MutBlock { header, txs };
        block.seal_on_regtest();
        prev_block = block.header.hash();
        blocks.push(RawBlock::new(block.encode()).parse().unwrap());
    }
    blocks
}

/// The coins that each block spends.
fn spent_coins(blocks: &[Block]) -> Vec<Vec<Coin>> {
    let mut coins: HashMap<OutPoint, Coin> = HashMap::new();
    let mut all = Vec::new();
    for (height, block) in (1..).map(Height).zip(blocks) {
        let mut spent = Vec::new();
        for tx in block.txs() {
            if !tx.is_coinbase() {
                spent.extend(tx.inputs().map(|input| coins.remove(&input.prevout).unwrap()));
            }
            for (vout, output) in (0..).zip(tx.outputs()) {
                let coin = Coin::new(output, height, tx.is_coinbase());
                coins.insert(OutPoint { txid: tx.txid(), vout }, coin);
            }
        }
        all.push(spent);
    }
    all
}

/// The records of an undo file: undo data and checksum.
fn undo_records(bytes: &[u8], magic: [u8; 4]) -> Vec<(&[u8], &[u8])> {
    let mut records = Vec::new();
    let mut rest = bytes;
    while rest.starts_with(&magic) {
        let size = u32::from_le_bytes(rest[4..8].try_into().unwrap()) as usize;
        records.push((&rest[8..8 + size], &rest[8 + size..40 + size]));
        rest = &rest[40 + size..];
    }
    records
}

/// The coins of single transactions are those of the whole.
fn check_parts(bytes: &[u8], whole: &BlockUndo) {
    let parts = UndoParts::parse(bytes.to_vec()).unwrap();
    assert_eq!(parts.coins_of(0), Ok(None));
    let (mut rest, mut position) = (&whole.coins[..], 0);
    for count in &whole.input_counts {
        let (own, others) = rest.split_at(*count as usize);
        position += 1;
        assert_eq!(parts.coins_of(position).unwrap().as_deref(), Some(own));
        rest = others;
    }
    assert_eq!(parts.coins_of(position + 1), Ok(None));
    for end in 0..bytes.len() {
        assert!(UndoParts::parse(bytes[..end].to_vec()).is_err(), "cut at {end}");
    }
}

/// Our block and undo files contain exactly the same bytes as Core's, and we can read Core's undo data.
/// checklist: 94
#[test]
fn files_are_cores_byte_for_byte() {
    let Some(mut daemon) = or_skip("undo files", Daemon::start(&[])) else { return };
    let blocks = chain();
    let bytes: Vec<_> = blocks.iter().map(Block::as_bytes).collect();
    for answer in daemon.submit_blocks(&bytes).unwrap() {
        assert_eq!(answer, Submission::Accepted);
    }
    assert_eq!(daemon.height().unwrap(), u64::from(MATURITY + SPENDING));
    let stopped = daemon.stop().unwrap();
    let read = |name: &str| std::fs::read(stopped.chain_folder().join("blocks").join(name)).unwrap();
    let key: [u8; 8] = read("xor.dat").try_into().unwrap();
    assert_ne!(key, [0; 8], "Core makes a key");
    let plain = |name: &str| {
        let mut bytes = read(name);
        Obfuscation::new(key).apply(0, &mut bytes);
        bytes
    };

    let rev = plain("rev00000.dat");
    let records = undo_records(&rev, params().magic);
    let spent = spent_coins(&blocks);
    assert_eq!(records.len(), blocks.len());
    for ((block, spent), (undo, checksum)) in blocks.iter().zip(&spent).zip(&records) {
        assert_eq!(encode_undo(block, spent), *undo);
        let read = decode_undo(undo).unwrap();
        assert!(read.fits(block));
        assert_eq!(read.coins, *spent);
        check_parts(undo, &read);
        assert_eq!(sha256d(&[&block.header().prev_block.0[..], undo].concat()), **checksum);
    }
    assert!(spent.iter().map(Vec::len).sum::<usize>() == SPENDING as usize * (FORMS + 1));

    let scratch = Scratch::new("core-undo");
    let layout =
        Layout { blocks: scratch.path().join("blocks"), index: scratch.path().join("blocks/index"), new_key: key };
    let Opened { store, mut tree, .. } = BlockStore::open(Arc::new(RealDisk), &layout, &params()).unwrap();
    store.append_block(params().genesis_block().as_bytes()).unwrap();
    for (block, spent) in blocks.iter().zip(&spent) {
        let id = tree.accept_header(block.header(), i64::MAX / 2, &params()).unwrap();
        let position = store.append_block(block.as_bytes()).unwrap();
        let prev_hash: &BlockHash = &block.header().prev_block;
        let undo = store.append_undo(position, prev_hash, &encode_undo(block, spent)).unwrap();
        store.record(&[
            IndexEntry::Header { id, header: *block.header() },
            IndexEntry::Block { id, position },
            IndexEntry::Undo { id, position: undo },
        ]);
        assert_eq!(store.read_spent(undo, block).unwrap(), *spent);
    }
    store.sync().unwrap();
    for name in ["blk00000.dat", "rev00000.dat"] {
        let (ours, cores) = (std::fs::read(layout.blocks.join(name)).unwrap(), read(name));
        let (written, allocated) = cores.split_at(ours.len());
        assert!(ours == written, "{name} differs");
        assert!(allocated.iter().all(|byte| *byte == 0), "{name}: Core wrote more");
    }
}
