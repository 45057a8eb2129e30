//! Messages from the tests of other nodes, decoded and encoded back byte for byte.
#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

use lydian_wire::{Command, Message};

#[allow(dead_code, reason = "each test uses some of it")]
#[path = "../../../testdata/locate.rs"]
mod locate;

/// bcoin's real messages: a compact block of mainnet, one of testnet, and a block with transactions selected by a
/// filter.
#[test]
fn bcoins_messages_round_trip() {
    let cases = [
        ("compact426884.raw", Command::CMPCTBLOCK, 409, 426_884),
        ("compact898352.raw", Command::CMPCTBLOCK, 10, 898_352),
        ("merkle300025.raw", Command::MERKLEBLOCK, 461, 300_025),
    ];
    for (name, command, tx_count, height) in cases {
        let Some(path) = locate::shared(&format!("vectors/bcoin/{name}")) else { continue };
        let bytes = locate::read(&path);
        let message = Message::decode(&command, &bytes).unwrap();
        assert_eq!(message.payload(), bytes, "{name}");
        let (header, count) = match message {
            Message::CmpctBlock(compact) => {
                // BIP-0034: the coinbase begins with the height.
                let script_sig = &compact.prefilled[0].tx[42..];
                let pushed = u32::from_le_bytes([script_sig[1], script_sig[2], script_sig[3], 0]);
                assert_eq!((script_sig[0], pushed), (3, height), "{name}");
                (compact.header, compact.tx_count())
            }
            Message::MerkleBlock(block) => (block.header, block.tx_count as usize),
            other => panic!("{other:?}"),
        };
        assert_eq!(count, tx_count, "{name}");
        assert!(header.hash().to_string().starts_with("00000000"), "{name}: the work is real");
    }
}
