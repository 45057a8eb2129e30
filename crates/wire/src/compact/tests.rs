use super::*;
use crate::message::{Command, Message};
use lydian_hash::sha256d;
use lydian_primitives::build::{MutBlock, MutInput, MutOutput, MutTx};
use lydian_primitives::{Amount, OutPoint, RawBlock, Txid};
use proptest::prelude::*;

fn tx(seed: u32) -> MutTx {
    let mut txid = [0; 32];
    txid[..4].copy_from_slice(&seed.to_le_bytes());
    MutTx {
        version: 2,
        inputs: vec![MutInput {
            prevout: OutPoint { txid: Txid(txid), vout: 0 },
            script_sig: vec![1],
            sequence: 0,
            witness: vec![vec![7]],
        }],
        outputs: vec![MutOutput { value: Amount(5), script_pubkey: vec![0x51] }],
        lock_time: seed,
    }
}

fn block(count: u32) -> Block {
    let header = Header { bits: 0x207f_ffff, ..Header::parse(&[3; 80]) };
    let mut block = MutBlock { header, txs: (0..count).map(tx).collect() };
    block.seal_merkle_root();
    RawBlock::new(block.encode()).parse().unwrap()
}

fn at_hand(block: &Block) -> Vec<(Wtxid, Vec<u8>)> {
    block.txs().map(|tx| (tx.wtxid(), tx.bytes().to_vec())).collect()
}

fn round_trip(compact: &CompactBlock) -> CompactBlock {
    let sample = Message::CmpctBlock(Box::new(compact.clone()));
    match Message::decode(&Command::CMPCTBLOCK, &sample.payload()) {
        Ok(Message::CmpctBlock(read)) => *read,
        other => panic!("{other:?}"),
    }
}

#[test]
fn a_block_is_put_together_from_what_is_at_hand_and_what_is_asked_for() {
    let block = block(50);
    let compact = round_trip(&CompactBlock::new(&block, 99));
    assert_eq!((compact.tx_count(), compact.prefilled.len()), (50, 1));
    let txs = at_hand(&block);
    // All of them, none, and every third.
    for step in [1, 1000, 3] {
        let some = txs.iter().skip(1).step_by(step).cloned();
        let partial = PartialBlock::new(&compact, some).unwrap();
        assert!(!partial.missing().contains(&0), "the coinbase was prefilled");
        let request = partial.request();
        let answer = BlockTransactions::new(&block, &request).unwrap();
        let sample = Message::BlockTxn(answer.clone());
        assert_eq!(Message::decode(&Command::BLOCKTXN, &sample.payload()), Ok(sample));
        assert_eq!(partial.block_size(&answer.txs), Ok(block.as_bytes().len()));
        assert_eq!(partial.fill(&answer.txs).as_deref(), Ok(block.as_bytes()));
    }
}

/// A short id is the first six bytes of SipHash under the SHA-256 of header and nonce. Computed here in another way.
#[test]
fn short_ids_are_bip152s() {
    let block = block(3);
    let compact = CompactBlock::new(&block, 0x0102_0304_0506_0708);
    let key = sha256(&[&block.header().to_bytes()[..], &[8, 7, 6, 5, 4, 3, 2, 1]].concat());
    let number = |bytes: &[u8]| u64::from_le_bytes(bytes.try_into().unwrap());
    let wtxid = Wtxid(sha256d(block.tx(1).bytes()));
    let id = SipHasher::new(number(&key[..8]), number(&key[8..16])).write(&wtxid.0).finish() << 16 >> 16;
    assert_eq!(compact.short_ids[0], id);
    assert_eq!(compact.short_id(&wtxid), id);
}

/// Colliding ids fail without blaming the peer, and a transaction that collides with the intended one is not used.
/// checklist: 82, 69
#[test]
fn collisions_fail_without_blame() {
    let block = block(6);
    let mut compact = CompactBlock::new(&block, 1);
    compact.short_ids[3] = compact.short_ids[1];
    assert_eq!(PartialBlock::new(&compact, at_hand(&block)).err(), Some(CompactError::Failed));
    // Two different transactions with one id: requested, and a third does not help. The same transaction twice is not
    // ambiguous.
    let compact = CompactBlock::new(&block, 1);
    let txs = at_hand(&block);
    let missing = |hand: &[usize]| {
        let hand = hand.iter().map(|index| txs[*index].clone());
        PartialBlock::with_ids(&compact, hand, |_| compact.short_ids[0]).unwrap().missing()
    };
    assert_eq!(missing(&[1]), [2, 3, 4, 5]);
    assert_eq!(missing(&[1, 1]), [2, 3, 4, 5]);
    assert_eq!(missing(&[1, 2]), [1, 2, 3, 4, 5]);
    assert_eq!(missing(&[1, 2, 1, 3]), [1, 2, 3, 4, 5]);
    // A `blocktxn` with too few or too many transactions.
    let partial = PartialBlock::new(&compact, std::iter::empty::<(Wtxid, Vec<u8>)>()).unwrap();
    let answer = BlockTransactions::new(&block, &partial.request()).unwrap();
    assert_eq!(partial.clone().fill(&answer.txs[1..]), Err(CompactError::Invalid));
    assert_eq!(partial.clone().fill(&[&answer.txs[..], &answer.txs[..1]].concat()), Err(CompactError::Invalid));
    assert!(partial.fill(&answer.txs).is_ok());
    let outside = BlockTransactionsRequest { block_hash: block.hash(), indexes: vec![6] };
    assert_eq!(BlockTransactions::new(&block, &outside), None);
}

/// checklist: 82
#[test]
fn prefilled_indexes_stay_inside_the_block() {
    let block = block(5);
    let good = CompactBlock::new(&block, 1);
    let tx = |index: usize| block.tx(index).bytes().to_vec();
    let with = |prefilled: Vec<(u16, Vec<u8>)>, ids: usize| CompactBlock {
        short_ids: good.short_ids[..ids].to_vec(),
        prefilled: prefilled.into_iter().map(|(skipped, tx)| PrefilledTransaction { skipped, tx }).collect(),
        ..good.clone()
    };
    let none = std::iter::empty::<(Wtxid, Vec<u8>)>;
    let new = |compact: &CompactBlock| PartialBlock::new(compact, none()).map(|partial| partial.missing());
    assert_eq!(new(&with(vec![(0, tx(0)), (3, tx(4))], 3)), Ok(vec![1, 2, 3]));
    assert_eq!(new(&with(vec![(0, tx(0)), (4, tx(4))], 3)), Err(CompactError::Invalid));
    assert_eq!(new(&with(vec![(u16::MAX, tx(0)), (u16::MAX, tx(4))], 3)), Err(CompactError::Invalid));
    assert_eq!(new(&with(vec![(1, tx(0))], 0)), Err(CompactError::Invalid));
    assert_eq!(new(&with(vec![], 0)), Err(CompactError::Invalid));
    assert_eq!(
        new(&with(vec![(0, vec![1, 0, 0, 0, 0, 0, 0, 0, 0, 0])], 2)),
        Err(CompactError::Invalid),
        "no transaction"
    );
    let null = CompactBlock { header: Header::parse(&[0; 80]), ..good.clone() };
    assert_eq!(new(&null), Err(CompactError::Invalid));
}

/// limit: COMPACT_TX_COUNT_MAX at
/// limit: COMPACT_TX_COUNT_MAX above
/// checklist: 82
#[test]
fn sixteen_bits_count_the_transactions() {
    let good = CompactBlock::new(&block(1), 1);
    let with = |count: usize| CompactBlock { short_ids: (0..count as u64 - 1).collect(), ..good.clone() };
    let read = |compact: CompactBlock| {
        Message::decode(&Command::CMPCTBLOCK, &Message::CmpctBlock(Box::new(compact)).payload())
    };
    assert!(read(with(COMPACT_TX_COUNT_MAX)).is_ok());
    assert!(PartialBlock::new(&with(COMPACT_TX_COUNT_MAX), std::iter::empty::<(Wtxid, Vec<u8>)>()).is_ok());
    assert_eq!(read(with(COMPACT_TX_COUNT_MAX + 1)), Err(DecodeError::IndexOverflow));
    let above = PartialBlock::new(&with(COMPACT_TX_COUNT_MAX + 1), std::iter::empty::<(Wtxid, Vec<u8>)>());
    assert_eq!(above.err(), Some(CompactError::Invalid));
    // An index of a prefilled transaction, and a requested one.
    let mut payload = good.header.to_bytes().to_vec();
    payload.extend_from_slice(&[0; 9]);
    payload.extend_from_slice(&[1, 0xfe, 0, 0, 1, 0]);
    payload.extend_from_slice(&good.prefilled[0].tx);
    assert_eq!(Message::decode(&Command::CMPCTBLOCK, &payload), Err(DecodeError::IndexOverflow));
    for (second, expected) in [(0, Ok(2)), (1, Err(DecodeError::IndexOverflow))] {
        // 65,534, then 65,535 or one more.
        let payload = [&[0; 32][..], &[2, 0xfd, 0xfe, 0xff, second]].concat();
        let read = Message::decode(&Command::GETBLOCKTXN, &payload).map(|message| match message {
            Message::GetBlockTxn(request) => request.indexes.len(),
            other => panic!("{other:?}"),
        });
        assert_eq!(read, expected);
    }
}

proptest! {
    #[test]
    fn any_part_at_hand_is_completed_by_the_rest(count in 1u32..60, have: u64, nonce: u64) {
        let block = block(count);
        let compact = round_trip(&CompactBlock::new(&block, nonce));
        let some = at_hand(&block).into_iter().enumerate().filter(|(index, _)| have >> (index % 64) & 1 == 1);
        let partial = PartialBlock::new(&compact, some.map(|(_, tx)| tx)).unwrap();
        let answer = BlockTransactions::new(&block, &partial.request()).unwrap();
        let bytes = partial.fill(&answer.txs).unwrap();
        prop_assert_eq!(bytes, block.as_bytes());
    }

    #[test]
    fn any_compact_block_is_refused_or_completed(
        ids in proptest::collection::vec(0u64..20, 0..8),
        skips in proptest::collection::vec(0u16..6, 0..5),
    ) {
        let block = block(8);
        let prefilled = skips.iter().map(|skipped| PrefilledTransaction { skipped: *skipped, tx: block.tx(1).bytes().to_vec() }).collect();
        let compact = CompactBlock { header: *block.header(), nonce: 1, short_ids: ids, prefilled };
        if let Ok(partial) = PartialBlock::new(&compact, at_hand(&block)) {
            let missing = vec![block.tx(2).bytes().to_vec(); partial.missing().len()];
            let bytes = partial.fill(&missing).unwrap();
            prop_assert_eq!(RawBlock::new(bytes).parse().unwrap().tx_count(), compact.tx_count());
        }
    }
}
