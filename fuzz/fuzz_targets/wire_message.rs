//! A message of any command from any payload: decoding is total, what was read is written and read again as the same, and what follows the last field changes
//! nothing. The first byte chooses the command.
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
    // Addresses of unknown networks and counts of transactions behind headers are not kept; all else takes no more bytes than it came in.
    assert!(written.len() <= 3 * payload.len() + 100, "{} from {}", written.len(), payload.len());
    assert_eq!(Message::decode(&command, &written).as_ref(), Ok(&message));
    let longer = Message::decode(&command, &[&written[..], &[0xff; 9]].concat());
    match message {
        Message::Feature(_) => assert_eq!(longer, Err(DecodeError::InvalidFeature)),
        // Fields may be missing at the end of these, and a block is kept as it came.
        Message::Version(_) | Message::Ping(None) | Message::Pong(None) | Message::Block(_) => assert!(longer.is_ok()),
        message => assert_eq!(longer, Ok(message)),
    }
});
