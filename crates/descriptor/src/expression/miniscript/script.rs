//! Writes expressions as text and as scripts.
//!
//! Input: a fragment and its keys. Output: the shortest text, with the abbreviations that Core uses; the script; the
//! size of the script before it is built.

use super::super::key::Derived;
use super::types::has;
use super::{Fragment, Kind};
use lydian_hash::hash160;
use lydian_primitives::to_hex;
use lydian_script::ScriptBuilder;
use lydian_script::opcodes::*;

/// Size of the script in bytes.
pub(super) fn size(kind: Kind, k: u32, keys: usize, subs: &[Fragment], is_leaf: bool) -> usize {
    let inside: usize = subs.iter().map(|sub| sub.size).sum();
    let number = |number: i64| ScriptBuilder::new().push_int(number).into_bytes().len();
    let k = number(i64::from(k));
    match kind {
        Kind::Just0 | Kind::Just1 => 1,
        Kind::PkK => {
            if is_leaf {
                33
            } else {
                34
            }
        }
        Kind::PkH => 24,
        Kind::Older | Kind::After => 1 + k,
        Kind::Sha256 | Kind::Hash256 => 39,
        Kind::Ripemd160 | Kind::Hash160 => 27,
        Kind::Multi => 1 + number(i64::try_from(keys).unwrap_or(i64::MAX)) + k + 34 * keys,
        Kind::MultiA => 34 * keys + k + 1,
        Kind::AndV => inside,
        Kind::WrapV => inside + usize::from(subs.first().is_some_and(Fragment::is_verified_apart)),
        Kind::WrapS | Kind::WrapC | Kind::WrapN | Kind::AndB | Kind::OrB => inside + 1,
        Kind::WrapA | Kind::OrC => inside + 2,
        Kind::WrapD | Kind::OrD | Kind::OrI | Kind::AndOr => inside + 3,
        Kind::WrapJ => inside + 4,
        Kind::Thresh => inside + subs.len() + k,
    }
}

impl Fragment {
    /// Whether OP_VERIFY after it is a separate opcode.
    pub(super) fn is_verified_apart(&self) -> bool {
        has(self.kind_type, "x")
    }

    /// The text. `key` writes a key; its second argument is whether the script only contains the hash of the key.
    pub(crate) fn text(&self, key: &dyn Fn(usize, bool) -> String) -> String {
        self.write(false, key)
    }

    /// `is_wrapped`: wrapper letters precede it.
    fn write(&self, is_wrapped: bool, key: &dyn Fn(usize, bool) -> String) -> String {
        let colon = if is_wrapped { ":" } else { "" };
        let sub = |index: usize| self.subs[index].write(false, key);
        let wrapped = |letter: char, index: usize| format!("{letter}{}", self.subs[index].write(true, key));
        let is = |index: usize, kind: Kind| self.subs[index].kind == kind;
        let call = |name: &str, parts: Vec<String>| format!("{colon}{name}({})", parts.join(","));
        match self.kind {
            Kind::WrapA => wrapped('a', 0),
            Kind::WrapS => wrapped('s', 0),
            Kind::WrapC if is(0, Kind::PkK) => call("pk", vec![key(self.subs[0].keys[0], false)]),
            Kind::WrapC if is(0, Kind::PkH) => call("pkh", vec![key(self.subs[0].keys[0], true)]),
            Kind::WrapC => wrapped('c', 0),
            Kind::WrapD => wrapped('d', 0),
            Kind::WrapV => wrapped('v', 0),
            Kind::WrapJ => wrapped('j', 0),
            Kind::WrapN => wrapped('n', 0),
            Kind::AndV if is(1, Kind::Just1) => wrapped('t', 0),
            Kind::OrI if is(0, Kind::Just0) => wrapped('l', 1),
            Kind::OrI if is(1, Kind::Just0) => wrapped('u', 0),
            Kind::PkK => call("pk_k", vec![key(self.keys[0], false)]),
            Kind::PkH => call("pk_h", vec![key(self.keys[0], true)]),
            Kind::After => call("after", vec![self.k.to_string()]),
            Kind::Older => call("older", vec![self.k.to_string()]),
            Kind::Hash256 => call("hash256", vec![to_hex(&self.data)]),
            Kind::Hash160 => call("hash160", vec![to_hex(&self.data)]),
            Kind::Sha256 => call("sha256", vec![to_hex(&self.data)]),
            Kind::Ripemd160 => call("ripemd160", vec![to_hex(&self.data)]),
            Kind::Just1 => format!("{colon}1"),
            Kind::Just0 => format!("{colon}0"),
            Kind::AndV => call("and_v", vec![sub(0), sub(1)]),
            Kind::AndB => call("and_b", vec![sub(0), sub(1)]),
            Kind::OrB => call("or_b", vec![sub(0), sub(1)]),
            Kind::OrC => call("or_c", vec![sub(0), sub(1)]),
            Kind::OrD => call("or_d", vec![sub(0), sub(1)]),
            Kind::OrI => call("or_i", vec![sub(0), sub(1)]),
            Kind::AndOr if is(2, Kind::Just0) => call("and_n", vec![sub(0), sub(1)]),
            Kind::AndOr => call("andor", vec![sub(0), sub(1), sub(2)]),
            Kind::Multi | Kind::MultiA => {
                let keys = self.keys.iter().map(|index| key(*index, false));
                let name = if self.kind == Kind::Multi { "multi" } else { "multi_a" };
                call(name, [self.k.to_string()].into_iter().chain(keys).collect())
            }
            Kind::Thresh => {
                let subs = (0..self.subs.len()).map(sub);
                call("thresh", [self.k.to_string()].into_iter().chain(subs).collect())
            }
        }
    }

    /// The script with these keys.
    pub(in super::super) fn script(&self, keys: &[Derived]) -> Vec<u8> {
        self.build(ScriptBuilder::new(), keys, false).into_bytes()
    }

    /// Appends the script. `is_verified`: OP_VERIFY follows, which some opcodes include.
    fn build(&self, script: ScriptBuilder, keys: &[Derived], is_verified: bool) -> ScriptBuilder {
        let bytes = |index: usize| if self.is_leaf { keys[index].x_only() } else { &keys[index].key };
        let sub = |script, index: usize| self.subs[index].build(script, keys, false);
        let last = |plain: u8, verified: u8| if is_verified { verified } else { plain };
        let hash = |opcode: u8| {
            let script =
                ScriptBuilder::new().op(OP_SIZE).push_int(32).op(OP_EQUALVERIFY).op(opcode).push_slice(&self.data);
            script.op(last(OP_EQUAL, OP_EQUALVERIFY)).into_bytes()
        };
        match self.kind {
            Kind::Just0 => script.push_int(0),
            Kind::Just1 => script.push_int(1),
            Kind::PkK => script.push_slice(bytes(self.keys[0])),
            Kind::PkH => script.op(OP_DUP).op(OP_HASH160).push_slice(&hash160(bytes(self.keys[0]))).op(OP_EQUALVERIFY),
            Kind::Older => script.push_int(i64::from(self.k)).op(OP_CHECKSEQUENCEVERIFY),
            Kind::After => script.push_int(i64::from(self.k)).op(OP_CHECKLOCKTIMEVERIFY),
            Kind::Sha256 => script.raw(&hash(OP_SHA256)),
            Kind::Ripemd160 => script.raw(&hash(OP_RIPEMD160)),
            Kind::Hash256 => script.raw(&hash(OP_HASH256)),
            Kind::Hash160 => script.raw(&hash(OP_HASH160)),
            Kind::WrapA => sub(script.op(OP_TOALTSTACK), 0).op(OP_FROMALTSTACK),
            Kind::WrapS => self.subs[0].build(script.op(OP_SWAP), keys, is_verified),
            Kind::WrapC => sub(script, 0).op(last(OP_CHECKSIG, OP_CHECKSIGVERIFY)),
            Kind::WrapD => sub(script.op(OP_DUP).op(OP_IF), 0).op(OP_ENDIF),
            Kind::WrapV => {
                let script = self.subs[0].build(script, keys, true);
                if self.subs[0].is_verified_apart() { script.op(OP_VERIFY) } else { script }
            }
            Kind::WrapJ => sub(script.op(OP_SIZE).op(OP_0NOTEQUAL).op(OP_IF), 0).op(OP_ENDIF),
            Kind::WrapN => sub(script, 0).op(OP_0NOTEQUAL),
            Kind::AndV => self.subs[1].build(sub(script, 0), keys, is_verified),
            Kind::AndB => sub(sub(script, 0), 1).op(OP_BOOLAND),
            Kind::OrB => sub(sub(script, 0), 1).op(OP_BOOLOR),
            Kind::OrD => sub(sub(script, 0).op(OP_IFDUP).op(OP_NOTIF), 1).op(OP_ENDIF),
            Kind::OrC => sub(sub(script, 0).op(OP_NOTIF), 1).op(OP_ENDIF),
            Kind::OrI => sub(sub(script.op(OP_IF), 0).op(OP_ELSE), 1).op(OP_ENDIF),
            Kind::AndOr => sub(sub(sub(script, 0).op(OP_NOTIF), 2).op(OP_ELSE), 1).op(OP_ENDIF),
            Kind::Multi => {
                let start = script.push_int(i64::from(self.k));
                let script = self.keys.iter().fold(start, |script, index| script.push_slice(bytes(*index)));
                let count = i64::try_from(self.keys.len()).unwrap_or(i64::MAX);
                script.push_int(count).op(last(OP_CHECKMULTISIG, OP_CHECKMULTISIGVERIFY))
            }
            Kind::MultiA => {
                let mut script = script;
                for (place, index) in self.keys.iter().enumerate() {
                    script = script.push_slice(bytes(*index)).op(if place == 0 { OP_CHECKSIG } else { OP_CHECKSIGADD });
                }
                script.push_int(i64::from(self.k)).op(last(OP_NUMEQUAL, OP_NUMEQUALVERIFY))
            }
            Kind::Thresh => {
                let rest = 1..self.subs.len();
                let script = rest.fold(sub(script, 0), |script, index| sub(script, index).op(OP_ADD));
                script.push_int(i64::from(self.k)).op(last(OP_EQUAL, OP_EQUALVERIFY))
            }
        }
    }
}
