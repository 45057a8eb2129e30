//! The cluster graph under any sequence of changes: it answers as its plain model, which tries every order of a
//! cluster.
#![no_main]

use libfuzzer_sys::fuzz_target;

fuzz_target!(|bytes: &[u8]| lydian_mempool::graph::twin::compare(bytes));
