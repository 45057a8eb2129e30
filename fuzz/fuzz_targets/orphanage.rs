//! The orphanage under any sequence of calls: it answers as its plain model.
#![no_main]

use libfuzzer_sys::fuzz_target;

fuzz_target!(|bytes: &[u8]| lydian_p2p::txs::orphanage::twin::compare(bytes));
