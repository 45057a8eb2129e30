//! A PSBT from any bytes: it is read or refused; what is written is read again as the same; and analysing, combining
//! and finalizing it ends.
//!
//! Core writes previous transactions without their witnesses, so that one without inputs may not be read again.
#![no_main]

use libfuzzer_sys::fuzz_target;
use lydian_descriptor::Batch;
use lydian_psbt::Psbt;
use lydian_stdx::{base64, decode_base64};

/// A PSBT takes at most so many times the memory of its bytes, counting its parts and not what they contain.
const PARTS_MAX: usize = 40;

fuzz_target!(|bytes: &[u8]| {
    assert_eq!(decode_base64(base64(bytes).as_bytes()).as_deref(), Some(bytes));
    let psbt = match Psbt::from_bytes(bytes) {
        Ok(psbt) => psbt,
        Err(error) => {
            assert!(!error.to_string().is_empty());
            return;
        }
    };
    let parts = size_of_val(&psbt.inputs[..]) + size_of_val(&psbt.outputs[..]);
    assert!(parts <= PARTS_MAX * bytes.len(), "{parts} bytes for {}", bytes.len());
    let written = psbt.to_bytes();
    if let Ok(again) = Psbt::from_bytes(&written) {
        assert_eq!(again.to_bytes(), written);
        assert_eq!(Psbt::from_base64(&psbt.to_base64()).expect("the same bytes").to_bytes(), written);
        let mut combined = psbt.clone();
        assert_eq!(combined.merge(again), psbt.lock_time().is_some());
    }
    psbt.clone().analyze();
    let (inputs, mut finalized) = (psbt.inputs.len(), psbt);
    if let Some(tx) = finalized.finalize(&Batch::default()) {
        assert_eq!(tx.inputs.len(), inputs);
    }
});
