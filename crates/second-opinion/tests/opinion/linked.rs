//! Bitcoin Core's code as it is linked into this test: its flags, and what it cannot be asked.

use lydian_chains::presets::maker::{FreeCoin, free_tx, output};
use lydian_primitives::{Amount, OutPoint, Output, Txid};
use lydian_script::Flags;
use lydian_second_opinion::{Spend, bitcoin_core};

/// libbitcoinkernel's flags are ours, bit for bit.
#[test]
fn the_flags_have_the_same_bits() {
    let pairs = [
        (Flags::P2SH, bitcoinkernel::VERIFY_P2SH),
        (Flags::DERSIG, bitcoinkernel::VERIFY_DERSIG),
        (Flags::NULLDUMMY, bitcoinkernel::VERIFY_NULLDUMMY),
        (Flags::CHECKLOCKTIMEVERIFY, bitcoinkernel::VERIFY_CHECKLOCKTIMEVERIFY),
        (Flags::CHECKSEQUENCEVERIFY, bitcoinkernel::VERIFY_CHECKSEQUENCEVERIFY),
        (Flags::WITNESS, bitcoinkernel::VERIFY_WITNESS),
        (Flags::TAPROOT, bitcoinkernel::VERIFY_TAPROOT),
    ];
    assert!(pairs.iter().all(|(ours, cores)| ours.0 == *cores), "{pairs:?}");
    assert_eq!(pairs.iter().fold(0, |all, (ours, _)| all | ours.0), bitcoinkernel::VERIFY_ALL);
}

/// A question that Core's code refuses, or that would end the process, is an error and no verdict.
#[test]
fn what_cannot_be_asked_is_an_error() {
    let mut verifier = bitcoin_core().unwrap();
    let coin = FreeCoin { outpoint: OutPoint { txid: Txid([7; 32]), vout: 0 }, value: 5, coinbase_height: None };
    let tx = free_tx(&[coin], vec![output(5, &[0x51])]).encode();
    let script = [0x51];
    let spent = [Output { value: Amount(5), script_pubkey: &script }];
    let mut ask = |spent: &[Output<'_>], flags| verifier.verify(&Spend { tx: &tx, spent, flags }, &|| false);
    assert_eq!(ask(&spent, Flags::P2SH), Ok(None));
    let twice = [spent[0], spent[0]];
    for (spent, flags) in [(&spent[..], Flags::CLEANSTACK), (&spent[..], Flags::WITNESS), (&twice[..], Flags::P2SH)] {
        assert!(ask(spent, flags).is_err(), "{flags:?}");
    }
}
