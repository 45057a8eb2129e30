//! Parsing is total, exact and in place: real and generated transactions and blocks, truncation, damage, limits.

use lydian_hash::sha256d;
use lydian_primitives::build::{MutBlock, MutInput, MutOutput, MutTx};
use lydian_primitives::limits::BLOCK_BUFFER_SIZE_MAX;
use lydian_primitives::{
    Amount, Block, BlockHash, Header, OutPoint, ParseErrorKind, RawBlock, Reader, Transaction, Txid, block, hex,
    transaction,
};
use proptest::collection::vec;
use proptest::prelude::*;

/// A real segwit transaction: the P2WPKH example of BIP-0143, signed.
const SEGWIT_TX: &str = "01000000000102fff7f7881a8099afa6940d42d1e7f6362bec38171ea3edf433541db4e4ad969f00000000494830450221008b9d1dc26ba6a9\
    cb62127b02742fa9d754cd3bebf337f7a55d114c8e5cdd30be022040529b194ba3f9281a99f2b1c0a19c0489bc22ede944ccf4ecbab4cc618ef3ed01eeffffffef\
    51e1b804cc89d182d279655c3aa89e815b1b309fe287d9b2b55d57b90ec68a0100000000ffffffff02202cb206000000001976a9148280b37df378db99f66f85c9\
    5a783a76ac7a6d5988ac9093510d000000001976a9143bde42dbee7e4dbe6a21b2d50ce2f0167faa815988ac000247304402203609e17b84f6a7d30c80bfa610b5\
    b4542f32a8a0d5447a12fb1366d7f01cc44a0220573a954c4518331561406f90300e8f3358f51928d43c212a8caed02de67eebee0121025476c2e83188368da1ff\
    3e292e7acafcdb3566bb0ad253f62fc70f07aeee635711000000";

fn arbitrary_tx() -> impl Strategy<Value = MutTx> {
    let input =
        (any::<[u8; 32]>(), any::<u32>(), vec(any::<u8>(), 0..300), any::<u32>(), vec(vec(any::<u8>(), 0..80), 0..4))
            .prop_map(|(txid, vout, script_sig, sequence, witness)| MutInput {
                prevout: OutPoint { txid: Txid(txid), vout },
                script_sig,
                sequence,
                witness,
            });
    let output = (any::<i64>(), vec(any::<u8>(), 0..60))
        .prop_map(|(value, script_pubkey)| MutOutput { value: Amount(value), script_pubkey });
    (any::<u32>(), vec(input, 1..5), vec(output, 0..5), any::<u32>())
        .prop_map(|(version, inputs, outputs, lock_time)| MutTx { version, inputs, outputs, lock_time })
}

fn arbitrary_block() -> impl Strategy<Value = MutBlock> {
    let header = any::<[u8; 32]>().prop_map(|bytes| Header {
        version: 4,
        prev_block: BlockHash(bytes),
        merkle_root: bytes,
        time: 1,
        bits: 2,
        nonce: 3,
    });
    (header, vec(arbitrary_tx(), 0..6)).prop_map(|(header, txs)| MutBlock { header, txs })
}

proptest! {
    /// A built transaction parses back to the same parts, sizes and ids; the ids match their plain definition.
    #[test]
    fn built_transactions_parse_back(tx in arbitrary_tx()) {
        let bytes = tx.encode();
        let parsed = tx.to_transaction().unwrap();
        let view = parsed.view();
        prop_assert_eq!(MutTx::from(view), tx.clone());
        prop_assert_eq!(view.bytes(), &bytes[..]);
        prop_assert_eq!(view.total_size(), bytes.len());
        prop_assert_eq!(view.base_size(), tx.encode_stripped().len());
        prop_assert_eq!(view.txid().0, sha256d(&tx.encode_stripped()));
        prop_assert_eq!(view.wtxid().0, sha256d(&bytes));
        prop_assert_eq!(view.has_witness(), tx.has_witness());
        for (index, input) in view.inputs().enumerate() {
            prop_assert_eq!(view.prevout_bytes(index), input.prevout.to_bytes());
            prop_assert_eq!(view.sequence_bytes(index), input.sequence.to_le_bytes());
            let size: Vec<_> = input.witness.iter().collect();
            prop_assert_eq!(size.len(), input.witness.len());
        }
        let outputs: Vec<u8> = (0..view.output_count()).flat_map(|i| view.output_bytes(i).to_vec()).collect();
        prop_assert_eq!(view.outputs_bytes(), &outputs[..]);
    }

    #[test]
    fn built_blocks_parse_back(block in arbitrary_block()) {
        let bytes = block.encode();
        let parsed = RawBlock::new(bytes.clone()).parse().unwrap();
        prop_assert_eq!(MutBlock::from(&parsed), block.clone());
        prop_assert_eq!(parsed.as_bytes(), &bytes[..]);
        let ids: Vec<_> = parsed.txs().map(|tx| tx.txid()).collect();
        prop_assert_eq!(ids, block.txs.iter().map(MutTx::txid).collect::<Vec<_>>());
        let base: usize = block.txs.iter().map(|tx| tx.encode_stripped().len()).sum();
        prop_assert_eq!(parsed.base_size(), 81 + base);
        prop_assert_eq!(parsed.weight(), 3 * (81 + base) + bytes.len());
    }

    /// Every proper prefix is an error at or before its end, and so are trailing bytes.
    #[test]
    fn truncated_blocks_are_errors(block in arbitrary_block(), cut in any::<prop::sample::Index>()) {
        let bytes = block.encode();
        let cut = cut.index(bytes.len());
        let error = RawBlock::new(&bytes[..cut]).parse().unwrap_err();
        prop_assert!(error.offset <= cut);
        let mut longer = bytes.clone();
        longer.push(0);
        let error = RawBlock::new(longer).parse().unwrap_err();
        prop_assert_eq!(error.kind, ParseErrorKind::TrailingBytes { count: 1 });
    }

    /// Any bytes, and valid bytes with a flipped bit, give a value or an error, never a panic.
    /// checklist: 77
    #[test]
    fn parsing_is_total(noise in vec(any::<u8>(), 0..600), block in arbitrary_block(), flip in any::<prop::sample::Index>(), bit in 0u8..8) {
        let _ = RawBlock::new(noise.clone()).parse();
        let _ = Transaction::parse(noise);
        let mut bytes = block.encode();
        let at = flip.index(bytes.len());
        bytes[at] ^= 1 << bit;
        if let Ok(parsed) = RawBlock::new(bytes.clone()).parse() {
            let again = MutBlock::from(&parsed).encode();
            prop_assert_eq!(again, bytes, "only canonical bytes parse");
        }
    }
}

#[test]
fn a_real_segwit_transaction() {
    let tx = Transaction::parse(hex(SEGWIT_TX).unwrap()).unwrap();
    let view = tx.view();
    assert_eq!(view.txid().to_string(), "e8151a2af31c368a35053ddd4bdb285a8595c769a3ad83e0fa02314a602d4609");
    assert_eq!(view.wtxid().to_string(), "c36c38370907df2324d9ce9d149d191192f338b37665a82e78e76a12c909b762");
    assert_eq!((view.input_count(), view.output_count(), view.lock_time()), (2, 2, 17));
    assert_eq!((view.base_size(), view.total_size()), (233, 343));
}

/// A count far beyond the available bytes allocates nothing and fails at the end of the bytes.
/// checklist: 55
#[test]
fn huge_counts_are_not_believed() {
    let mut bytes = vec![1, 0, 0, 0];
    bytes.extend_from_slice(&[0xfe, 0, 0, 0, 2]);
    bytes.extend_from_slice(&[0; 20]);
    let error = Transaction::parse(bytes).unwrap_err();
    assert!(matches!(error.kind, ParseErrorKind::UnexpectedEnd { .. }));
}

/// Forms of BIP-0144 that are not transactions, and one that is: no inputs and no outputs.
/// checklist: 55
#[test]
fn segwit_markers() {
    let parse = |text: &str| Transaction::parse(hex(&text.replace(' ', "")).unwrap()).map_err(|error| error.kind);
    let input = format!("{} 00000000 00 ffffffff", "11".repeat(32));
    let output = "0000000000000000 00";
    let empty = parse("01000000 00 00 00000000").unwrap();
    assert_eq!((empty.view().input_count(), empty.view().output_count()), (0, 0));
    assert!(parse(&format!("01000000 01 {input} 01 {output} 00000000")).is_ok());
    assert!(parse(&format!("01000000 0001 01 {input} 01 {output} 01 00 00000000")).is_ok());
    let superfluous = parse(&format!("01000000 0001 01 {input} 01 {output} 00 00000000"));
    assert_eq!(superfluous.unwrap_err(), ParseErrorKind::SuperfluousWitness);
    let unknown = parse(&format!("01000000 0002 01 {input} 01 {output} 00000000"));
    assert_eq!(unknown.unwrap_err(), ParseErrorKind::UnknownTransactionOptionalData { flags: 2 });
    let unknown = parse(&format!("01000000 0003 01 {input} 01 {output} 01 00 00000000"));
    assert_eq!(unknown.unwrap_err(), ParseErrorKind::UnknownTransactionOptionalData { flags: 2 });
    // No inputs after the marker either: a witness flag without a witness.
    let superfluous = parse(&format!("01000000 0001 00 01 {output} 00000000"));
    assert_eq!(superfluous.unwrap_err(), ParseErrorKind::SuperfluousWitness);
    let long = parse(&format!("01000000 fd0100 {input} 01 {output} 00000000"));
    assert_eq!(long.unwrap_err(), ParseErrorKind::NonCanonicalCompactSize);
}

/// A witness of 500,000 items, and items of more than 11,000 bytes: Lydian adds no limit of its own.
/// checklist: 54
#[test]
fn witnesses_have_no_limits_of_their_own() {
    let mut tx = MutTx::from(Transaction::parse(hex(SEGWIT_TX).unwrap()).unwrap().view());
    tx.inputs[0].witness = vec![Vec::new(); 500_000];
    tx.inputs[1].witness = vec![vec![7; 11_001], vec![8; 3_900_000]];
    let parsed = tx.to_transaction().unwrap();
    assert_eq!(parsed.view().input(0).witness.len(), 500_000);
    assert_eq!(parsed.view().input(1).witness.iter().map(<[u8]>::len).sum::<usize>(), 3_911_001);
}

/// limit: BLOCK_BUFFER_SIZE_MAX at
/// limit: BLOCK_BUFFER_SIZE_MAX above
#[test]
fn buffers_have_a_limit() {
    let at = RawBlock::new(vec![0; BLOCK_BUFFER_SIZE_MAX]).parse().unwrap_err();
    assert!(matches!(at.kind, ParseErrorKind::TrailingBytes { .. }));
    let above = RawBlock::new(vec![0; BLOCK_BUFFER_SIZE_MAX + 1]).parse().unwrap_err();
    assert_eq!(above.kind, ParseErrorKind::BufferTooLarge { size: BLOCK_BUFFER_SIZE_MAX + 1 });
}

/// A transaction count that is not in its shortest form is refused (Core's feature_block.py, b64a).
/// checklist: 18
#[test]
fn non_canonical_transaction_count() {
    let header = [0; 80];
    let mut bytes = header.to_vec();
    bytes.extend_from_slice(&[0xff, 0, 0, 0, 0, 0, 0, 0, 0]);
    let error = RawBlock::new(bytes).parse().map(|block: Block| block.tx_count()).unwrap_err();
    assert_eq!((error.offset, error.kind), (80, ParseErrorKind::NonCanonicalCompactSize));
}

/// A transaction or block followed by other bytes is measured by the same parser that reads it alone.
#[test]
fn prefixes_end_where_the_whole_would() {
    let tx = hex(SEGWIT_TX).unwrap();
    let longer = [&tx[..], &[1, 2, 3]].concat();
    let mut reader = Reader::new(&longer);
    assert_eq!(transaction::skip(&mut reader), Ok(()));
    assert_eq!(reader.offset(), tx.len());
    assert!(transaction::skip(&mut Reader::new(&tx[..tx.len() - 1])).is_err());
    let block = [&[0; 80][..], &[1], &tx].concat();
    assert_eq!(block::scan_prefix(&[&block[..], &[9; 5]].concat()), Ok(block.len()));
    assert_eq!(block::scan_prefix(&block), Ok(block.len()));
    assert!(block::scan_prefix(&block[..block.len() - 1]).is_err());
    let large = vec![0; BLOCK_BUFFER_SIZE_MAX + 1];
    let error = transaction::skip(&mut Reader::new(&large)).unwrap_err();
    assert_eq!(error.kind, ParseErrorKind::BufferTooLarge { size: BLOCK_BUFFER_SIZE_MAX + 1 });
}

/// No inputs and one output are the marker and the flag of BIP-0144 when they are read with witnesses.
#[test]
fn without_witness_there_may_be_outputs_without_inputs() {
    let bytes = [&[2, 0, 0, 0, 0, 1][..], &[5, 0, 0, 0, 0, 0, 0, 0], &[1, 0x51], &[7, 0, 0, 0]].concat();
    assert!(Transaction::parse(bytes.clone()).is_err());
    let tx = Transaction::parse_without_witness(bytes.clone()).unwrap();
    let view = tx.view();
    assert_eq!((view.input_count(), view.output_count(), view.lock_time()), (0, 1, 7));
    assert_eq!(view.output(0).script_pubkey, [0x51]);
    assert_eq!(
        (view.total_size(), view.base_size(), view.txid().0, view.wtxid().0),
        (20, 20, view.wtxid().0, view.txid().0)
    );
    for end in 0..bytes.len() {
        assert!(Transaction::parse_without_witness(&bytes[..end]).is_err(), "{end}");
    }
}
