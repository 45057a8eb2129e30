//! Undo data of a block from any bytes: coins or an error, using no more memory than the size of the input justifies.
//!
//! Coins that were read survive an encode and decode.
#![no_main]

use libfuzzer_sys::fuzz_target;
use lydian_chain::{UndoParts, decode_undo};
use lydian_consensus::codec::{read_coin, write_coin};
use lydian_primitives::Reader;

fuzz_target!(|bytes: &[u8]| match decode_undo(bytes) {
    Ok(undo) => {
        assert_eq!(undo.coins.len(), undo.input_counts.iter().map(|count| *count as usize).sum::<usize>());
        assert!(undo.coins.capacity() <= 4 * bytes.len() + 16, "more memory than the bytes justify");
        let parts = UndoParts::parse(bytes.to_vec()).expect("what is whole has parts");
        let mut coins = undo.coins.iter();
        for position in 1..=undo.input_counts.len() as u32 {
            let own = parts.coins_of(position).expect("it was decoded").expect("it is there");
            assert!(own.iter().all(|coin| Some(coin) == coins.next()));
        }
        assert_eq!(coins.next(), None);
        for coin in &undo.coins {
            let mut out = Vec::new();
            write_coin(coin.as_ref(), &mut out);
            let mut reader = Reader::new(&out);
            let again = read_coin(&mut reader).expect("what was written reads back");
            assert_eq!(reader.remaining(), 0);
            assert_eq!(
                (&again.script_pubkey, again.height, again.is_coinbase),
                (&coin.script_pubkey, coin.height, coin.is_coinbase)
            );
            if coin.value.is_in_money_range() {
                assert_eq!(again.value, coin.value);
            }
        }
    }
    Err(error) => assert!(error.offset <= bytes.len()),
});
