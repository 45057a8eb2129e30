//! Scripts as lists of tokens, in which keys and signatures are still symbolic.
//!
//! Input: tokens, or the bytes of any script. Output: bytes. Invariant: parsing and encoding a script gives the same
//! bytes ([`parse`] keeps the encoding of each push, and a tail that is not an operation).

use lydian_script::opcodes::{OP_0, OP_1, OP_1NEGATE, OP_16, OP_PUSHDATA1, OP_PUSHDATA2, OP_PUSHDATA4};
use lydian_script::{ScriptBuilder, is_minimal_push, num, ops, push_header};

use super::keys::KeyPlan;
use super::signature::SigPlan;

/// One operation of a script, or one element of a stack.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Token {
    Op(u8),
    Push(Vec<u8>, PushBy),
    Key(KeyPlan),
    /// HASH160 of a key.
    KeyHash(KeyPlan),
    Signature(SigPlan),
    /// Bytes that are inserted unchanged.
    Raw(Vec<u8>),
}

/// The opcode of a push.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PushBy {
    /// The shortest push, including OP_0 to OP_16 and OP_1NEGATE.
    Shortest,
    /// The shortest push with a length.
    Length,
    Data1,
    Data2,
    Data4,
}

impl PushBy {
    pub const ALL: [PushBy; 5] = [PushBy::Shortest, PushBy::Length, PushBy::Data1, PushBy::Data2, PushBy::Data4];
}

impl Token {
    /// A number in its shortest form.
    pub fn number(value: i64) -> Self {
        let (bytes, size) = num::encode(value);
        Self::Push(bytes[..size].to_vec(), PushBy::Shortest)
    }

    pub fn push(bytes: &[u8]) -> Self {
        Self::Push(bytes.to_vec(), PushBy::Length)
    }

    /// Returns the element that the token pushes, if it is a push. A signature has none before it is made.
    pub fn element(&self) -> Option<Vec<u8>> {
        match self {
            Self::Op(OP_0) => Some(Vec::new()),
            Self::Op(OP_1NEGATE) => Some(vec![0x81]),
            Self::Op(opcode @ OP_1..=OP_16) => Some(vec![opcode - OP_1 + 1]),
            Self::Op(_) | Self::Signature(_) | Self::Raw(_) => None,
            Self::Push(bytes, _) => Some(bytes.clone()),
            Self::Key(key) => Some(key.bytes()),
            Self::KeyHash(key) => Some(key.hash().to_vec()),
        }
    }

    /// Appends the token to a script. Signatures must have become a [`Token::Push`] before; others are skipped.
    pub fn encode(&self, script: &mut Vec<u8>) {
        match self {
            Self::Op(opcode) => script.push(*opcode),
            Self::Push(bytes, by) => encode_push(script, bytes, *by),
            Self::Key(key) => encode_push(script, &key.bytes(), PushBy::Length),
            Self::KeyHash(key) => encode_push(script, &key.hash(), PushBy::Length),
            Self::Signature(_) => {}
            Self::Raw(bytes) => script.extend_from_slice(bytes),
        }
    }
}

/// Encodes tokens to the bytes of a script.
pub fn encode(tokens: &[Token]) -> Vec<u8> {
    let mut script = Vec::new();
    tokens.iter().for_each(|token| token.encode(&mut script));
    script
}

/// Parses any script.
pub fn parse(script: &[u8]) -> Vec<Token> {
    let mut tokens = Vec::new();
    let mut start = 0;
    for op in ops(script) {
        let Ok(op) = op else {
            tokens.push(Token::Raw(script[start..].to_vec()));
            break;
        };
        start = op.end;
        let push = |by| Token::Push(op.push.to_vec(), by);
        tokens.push(match op.opcode {
            OP_0 => Token::Op(OP_0),
            OP_PUSHDATA1 => push(PushBy::Data1),
            OP_PUSHDATA2 => push(PushBy::Data2),
            OP_PUSHDATA4 => push(PushBy::Data4),
            1..OP_PUSHDATA1 => push(PushBy::Length),
            opcode => Token::Op(opcode),
        });
    }
    tokens
}

fn encode_push(script: &mut Vec<u8>, bytes: &[u8], by: PushBy) {
    let size = u32::try_from(bytes.len()).unwrap_or(u32::MAX).to_le_bytes();
    match by {
        PushBy::Shortest if bytes.len() <= 1 && !is_minimal_push(bytes, 1) => {
            let value = num::decode(bytes, false).unwrap_or_default();
            script.extend(ScriptBuilder::new().push_int(value).into_bytes());
            return;
        }
        PushBy::Shortest | PushBy::Length => {
            let (header, size) = push_header(bytes.len());
            script.extend_from_slice(&header[..size]);
        }
        PushBy::Data1 if bytes.len() < 0x100 => script.extend_from_slice(&[OP_PUSHDATA1, size[0]]),
        PushBy::Data1 | PushBy::Data2 if bytes.len() < 0x1_0000 => {
            script.extend_from_slice(&[OP_PUSHDATA2, size[0], size[1]]);
        }
        PushBy::Data1 | PushBy::Data2 | PushBy::Data4 => {
            script.push(OP_PUSHDATA4);
            script.extend_from_slice(&size);
        }
    }
    script.extend_from_slice(bytes);
}

#[cfg(test)]
mod tests {
    use super::super::random::Random;
    use super::*;

    #[test]
    fn scripts_come_back() {
        let mut random = Random::new(1, "tokens");
        for length in (0..3000).map(|i| i % 100) {
            let script = random.bytes(length);
            assert_eq!(encode(&parse(&script)), script);
        }
    }

    #[test]
    fn pushes_are_what_they_say() {
        for bytes in [vec![], vec![0], vec![1], vec![16], vec![17], vec![0x81], vec![7; 75], vec![7; 76], vec![7; 300]]
        {
            for by in PushBy::ALL {
                let script = encode(&[Token::Push(bytes.clone(), by)]);
                let op = ops(&script).next().unwrap().unwrap();
                assert_eq!(op.end, script.len());
                assert_eq!(Token::Op(op.opcode).element().unwrap_or(op.push.to_vec()), bytes, "{by:?}");
                assert!(by != PushBy::Shortest || op.opcode > 0x4e || is_minimal_push(&bytes, op.opcode));
            }
        }
    }
}
