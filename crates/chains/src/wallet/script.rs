//! Script construction: pushes as in Core's `CScript`, and the opcodes that the lab uses.

pub const OP_0: u8 = 0x00;
pub const OP_1NEGATE: u8 = 0x4f;
pub const OP_1: u8 = 0x51;
pub const OP_2: u8 = 0x52;
pub const OP_3: u8 = 0x53;
pub const OP_16: u8 = 0x60;
pub const OP_NOP: u8 = 0x61;
pub const OP_IF: u8 = 0x63;
pub const OP_ENDIF: u8 = 0x68;
pub const OP_VERIFY: u8 = 0x69;
pub const OP_RETURN: u8 = 0x6a;
pub const OP_2DROP: u8 = 0x6d;
pub const OP_2DUP: u8 = 0x6e;
pub const OP_3DUP: u8 = 0x6f;
pub const OP_DROP: u8 = 0x75;
pub const OP_DUP: u8 = 0x76;
pub const OP_SWAP: u8 = 0x7c;
pub const OP_EQUAL: u8 = 0x87;
pub const OP_EQUALVERIFY: u8 = 0x88;
pub const OP_NOT: u8 = 0x91;
pub const OP_ADD: u8 = 0x93;
pub const OP_NUMEQUAL: u8 = 0x9c;
pub const OP_HASH160: u8 = 0xa9;
pub const OP_CODESEPARATOR: u8 = 0xab;
pub const OP_CHECKSIG: u8 = 0xac;
pub const OP_CHECKSIGVERIFY: u8 = 0xad;
pub const OP_CHECKMULTISIG: u8 = 0xae;
pub const OP_CHECKLOCKTIMEVERIFY: u8 = 0xb1;
pub const OP_CHECKSEQUENCEVERIFY: u8 = 0xb2;
pub const OP_CHECKSIGADD: u8 = 0xba;

/// A script under construction.
#[derive(Clone, Debug, Default)]
pub struct Script(Vec<u8>);

impl Script {
    pub fn new() -> Script {
        Script::default()
    }

    pub fn op(mut self, opcode: u8) -> Script {
        self.0.push(opcode);
        self
    }

    /// Pushes bytes with the shortest length prefix (`CScript::operator<<` of bytes: never OP_1 to OP_16).
    pub fn push(mut self, bytes: &[u8]) -> Script {
        let length = u32::try_from(bytes.len()).unwrap_or(u32::MAX).to_le_bytes();
        match bytes.len() {
            0..=75 => self.0.push(length[0]),
            76..=255 => self.0.extend_from_slice(&[0x4c, length[0]]),
            256..=65_535 => self.0.extend_from_slice(&[0x4d, length[0], length[1]]),
            _ => {
                self.0.push(0x4e);
                self.0.extend_from_slice(&length);
            }
        }
        self.0.extend_from_slice(bytes);
        self
    }

    /// Pushes a number: OP_0, OP_1NEGATE, OP_1 to OP_16 or its bytes (`CScript::operator<<` of int64).
    pub fn number(self, value: i64) -> Script {
        match (value, u8::try_from(value)) {
            (-1, _) => self.op(OP_1NEGATE),
            (0, _) => self.op(OP_0),
            (1..=16, Ok(small)) => self.op(OP_1 - 1 + small),
            _ => self.push(&number_bytes(value)),
        }
    }

    /// Appends bytes unchanged.
    pub fn raw(mut self, bytes: &[u8]) -> Script {
        self.0.extend_from_slice(bytes);
        self
    }

    pub fn build(self) -> Vec<u8> {
        self.0
    }
}

/// A number in script encoding: little-endian, the sign in the top bit, no superfluous byte (`CScriptNum::serialize`).
pub fn number_bytes(value: i64) -> Vec<u8> {
    let mut bytes = value.unsigned_abs().to_le_bytes().to_vec();
    while bytes.last() == Some(&0) {
        bytes.pop();
    }
    if bytes.last().is_some_and(|top| top & 0x80 != 0) {
        bytes.push(0);
    }
    if let (true, Some(top)) = (value < 0, bytes.last_mut()) {
        *top |= 0x80;
    }
    bytes
}

/// `OP_DUP OP_HASH160 hash OP_EQUALVERIFY OP_CHECKSIG`.
pub fn p2pkh(hash: &[u8; 20]) -> Vec<u8> {
    Script::new().op(OP_DUP).op(OP_HASH160).push(hash).op(OP_EQUALVERIFY).op(OP_CHECKSIG).build()
}

/// The output script of a redeem script (BIP-0016).
pub fn p2sh(redeem: &[u8]) -> Vec<u8> {
    Script::new().op(OP_HASH160).push(&lydian_hash::hash160(redeem)).op(OP_EQUAL).build()
}

/// The output script of a witness script (BIP-0141).
pub fn p2wsh(witness_script: &[u8]) -> Vec<u8> {
    Script::new().op(OP_0).push(&lydian_hash::sha256(witness_script)).build()
}

/// The output script of a key hash (BIP-0141).
pub fn p2wpkh(hash: &[u8; 20]) -> Vec<u8> {
    Script::new().op(OP_0).push(hash).build()
}

/// The output script of an output key (BIP-0341).
pub fn p2tr(output_key: &[u8; 32]) -> Vec<u8> {
    Script::new().op(OP_1).push(output_key).build()
}

/// `m keys n OP_CHECKMULTISIG`.
pub fn multisig(m: i64, keys: impl IntoIterator<Item = impl AsRef<[u8]>>) -> Vec<u8> {
    let begin = (Script::new().number(m), 0);
    let (pushed, count) = keys.into_iter().fold(begin, |(script, count), key| (script.push(key.as_ref()), count + 1));
    pushed.number(count).op(OP_CHECKMULTISIG).build()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_as_core_writes_them() {
        let cases: [(i64, &[u8]); 10] = [
            (0, &[0]),
            (1, &[0x51]),
            (16, &[0x60]),
            (-1, &[0x4f]),
            (17, &[1, 17]),
            (127, &[1, 127]),
            (128, &[2, 128, 0]),
            (432, &[2, 0xb0, 1]),
            (-128, &[2, 128, 128]),
            (80_000, &[3, 0x80, 0x38, 1]),
        ];
        for (value, script) in cases {
            assert_eq!(Script::new().number(value).build(), script, "{value}");
        }
    }

    #[test]
    fn pushes_have_the_shortest_prefix() {
        let prefix = |size: usize| {
            let script = Script::new().push(&vec![7; size]).build();
            script[..script.len() - size].to_vec()
        };
        assert_eq!(prefix(75), [75]);
        assert_eq!(prefix(76), [0x4c, 76]);
        assert_eq!(prefix(256), [0x4d, 0, 1]);
        assert_eq!(prefix(65_536), [0x4e, 0, 0, 1, 0]);
    }
}
