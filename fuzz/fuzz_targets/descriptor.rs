//! Any text as a descriptor: an error with words, or descriptors.
//!
//! What is written is read again as the same descriptor. Its scripts are those of the text, unless they need a private
//! key, which is never written. The descriptor of each script describes that script.
#![no_main]

use libfuzzer_sys::fuzz_target;
use lydian_consensus::Chain;
use lydian_descriptor::{DescriptorError, Descriptors};

/// Positions that are expanded.
const POSITIONS: [u32; 2] = [0, (1 << 31) - 1];

/// Longer text only costs time.
const TEXT_SIZE_MAX: usize = 4_000;

fuzz_target!(|bytes: &[u8]| {
    let Ok(text) = std::str::from_utf8(bytes) else { return };
    if text.len() > TEXT_SIZE_MAX {
        return;
    }
    let parsed = match Descriptors::parse(text, Chain::Main, false) {
        Ok(parsed) => parsed,
        Err(error) => {
            // Core has no words for text after a complete expression.
            assert!(error == DescriptorError::Trailing || !error.to_string().is_empty());
            return;
        }
    };
    for (index, written) in parsed.texts().iter().enumerate() {
        let again = Descriptors::parse(written, Chain::Main, true).expect("what was written is read");
        assert_eq!(again.texts(), std::slice::from_ref(written));
        assert!(!again.has_secrets());
        for position in POSITIONS {
            let Some(outputs) = parsed.expand(index, position) else { continue };
            if let Some(same) = again.expand(0, position) {
                assert_eq!(outputs, same);
            }
            for output in outputs.iter().filter(|output| !output.script.is_empty()) {
                let described = Descriptors::parse(&output.descriptor, Chain::Main, true).expect("an own descriptor");
                let scripts = described.expand(0, 0).expect("it has no private keys");
                assert_eq!(scripts[0].script, output.script, "{}", output.descriptor);
            }
        }
    }
});
