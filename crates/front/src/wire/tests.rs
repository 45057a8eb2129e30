//! Round trips of every variant, and bytes that are damaged or cut.

use super::*;
use lydian_primitives::build::{MutInput, MutOutput, MutTx};
use lydian_primitives::{Amount, OutPoint, hex};
use proptest::collection::vec;
use proptest::option;
use proptest::prelude::*;

/// A transaction with one output of a script of this size for each of the inputs.
fn transaction(inputs: usize, script: usize) -> Transaction {
    let input = |vout| MutInput {
        prevout: OutPoint { txid: Txid([7; 32]), vout },
        script_sig: vec![0x51],
        sequence: 5,
        witness: vec![vec![1, 2]],
    };
    let output = MutOutput { value: Amount(9), script_pubkey: vec![0x6a; script] };
    let inputs = (0..u32::try_from(inputs).unwrap()).map(input).collect();
    Transaction::parse(MutTx { version: 2, inputs, outputs: vec![output], lock_time: 3 }.encode()).unwrap()
}

fn pool_tx(inputs: usize, script: usize) -> PoolTx {
    let spent = (0_i64..).map(|value| (ScriptHash([3; 32]), value)).take(inputs).collect();
    let tx = Arc::new(transaction(inputs, script));
    PoolTx { tx, fee: -1, vsize: 150, sequence: u64::MAX, time: 1_600_000_000, spent }
}

fn hash() -> impl Strategy<Value = BlockHash> {
    any::<[u8; 32]>().prop_map(BlockHash)
}

fn txid() -> impl Strategy<Value = Txid> {
    any::<[u8; 32]>().prop_map(Txid)
}

fn height() -> impl Strategy<Value = Height> {
    any::<u32>().prop_map(Height)
}

fn tip() -> impl Strategy<Value = Tip> {
    (height(), hash()).prop_map(|(height, hash)| Tip { height, hash })
}

fn header() -> impl Strategy<Value = Header> {
    vec(any::<u8>(), 80).prop_map(|bytes| Header::parse(&bytes.try_into().unwrap()))
}

fn bytes() -> impl Strategy<Value = Vec<u8>> {
    vec(any::<u8>(), 0..50)
}

fn message() -> impl Strategy<Value = Message> {
    let fees = any::<(i64, i64, i64)>().prop_map(|(min, relay, incremental)| PoolFees { min, relay, incremental });
    let added = (1_usize..4, 0_usize..60, any::<(i64, i64, u64, i64)>()).prop_map(|(inputs, script, numbers)| {
        let (fee, vsize, sequence, time) = numbers;
        PoolTx { fee, vsize, sequence, time, ..pool_tx(inputs, script) }
    });
    prop_oneof![
        (hash(), any::<u64>()).prop_map(|(genesis, epoch)| Message::Hello(Hello {
            version: FEED_VERSION,
            genesis,
            epoch
        })),
        Just(Message::Reset),
        added.prop_map(Message::Added),
        txid().prop_map(Message::Removed),
        (any::<u64>(), tip(), tip(), fees).prop_map(|(sequence, pool_tip, tip, fees)| Message::State(State {
            sequence,
            pool_tip,
            tip,
            fees
        })),
    ]
}

fn question() -> impl Strategy<Value = Question> {
    let place =
        any::<(u32, u32, u32)>().prop_map(|(height, offset, size)| Place { height: Height(height), offset, size });
    prop_oneof![
        (height(), any::<u32>()).prop_map(|(from, count)| Question::Headers { from, count }),
        (height(), any::<u32>()).prop_map(|(from, count)| Question::Hashes { from, count }),
        height().prop_map(Question::Txids),
        hash().prop_map(Question::BlockInfo),
        hash().prop_map(Question::Block),
        hash().prop_map(Question::Spent),
        vec((place, hash()), 0..5).prop_map(Question::Transactions),
        vec(height(), 0..5).prop_map(Question::Pruned),
        Just(Question::PoolTxids),
        Just(Question::PoolChunks),
        any::<(u32, bool)>().prop_map(|(target, is_conservative)| Question::Estimate { target, is_conservative }),
        (hash(), any::<u64>()).prop_map(|(hash, bytes_max)| Question::Undo { hash, bytes_max }),
    ]
}

fn answer() -> impl Strategy<Value = Answer> {
    let info = (header(), hash(), any::<(u32, i64, bool)>(), option::of(hash())).prop_map(
        |(header, hash, (height, median_time, is_active), next)| BlockInfo {
            hash,
            header,
            height,
            median_time,
            is_active,
            next,
        },
    );
    let output = (any::<i64>(), bytes())
        .prop_map(|(value, script)| SpentOutput { value, script_pubkey: script.into_boxed_slice() });
    prop_oneof![
        vec(header(), 0..5).prop_map(Answer::Headers),
        vec(hash(), 0..5).prop_map(Answer::Hashes),
        option::of((hash(), vec(txid(), 0..5))).prop_map(Answer::Txids),
        option::of(info).prop_map(Answer::BlockInfo),
        option::of(bytes()).prop_map(Answer::Block),
        option::of(vec(output, 0..5)).prop_map(Answer::Spent),
        vec(option::of(bytes()), 0..5).prop_map(Answer::Transactions),
        vec(any::<bool>(), 0..5).prop_map(Answer::Pruned),
        vec(txid(), 0..5).prop_map(Answer::PoolTxids),
        vec(any::<(i64, i64)>(), 0..5).prop_map(Answer::PoolChunks),
        option::of(any::<i64>()).prop_map(Answer::Estimate),
        option::of(bytes()).prop_map(Answer::Undo),
        "\\PC*".prop_map(|reason| Answer::Failed(AnswerError::TryAnother(reason))),
        "\\PC*".prop_map(|reason| Answer::Failed(AnswerError::Final(reason))),
    ]
}

/// The question that an answer is to, which asks for as many entries as it has.
fn asked(answer: &Answer) -> Question {
    let (from, hash) = (Height(1), BlockHash([1; 32]));
    let many = |count: usize| u32::try_from(count).unwrap();
    let place = (Place { height: from, offset: 81, size: 10 }, hash);
    match answer {
        Answer::Headers(headers) => Question::Headers { from, count: many(headers.len()) },
        Answer::Hashes(hashes) => Question::Hashes { from, count: many(hashes.len()) },
        Answer::Txids(_) => Question::Txids(from),
        Answer::BlockInfo(_) => Question::BlockInfo(hash),
        Answer::Block(_) => Question::Block(hash),
        Answer::Spent(_) => Question::Spent(hash),
        Answer::Transactions(found) => Question::Transactions(vec![place; found.len()]),
        Answer::Pruned(flags) => Question::Pruned(vec![from; flags.len()]),
        Answer::PoolTxids(_) | Answer::Failed(_) => Question::PoolTxids,
        Answer::PoolChunks(_) => Question::PoolChunks,
        Answer::Estimate(_) => Question::Estimate { target: 2, is_conservative: false },
        Answer::Undo(_) => Question::Undo { hash, bytes_max: 50 },
    }
}

/// One of another kind.
fn other_question(question: &Question) -> Question {
    match question {
        Question::PoolTxids => Question::PoolChunks,
        _ => Question::PoolTxids,
    }
}

/// The messages of a stream that comes in pieces of these sizes, which are repeated.
fn read(stream: &[u8], sizes: &[usize]) -> Result<Vec<Message>, WireError> {
    let (mut frames, mut all, mut rest) = (Frames::default(), Vec::new(), stream);
    for size in sizes.iter().cycle() {
        if rest.is_empty() {
            break;
        }
        let (piece, after) = rest.split_at((*size).min(rest.len()));
        frames.push(piece);
        while let Some(message) = frames.next()? {
            all.push(message);
        }
        rest = after;
    }
    Ok(all)
}

/// Checks that each shorter or longer form of the bytes is refused, and that none with another byte is a panic.
fn damage<T>(bytes: &[u8], decode: impl Fn(&[u8]) -> Result<T, WireError>) {
    for end in 0..bytes.len() {
        assert!(decode(&bytes[..end]).is_err(), "{end} of {} bytes", bytes.len());
    }
    let longer = [bytes, &[0]].concat();
    assert!(decode(&longer).is_err());
    for at in 0..bytes.len() {
        for flip in [1, 0x80, 0xff] {
            let mut other = bytes.to_vec();
            other[at] ^= flip;
            if let Err(error) = decode(&other) {
                assert!(!error.to_string().is_empty());
            }
        }
    }
}

proptest! {
    #[test]
    fn messages_round_trip_in_any_pieces(messages in vec(message(), 0..8), sizes in vec(1_usize..200, 1..6)) {
        let stream: Vec<u8> = messages.iter().flat_map(encode).collect();
        prop_assert_eq!(read(&stream, &sizes), Ok(messages));
    }

    #[test]
    fn a_part_of_a_message_is_none_yet(message in message(), flip in 1_u8..) {
        let frame = encode(&message);
        for end in 0..frame.len() {
            prop_assert_eq!(read(&frame[..end], &[frame.len()]), Ok(Vec::new()));
        }
        damage(&frame[LENGTH_SIZE..], decode);
        for at in 0..frame.len() {
            let mut other = frame.clone();
            other[at] ^= flip;
            // Another message, an error, or none yet.
            let _ = read(&other, &[frame.len()]);
        }
    }

    #[test]
    fn questions_round_trip(question in question()) {
        let bytes = question.encode();
        prop_assert_eq!(Question::decode(&bytes), Ok(question));
        damage(&bytes, Question::decode);
    }

    #[test]
    fn answers_round_trip(answer in answer()) {
        let (bytes, question) = (answer.encode(), asked(&answer));
        let is_failure = matches!(answer, Answer::Failed(_));
        prop_assert_eq!(Answer::decode(&bytes, &question), Ok(answer));
        damage(&bytes, |bytes| Answer::decode(bytes, &question));
        let other = other_question(&question);
        prop_assert_eq!(Answer::decode(&bytes, &other).is_ok(), is_failure, "only failures are of any question");
    }

    #[test]
    fn any_bytes_are_a_value_or_an_error(bytes in vec(any::<u8>(), 0..300), kind in 0_u8..13, of in answer()) {
        let bytes = [&[kind][..], &bytes].concat();
        let _ = (Question::decode(&bytes), Answer::decode(&bytes, &asked(&of)), decode(&bytes), read(&bytes, &[7]));
        let bytes = [&of.encode()[..1], &bytes].concat();
        let _ = Answer::decode(&bytes, &asked(&of));
    }
}

/// limit: FRAME_SIZE_MAX at
/// limit: FRAME_SIZE_MAX above
#[test]
fn a_frame_has_a_size_that_it_may_have() {
    let frame = |size: usize| [&u32::try_from(size).unwrap().to_le_bytes()[..], &vec![kind::RESET; size]].concat();
    let mut frames = Frames::default();
    frames.push(&frame(FRAME_SIZE_MAX));
    let trailing = |error| {
        matches!(error, WireError::Bytes { error: ParseError { kind: ParseErrorKind::TrailingBytes { .. }, .. }, .. })
    };
    assert!(frames.next().is_err_and(trailing), "it is read");
    assert!(frames.next().is_err_and(trailing), "and every call fails");
    let mut frames = Frames::default();
    frames.push(&frame(FRAME_SIZE_MAX + 1)[..LENGTH_SIZE]);
    assert_eq!(frames.next(), Err(WireError::TooLarge { size: FRAME_SIZE_MAX + 1 }));
    // The largest transaction of a block: inputs of 41 bytes, which weigh 164.
    let largest = encode(&Message::Added(pool_tx(4_000_000 / 164, 0)));
    assert!(largest.len() <= FRAME_SIZE_MAX, "{}", largest.len());
}

const PAGE: &str = include_str!("../../../../docs/formats/feed.md");

fn example(name: &str) -> Vec<u8> {
    let (_, rest) = PAGE.split_once(&format!("```hex {name}\n")).unwrap();
    let digits: String = rest.split_once("```").unwrap().0.split_whitespace().collect();
    hex(&digits).unwrap()
}

#[test]
fn the_values_on_the_page_are_read_and_written() {
    let prevout = OutPoint { txid: Txid([7; 32]), vout: 1 };
    let input = MutInput { prevout, script_sig: Vec::new(), sequence: 0xffff_fffd, witness: Vec::new() };
    let output = MutOutput { value: Amount(1_000), script_pubkey: vec![0x51] };
    let tx = MutTx { version: 2, inputs: vec![input], outputs: vec![output], lock_time: 0 };
    let tx = Arc::new(Transaction::parse(tx.encode()).unwrap());
    let bytes = tx.as_bytes().to_vec();
    let added = PoolTx {
        vsize: i64::try_from(bytes.len()).unwrap(),
        tx,
        fee: 200,
        sequence: 9,
        time: 1_700_000_000,
        spent: vec![(ScriptHash([3; 32]), 1_200)],
    };
    let tip = Tip { height: Height(256), hash: BlockHash([0xaa; 32]) };
    let fees = PoolFees { min: 1_000, relay: 100, incremental: 100 };
    let messages = [
        Message::Hello(Hello { version: FEED_VERSION, genesis: BlockHash([1; 32]), epoch: 5 }),
        Message::Reset,
        Message::Added(added),
        Message::State(State { sequence: 10, pool_tip: tip, tip, fees }),
    ];
    let stream = example("stream");
    assert_eq!(stream, messages.iter().flat_map(encode).collect::<Vec<u8>>());
    assert_eq!(read(&stream, &[9]), Ok(messages.to_vec()));
    assert_eq!(example("removed"), encode(&Message::Removed(Txid([6; 32]))));
    let size = u32::try_from(bytes.len()).unwrap();
    let place = (Place { height: Height(256), offset: 81, size }, tip.hash);
    let question = Question::Transactions(vec![place]);
    assert_eq!((example("question"), Question::decode(&example("question"))), (question.encode(), Ok(question)));
    let question = Question::Transactions(vec![place; 2]);
    for (name, answer) in [
        ("answer", Answer::Transactions(vec![Some(bytes), None])),
        ("failed", Answer::Failed(AnswerError::TryAnother("the node is stopping".to_owned()))),
    ] {
        assert_eq!((example(name), Answer::decode(&example(name), &question)), (answer.encode(), Ok(answer)));
    }
    let size = FRAME_SIZE_MAX.to_string();
    assert!(PAGE.replace(',', "").contains(&format!("at most {size}")));
}

#[test]
fn counts_beyond_the_bytes_are_refused_at_once() {
    for kind in [topic::TRANSACTIONS, topic::PRUNED] {
        let bytes = [&[kind][..], &u32::MAX.to_le_bytes()].concat();
        assert!(Question::decode(&bytes).is_err());
    }
    for (kind, question) in [(topic::POOL_TXIDS, Question::PoolTxids), (topic::POOL_CHUNKS, Question::PoolChunks)] {
        let bytes = [&[kind][..], &u32::MAX.to_le_bytes()].concat();
        assert!(matches!(Answer::decode(&bytes, &question), Err(WireError::Bytes { .. })));
    }
}

/// The answers of this many entries, with what they are to.
fn lists(headers: usize, txs: usize, inputs: usize) -> Vec<(Question, Answer)> {
    let (from, hash) = (Height(1), BlockHash([1; 32]));
    let place = (Place { height: from, offset: 81, size: 10 }, hash);
    let header = Header::parse(&[7; 80]);
    let spent = SpentOutput { value: 5, script_pubkey: Box::default() };
    vec![
        (Question::Headers { from, count: 3 }, Answer::Headers(vec![header; headers])),
        (Question::Hashes { from, count: 3 }, Answer::Hashes(vec![hash; headers])),
        (Question::Transactions(vec![place; 3]), Answer::Transactions(vec![None; headers])),
        (Question::Pruned(vec![from; 3]), Answer::Pruned(vec![false; headers])),
        (Question::Txids(from), Answer::Txids(Some((hash, vec![Txid([1; 32]); txs])))),
        (Question::Spent(hash), Answer::Spent(Some(vec![spent; inputs]))),
    ]
}

/// limit: BLOCK_TXS_MAX at
/// limit: BLOCK_TXS_MAX above
/// limit: BLOCK_INPUTS_MAX at
/// limit: BLOCK_INPUTS_MAX above
#[test]
fn an_answer_has_as_many_entries_as_were_asked_for() {
    for (question, answer) in lists(3, BLOCK_TXS_MAX, BLOCK_INPUTS_MAX) {
        assert_eq!(Answer::decode(&answer.encode(), &question), Ok(answer));
    }
    for (question, answer) in lists(4, BLOCK_TXS_MAX + 1, BLOCK_INPUTS_MAX + 1) {
        let error = Answer::decode(&answer.encode(), &question).unwrap_err();
        assert!(matches!(error, WireError::TooMany { .. }), "{question:?}: {error}");
    }
    // The entries of a list that is too long are not read: these would be an error.
    let bytes = [&[topic::PRUNED][..], &2_u32.to_le_bytes(), &[9, 9]].concat();
    let error = Answer::decode(&bytes, &Question::Pruned(vec![Height(1)])).unwrap_err();
    assert_eq!(error.to_string(), "an answer has a list of 2 entries, and may have 1 at most");
    let error = Answer::decode(&bytes, &Question::PoolTxids).unwrap_err();
    assert_eq!(error.to_string(), "an answer has the kind 7, which is that of another question");
}

#[test]
fn reasons_are_cut_and_have_no_control_characters() {
    let read = |words: &str| {
        let mut read = [AnswerError::TryAnother(words.to_owned()), AnswerError::Final(words.to_owned())].map(|error| {
            match Answer::decode(&Answer::Failed(error).encode(), &Question::PoolTxids) {
                Ok(Answer::Failed(AnswerError::TryAnother(words) | AnswerError::Final(words))) => words,
                other => panic!("{other:?}"),
            }
        });
        assert_eq!(read[0], read[1]);
        std::mem::take(&mut read[0])
    };
    let longest = "x".repeat(REASON_SIZE_MAX);
    assert_eq!(read(&longest), longest);
    assert_eq!(read(&format!("{longest}x")), longest);
    // Not in the middle of a character.
    assert_eq!(read(&format!("x{}", "\u{20ac}".repeat(REASON_SIZE_MAX))).len(), REASON_SIZE_MAX / 3 * 3 + 1);
    assert_eq!(read("a\r\n2026 [error]\u{1b}[2J\u{9b}\0 \u{e4}"), "a??2026 [error]?[2J?? \u{e4}");
}

#[test]
fn another_version_is_named() {
    let mut frame = encode(&Message::Hello(Hello { version: 2, genesis: BlockHash([1; 32]), epoch: 5 }));
    frame.truncate(LENGTH_SIZE + 5);
    frame[0] = 5;
    let error = read(&frame, &[9]).unwrap_err();
    assert_eq!(error.to_string(), "the feed has version 2, and this program reads version 1");
}

#[test]
fn inputs_and_spent_outputs_are_as_many() {
    let mut added = pool_tx(2, 5);
    added.spent.pop();
    let error = read(&encode(&Message::Added(added)), &[9]).unwrap_err();
    assert_eq!(error.to_string(), "a transaction with 2 inputs comes with 1 spent outputs");
}
