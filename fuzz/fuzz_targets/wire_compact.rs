//! A compact block of any bytes is refused or becomes a block with the announced number of transactions.
//!
//! This holds whatever transactions are available.
#![no_main]

use libfuzzer_sys::fuzz_target;
use lydian_primitives::{RawBlock, Wtxid};
use lydian_wire::{Command, Message, PartialBlock};

/// Version, one input, one output, lock time.
fn tx(seed: u8) -> Vec<u8> {
    [&[1, 0, 0, 0, 1][..], &[seed; 36], &[0, 0, 0, 0, 0, 1, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0]].concat()
}

fuzz_target!(|bytes: &[u8]| {
    let Some((hand, payload)) = bytes.split_first() else { return };
    let Ok(Message::CmpctBlock(mut compact)) = Message::decode(&Command::CMPCTBLOCK, payload) else { return };
    let wtxids = (0..*hand % 16).map(|seed| Wtxid([seed; 32]));
    // Some of the available transactions are in the block.
    for (index, wtxid) in wtxids.clone().enumerate().step_by(2) {
        let id = compact.short_id(&wtxid);
        if let Some(place) = compact.short_ids.get_mut(index * 3) {
            *place = id;
        }
    }
    let Ok(partial) = PartialBlock::new(&compact, wtxids.map(|wtxid| (wtxid, tx(wtxid.0[0])))) else { return };
    let missing = partial.missing();
    assert!(missing.is_sorted() && missing.len() <= compact.short_ids.len());
    let request = Message::GetBlockTxn(partial.request());
    assert_eq!(Message::decode(&Command::GETBLOCKTXN, &request.payload()), Ok(request));
    let answer = vec![tx(99); missing.len()];
    assert!(partial.clone().fill(&vec![tx(99); missing.len() + 1]).is_err());
    let block = partial.fill(&answer).expect("all that was missing");
    let block = RawBlock::new(block).parse().expect("transactions that were parsed before");
    assert_eq!((block.tx_count(), *block.header()), (compact.tx_count(), compact.header));
});
