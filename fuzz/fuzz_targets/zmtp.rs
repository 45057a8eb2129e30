//! A subscriber of ZMQ notifications that sends anything, in any pieces: the same verdict, subscriptions and replies.
//!
//! The first byte chooses the pieces; the greeting is put in front unless its second bit is set.
#![no_main]

use libfuzzer_sys::fuzz_target;
use lydian_zmq::{ProtocolError, Session, Topic};

fn talk(bytes: &[u8], piece: usize) -> Result<(Vec<Topic>, Vec<u8>), ProtocolError> {
    let (mut session, mut replies) = (Session::default(), Vec::new());
    for piece in bytes.chunks(piece.max(1)) {
        session.receive(piece, &mut replies)?;
    }
    Ok((Topic::ALL.into_iter().filter(|topic| session.wants(*topic)).collect(), replies))
}

fuzz_target!(|bytes: &[u8]| {
    let Some((choice, content)) = bytes.split_first() else { return };
    let mut conversation = Vec::new();
    if choice & 2 == 0 {
        conversation.extend_from_slice(b"\xff\0\0\0\0\0\0\0\x01\x7f\x03\x01NULL");
        conversation.resize(64, 0);
        conversation.extend_from_slice(b"\x04\x19\x05READY\x0bSocket-Type\0\0\0\x03SUB");
    }
    conversation.extend_from_slice(content);
    assert_eq!(talk(&conversation, usize::from(*choice >> 2)), talk(&conversation, conversation.len()));
});
