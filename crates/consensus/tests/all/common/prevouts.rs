//! The spent outputs of one block (`docs/formats/prevouts.md`), for tests and benchmarks. Input: a file. Output: coins.

use lydian_consensus::SpentCoin;
use lydian_primitives::{Amount, Height, Reader};

pub(crate) fn spent_coins(bytes: &[u8]) -> Vec<SpentCoin> {
    let mut reader = Reader::new(bytes);
    let mut coins = Vec::new();
    while reader.remaining() != 0 {
        let value = Amount(reader.i64().unwrap());
        let code = reader.u32().unwrap();
        let origin = (code != u32::MAX).then_some((Height(code / 2), code % 2 == 1));
        coins.push(SpentCoin { value, script_pubkey: reader.var_bytes().unwrap().into(), origin });
    }
    coins
}
