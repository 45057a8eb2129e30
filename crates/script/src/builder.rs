//! Builds scripts: Core's `CScript <<`. For generators, wallet templates and tests; verification builds no scripts.

use crate::find_and_delete::push_header;
use crate::num;
use crate::opcodes::{OP_0, OP_1, OP_1NEGATE};

/// A script under construction, appended to at its end.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ScriptBuilder {
    bytes: Vec<u8>,
}

impl ScriptBuilder {
    pub fn new() -> ScriptBuilder {
        ScriptBuilder::default()
    }

    /// Appends one opcode.
    #[must_use]
    pub fn op(mut self, opcode: u8) -> ScriptBuilder {
        self.bytes.push(opcode);
        self
    }

    /// Pushes bytes with the shortest length prefix; never `OP_1` to `OP_16` (Core's `CScript << vector`).
    #[must_use]
    pub fn push_slice(mut self, data: &[u8]) -> ScriptBuilder {
        let (prefix, size) = push_header(data.len());
        self.bytes.extend_from_slice(&prefix[..size]);
        self.bytes.extend_from_slice(data);
        self
    }

    /// Pushes a number in its shortest form (Core's `CScript << int64_t`).
    #[must_use]
    pub fn push_int(self, value: i64) -> ScriptBuilder {
        match u8::try_from(value) {
            _ if value == -1 => self.op(OP_1NEGATE),
            Ok(0) => self.op(OP_0),
            Ok(small @ 1..=16) => self.op(OP_1 - 1 + small),
            _ => {
                let (bytes, size) = num::encode(value);
                self.push_slice(&bytes[..size])
            }
        }
    }

    /// Appends bytes unchanged.
    #[must_use]
    pub fn raw(mut self, bytes: &[u8]) -> ScriptBuilder {
        self.bytes.extend_from_slice(bytes);
        self
    }

    pub fn into_bytes(self) -> Vec<u8> {
        self.bytes
    }
}

/// Scripts of the common output types.
pub mod scripts {
    use super::ScriptBuilder;
    use crate::opcodes::*;

    pub fn p2pk(key: &[u8]) -> Vec<u8> {
        ScriptBuilder::new().push_slice(key).op(OP_CHECKSIG).into_bytes()
    }

    pub fn p2pkh(key_hash: &[u8; 20]) -> Vec<u8> {
        let start = ScriptBuilder::new().op(OP_DUP).op(OP_HASH160).push_slice(key_hash);
        start.op(OP_EQUALVERIFY).op(OP_CHECKSIG).into_bytes()
    }

    pub fn p2sh(script_hash: &[u8; 20]) -> Vec<u8> {
        ScriptBuilder::new().op(OP_HASH160).push_slice(script_hash).op(OP_EQUAL).into_bytes()
    }

    /// A witness program of version 0 to 16.
    pub fn witness_program(version: u8, program: &[u8]) -> Vec<u8> {
        ScriptBuilder::new().push_int(i64::from(version)).push_slice(program).into_bytes()
    }

    /// `required KEYS n CHECKMULTISIG`.
    pub fn multisig(required: u8, keys: &[&[u8]]) -> Vec<u8> {
        let start = ScriptBuilder::new().push_int(i64::from(required));
        let with_keys = keys.iter().fold(start, |script, key| script.push_slice(key));
        with_keys.push_int(i64::try_from(keys.len()).unwrap_or(i64::MAX)).op(OP_CHECKMULTISIG).into_bytes()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_take_their_opcodes() {
        let int = |value| ScriptBuilder::new().push_int(value).into_bytes();
        assert_eq!(int(0), [0x00]);
        assert_eq!(int(-1), [0x4f]);
        assert_eq!(int(1), [0x51]);
        assert_eq!(int(16), [0x60]);
        assert_eq!(int(17), [1, 17]);
        assert_eq!(int(-2), [1, 0x82]);
        assert_eq!(int(1000), [2, 0xe8, 3]);
        assert_eq!(int(i64::MAX).len(), 9);
    }
}
