//! Why a connection ended, in Bitcoin Core's words.
//!
//! Input: errors of a socket or a transport. Output: log lines.

use crate::Host;
use lydian_engine::LogLevel;
use lydian_p2p::manager::PeerId;
use lydian_primitives::to_hex;
use lydian_wire::transport::TransportError;
use lydian_wire::{Command, Endpoint, RejectedMessage};
use std::io;

/// Why a connection ended.
#[derive(Debug)]
pub(crate) enum Ending {
    /// The manager asked for it and has logged the reason.
    Asked,
    SocketClosed,
    ReceiveError(io::Error),
    SendError(io::Error),
    Transport(TransportError),
    /// A block that the peer requested cannot be read.
    BlockUnreadable,
    /// The peer's use of the memory for peers or of time, which Core does not limit.
    Load(String),
}

impl Ending {
    /// Logs the reason.
    pub(crate) fn log(&self, host: &dyn Host, id: PeerId, endpoint: &Endpoint) {
        let switches = host.log_switches();
        let peer = if switches.has_ips() { format!("peer={id}, peeraddr={endpoint}") } else { format!("peer={id}") };
        match self {
            Ending::Asked => {}
            Ending::SocketClosed => host.debug(|| format!("socket closed, disconnecting {peer}")),
            Ending::ReceiveError(error) => {
                host.debug(|| format!("socket recv error, disconnecting {peer}: {}", network_error(error)));
            }
            Ending::SendError(error) => {
                host.debug(|| format!("socket send error, disconnecting {peer}: {}", network_error(error)));
            }
            Ending::Transport(error) => {
                host.debug(|| transport_error(error, id));
                host.debug(|| format!("receiving message bytes failed, disconnecting {peer}"));
            }
            Ending::Load(reason) => host.debug(|| format!("{reason}, disconnecting {peer}")),
            Ending::BlockUnreadable => {
                host.log(LogLevel::Error, format!("Cannot load block from disk, disconnecting {peer}"));
            }
        }
    }
}

/// Core's `NetworkErrorString`: the system's error text and number.
pub(crate) fn network_error(error: &io::Error) -> String {
    let text = error.to_string();
    match (error.raw_os_error(), text.split_once(" (os error")) {
        (Some(number), Some((words, _))) => format!("{words} ({number})"),
        _ => text,
    }
}

fn transport_error(error: &TransportError, id: PeerId) -> String {
    match error {
        TransportError::WrongMagic { magic } => {
            format!("Header error: Wrong MessageStart {} received, peer={id}", to_hex(magic))
        }
        TransportError::MessageTooLarge { size, command } => {
            let name = command.as_ref().map_or("", Command::as_str);
            format!("Header error: Size too large ({name}, {size} bytes), peer={id}")
        }
        TransportError::V1WrongMagic { magic } => {
            format!("V2 transport error: V1 peer with wrong MessageStart {}", to_hex(magic))
        }
        TransportError::MissingGarbageTerminator => {
            format!("V2 transport error: missing garbage terminator, peer={id}")
        }
        TransportError::PacketTooLarge { size } => {
            format!("V2 transport error: packet too large ({size} bytes), peer={id}")
        }
        TransportError::PacketNotAuthentic { size } => {
            format!("V2 transport error: packet decryption failure ({size} bytes), peer={id}")
        }
        TransportError::Failed => format!("receiving after a transport error, peer={id}"),
    }
}

/// Returns the log line for a message that was dropped without ending the connection.
pub(crate) fn rejected(message: &RejectedMessage, id: PeerId) -> String {
    match message {
        RejectedMessage::WrongChecksum { command, size, expected, found } => format!(
            "Header error: Wrong checksum ({}, {size} bytes), expected {} was {}, peer={id}",
            command.as_str(),
            to_hex(expected),
            to_hex(found)
        ),
        RejectedMessage::InvalidType { size } => {
            format!("Header error: Invalid message type ({}, {size} bytes), peer={id}", "")
        }
        RejectedMessage::InvalidContents { size } => {
            format!("V2 transport error: invalid message type ({size} bytes contents), peer={id}")
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn errors_of_the_system_have_cores_form() {
        assert_eq!(network_error(&io::Error::from_raw_os_error(104)), "Connection reset by peer (104)");
        assert_eq!(network_error(&io::Error::other("words")), "words");
    }
}
