//! A transaction from any bytes: parsing is total, it encodes back to the same bytes, and its ids hash what Core
//! hashes.
#![no_main]

use libfuzzer_sys::fuzz_target;
use lydian_hash::sha256d;
use lydian_primitives::build::MutTx;
use lydian_primitives::{ParseErrorKind, Transaction};

fuzz_target!(|bytes: &[u8]| {
    let parsed = match Transaction::parse(bytes) {
        Ok(parsed) => parsed,
        Err(error) => {
            assert!(error.offset <= bytes.len(), "{error}");
            return;
        }
    };
    let tx = parsed.view();
    let made = MutTx::from(tx);
    assert_eq!(made.encode(), bytes, "not what was read");
    let stripped = made.encode_stripped();
    assert_eq!(tx.txid().0, sha256d(&stripped));
    assert_eq!(tx.wtxid().0, sha256d(bytes));
    assert_eq!((tx.base_size(), tx.total_size()), (stripped.len(), bytes.len()));
    assert_eq!(tx.weight(), 3 * stripped.len() + bytes.len());
    assert_eq!(tx.has_witness(), made.has_witness());
    // With one byte less or more, it is not a transaction.
    assert!(Transaction::parse(&bytes[..bytes.len() - 1]).is_err());
    let longer = Transaction::parse([bytes, &[0]].concat()).map(|_| ()).map_err(|error| error.kind);
    assert_eq!(longer, Err(ParseErrorKind::TrailingBytes { count: 1 }));
});
