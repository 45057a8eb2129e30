//! Newtypes: hashes, heights and amounts. A hash is stored in internal byte order and printed reversed, as in Core.
//!
//! Cost: each is as large as the value it wraps. No I/O.

use crate::hex::push_hex;
use std::fmt;
use std::str::FromStr;

macro_rules! hash_type {
    ($(#[$doc:meta])* $name:ident) => {
        $(#[$doc])*
        #[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
        pub struct $name(pub [u8; 32]);

        impl $name {
            pub const ZERO: $name = $name([0; 32]);
        }

        impl fmt::Display for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                self.0.iter().rev().try_for_each(|byte| write!(f, "{byte:02x}"))
            }
        }

        impl fmt::Debug for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                write!(f, "{self}")
            }
        }

        impl FromStr for $name {
            type Err = HexError;
            fn from_str(text: &str) -> Result<Self, HexError> {
                let mut bytes: [u8; 32] = hex(text)?.try_into().map_err(|_| HexError)?;
                bytes.reverse();
                Ok($name(bytes))
            }
        }
    };
}

hash_type!(
    /// Double SHA-256 of a block header.
    BlockHash
);
hash_type!(
    /// Double SHA-256 of a transaction without its witness.
    Txid
);
hash_type!(
    /// Double SHA-256 of a transaction with its witness (BIP-0141).
    Wtxid
);

/// Text that is not hexadecimal or does not have the expected length.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct HexError;

impl fmt::Display for HexError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("not hexadecimal of the expected length")
    }
}

impl std::error::Error for HexError {}

/// Decodes hexadecimal text, without reversing the bytes.
pub fn hex(text: &str) -> Result<Vec<u8>, HexError> {
    let (pairs, rest) = text.as_bytes().as_chunks::<2>();
    let (mut bytes, mut all) = (Vec::with_capacity(pairs.len()), 0);
    for pair in pairs {
        let [high, low] = pair.map(|digit| DIGIT_VALUES[usize::from(digit)]);
        all |= high | low;
        bytes.push(high << 4 | low & 15);
    }
    if rest.is_empty() && all < 16 { Ok(bytes) } else { Err(HexError) }
}

/// The value of each hexadecimal digit; 255 for other characters.
const DIGIT_VALUES: [u8; 256] = {
    let mut values = [255; 256];
    let (digits, mut value) = (b"0123456789abcdef", 0_u8);
    while value < 16 {
        let digit = digits[value as usize];
        values[digit as usize] = value;
        values[digit.to_ascii_uppercase() as usize] = value;
        value += 1;
    }
    values
};

/// Encodes bytes as hexadecimal text, without reversing them.
pub fn to_hex(bytes: &[u8]) -> String {
    let mut digits = Vec::new();
    push_hex(&mut digits, bytes);
    String::from_utf8(digits).unwrap_or_default()
}

/// A reference to an output of a transaction: Core's `COutPoint`.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct OutPoint {
    pub txid: Txid,
    /// Index of the output in its transaction.
    pub vout: u32,
}

impl OutPoint {
    /// The prevout of a coinbase: Core's `COutPoint::SetNull`.
    pub const NULL: OutPoint = OutPoint { txid: Txid::ZERO, vout: u32::MAX };

    pub fn is_null(&self) -> bool {
        *self == OutPoint::NULL
    }

    /// The serialised outpoint: txid, then the index in little-endian order.
    pub fn to_bytes(&self) -> [u8; 36] {
        let mut bytes = [0; 36];
        bytes[..32].copy_from_slice(&self.txid.0);
        bytes[32..].copy_from_slice(&self.vout.to_le_bytes());
        bytes
    }
}

impl fmt::Display for OutPoint {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}", self.txid, self.vout)
    }
}

/// Height of a block; the genesis block has height 0.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Default)]
pub struct Height(pub u32);

impl fmt::Display for Height {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

/// A value in satoshi: Core's `CAmount`. Signed, because untrusted bytes may hold any value.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Default)]
pub struct Amount(pub i64);

impl Amount {
    /// 100,000,000 satoshi.
    pub const COIN: Amount = Amount(100_000_000);
    /// 21 million coins: Core's `MAX_MONEY` (consensus/amount.h).
    pub const MAX_MONEY: Amount = Amount(21_000_000 * Amount::COIN.0);

    /// Core's `MoneyRange`.
    #[inline]
    pub fn is_in_money_range(self) -> bool {
        (Amount(0)..=Amount::MAX_MONEY).contains(&self)
    }

    pub fn checked_add(self, other: Amount) -> Option<Amount> {
        self.0.checked_add(other.0).map(Amount)
    }
}

impl fmt::Display for Amount {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let sign = if self.0 < 0 { "-" } else { "" };
        let satoshi = self.0.unsigned_abs();
        write!(f, "{sign}{}.{:08}", satoshi / 100_000_000, satoshi % 100_000_000)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn hashes_are_shown_reversed_and_read_back() {
        let text = "000000000019d6689c085ae165831e934ff763ae46a2a6c172b3f1b60a8ce26f";
        let hash: BlockHash = text.parse().unwrap();
        assert_eq!(hash.0[0], 0x6f);
        assert_eq!(hash.to_string(), text);
        assert_eq!("0g".parse::<Txid>(), Err(HexError));
        assert_eq!("00".parse::<Txid>(), Err(HexError));
        assert_eq!(to_hex(&hex("00ff1a").unwrap()), "00ff1a");
    }

    #[test]
    fn amounts() {
        assert!(Amount::MAX_MONEY.is_in_money_range());
        assert!(!Amount(Amount::MAX_MONEY.0 + 1).is_in_money_range());
        assert!(!Amount(-1).is_in_money_range());
        assert_eq!(Amount(-150_000_000).to_string(), "-1.50000000");
    }
}
