//! A message of any command from any payload: decoding is total, and what was read survives an encode and decode.
//!
//! Bytes after the last field change nothing. The first byte chooses the command.
#![no_main]

use libfuzzer_sys::fuzz_target;
use lydian_wire::{Command, DecodeError, Message};

fuzz_target!(|bytes: &[u8]| {
    let Some((first, payload)) = bytes.split_first() else { return };
    let command = Command::ALL[usize::from(*first) % Command::ALL.len()];
    let message = match Message::decode(&command, payload) {
        Ok(message) => message,
        Err(error) => {
            if let DecodeError::Malformed(error) = error {
                assert!(error.offset <= payload.len(), "{error}");
            }
            return;
        }
    };
    assert_eq!(message.command(), command);
    let written = message.payload();
    // Addresses of unknown networks and transaction counts after headers are not kept; everything else encodes to no
    // more bytes than it was read from.
    assert!(written.len() <= 3 * payload.len() + 100, "{} from {}", written.len(), payload.len());
    assert_eq!(Message::decode(&command, &written).as_ref(), Ok(&message));
    let longer = Message::decode(&command, &[&written[..], &[0xff; 9]].concat());
    match message {
        Message::Feature(_) => assert_eq!(longer, Err(DecodeError::InvalidFeature)),
        // The last fields of these may be missing, and a block is kept in its raw form.
        Message::Version(_) | Message::Ping(None) | Message::Pong(None) | Message::Block(_) => assert!(longer.is_ok()),
        message => assert_eq!(longer, Ok(message)),
    }
});
