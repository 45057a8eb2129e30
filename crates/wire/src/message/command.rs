//! Message names in their wire form. Input: 12 bytes or text. Output: a [`Command`].
//!
//! Invariants: printable ASCII, then zeros, so a command can be printed; every name that Core knows is a constant, in
//! Core's order.

use std::fmt;

/// The name of a message: up to 12 printable characters.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Command([u8; 12]);

macro_rules! commands {
    ($($name:ident $text:literal),* $(,)?) => {
        impl Command {
            $(#[doc = concat!("`", $text, "`")] pub const $name: Command = Command::padded($text);)*

            /// Every name that Core knows (`ALL_NET_MESSAGE_TYPES`).
            pub const ALL: &[Command] = &[$(Command::$name),*];
        }
    };
}

commands! {
    VERSION "version", VERACK "verack", ADDR "addr", ADDRV2 "addrv2", SENDADDRV2 "sendaddrv2", INV "inv", GETDATA "getdata",
    MERKLEBLOCK "merkleblock", GETBLOCKS "getblocks", GETHEADERS "getheaders", TX "tx", HEADERS "headers", BLOCK "block", GETADDR "getaddr",
    MEMPOOL "mempool", PING "ping", PONG "pong", NOTFOUND "notfound", FILTERLOAD "filterload", FILTERADD "filteradd", FILTERCLEAR "filterclear",
    SENDHEADERS "sendheaders", FEEFILTER "feefilter", SENDCMPCT "sendcmpct", CMPCTBLOCK "cmpctblock", GETBLOCKTXN "getblocktxn",
    BLOCKTXN "blocktxn", GETCFILTERS "getcfilters", CFILTER "cfilter", GETCFHEADERS "getcfheaders", CFHEADERS "cfheaders",
    GETCFCHECKPT "getcfcheckpt", CFCHECKPT "cfcheckpt", WTXIDRELAY "wtxidrelay", SENDTXRCNCL "sendtxrcncl", FEATURE "feature",
}

impl Command {
    /// The name of length zero, which no message has.
    pub(crate) const EMPTY: Command = Command([0; 12]);

    const fn padded(text: &str) -> Command {
        let (bytes, mut padded, mut index) = (text.as_bytes(), [0; 12], 0);
        while index < bytes.len() {
            padded[index] = bytes[index];
            index += 1;
        }
        Command(padded)
    }

    /// Creates the name from text; `None` if it cannot be sent in a message.
    pub fn new(text: &str) -> Option<Command> {
        let mut padded = [0; 12];
        padded.get_mut(..text.len())?.copy_from_slice(text.as_bytes());
        if text.contains('\0') { None } else { Command::from_wire(padded) }
    }

    /// Decodes a name received by v1: Core's `IsMessageTypeValid`.
    pub fn from_wire(bytes: [u8; 12]) -> Option<Command> {
        Command::up_to(bytes, 0x7e)
    }

    /// Decodes a name received by v2, where Core also accepts 0x7f.
    pub fn from_wire_v2(bytes: [u8; 12]) -> Option<Command> {
        Command::up_to(bytes, 0x7f)
    }

    fn up_to(bytes: [u8; 12], last: u8) -> Option<Command> {
        let size = bytes.iter().position(|byte| *byte == 0).unwrap_or(12);
        let (name, padding) = bytes.split_at(size);
        let valid = name.iter().all(|byte| (b' '..=last).contains(byte)) && padding.iter().all(|byte| *byte == 0);
        valid.then_some(Command(bytes))
    }

    /// The 12 bytes of the wire form.
    pub fn to_wire(self) -> [u8; 12] {
        self.0
    }

    pub fn as_str(&self) -> &str {
        let size = self.0.iter().position(|byte| *byte == 0).unwrap_or(12);
        // Every constructor ensures printable ASCII.
        std::str::from_utf8(&self.0[..size]).unwrap_or_default()
    }
}

impl fmt::Display for Command {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

impl fmt::Debug for Command {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:?}", self.as_str())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_printable_and_padded() {
        assert_eq!(Command::ALL.len(), 36);
        for command in Command::ALL {
            assert_eq!(Command::new(command.as_str()), Some(*command));
            assert_eq!(Command::from_wire(command.to_wire()), Some(*command));
        }
        assert_eq!(Command::VERSION.to_wire(), *b"version\0\0\0\0\0");
        assert_eq!(Command::GETCFCHECKPT.as_str(), "getcfcheckpt");
        assert!(
            Command::new("thirteenchars").is_none() && Command::new("a\0").is_none() && Command::new("é").is_none()
        );
        assert!(Command::from_wire(*b"ver\0ion\0\0\0\0\0").is_none());
        assert!(Command::from_wire(*b"ver\x1fion\0\0\0\0\0").is_none());
        assert!(Command::from_wire([0; 12]).is_some(), "Core takes the empty name for valid");
        let delete = *b"x\x7f\0\0\0\0\0\0\0\0\0\0";
        assert!(Command::from_wire(delete).is_none() && Command::from_wire_v2(delete).is_some());
    }
}
