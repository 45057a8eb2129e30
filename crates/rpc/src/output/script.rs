//! Output scripts as JSON: Core's `ScriptToUniv` (core_io.cpp).
//!
//! Input: scripts. Output: typed answers.

use super::hashes::Hex;
use crate::result::{Answer, Form, result};
use lydian_consensus::Chain;
use lydian_descriptor::{Address, OffCurve, solve, write_asm, write_inferred};

result! {
    /// An output script.
    pub(crate) struct ScriptAnswer<'a> {
        /// disassembly of the output script
        asm: Asm<'a>,
        /// inferred descriptor for the output
        desc: String,
        /// the raw output script bytes
        hex: Hex<&'a [u8]>,
        /// the Bitcoin address (only if a well-defined address exists)
        address: Option<String>,
        /// the type (one of: nonstandard, anchor, pubkey, pubkeyhash, scripthash, multisig, nulldata,
        /// witness_v0_scripthash, witness_v0_keyhash, witness_v1_taproot, witness_unknown)
        #[name("type")]
        kind: &'static str,
    }
}

impl<'a> ScriptAnswer<'a> {
    pub(crate) fn new(script: &'a [u8], chain: Chain) -> ScriptAnswer<'a> {
        ScriptAnswer::among(script, chain, None)
    }

    /// The same; `off_curve` is of scripts that include this one.
    pub(crate) fn among(script: &'a [u8], chain: Chain, off_curve: Option<&OffCurve>) -> ScriptAnswer<'a> {
        let kind = solve(script);
        let address = Address::of_type(&kind).map(|address| address.text(chain));
        let mut desc = Vec::new();
        write_inferred(script, &kind, address.as_deref(), off_curve, &mut desc);
        ScriptAnswer {
            asm: Asm { script, may_sign: false },
            desc: String::from_utf8(desc).unwrap_or_default(),
            hex: Hex(script),
            address,
            kind: kind.name(),
        }
    }
}

/// The operations of a script. `may_sign`: a push that looks like a signature is shown with its sighash type.
#[derive(Debug)]
pub(crate) struct Asm<'a> {
    pub(crate) script: &'a [u8],
    pub(crate) may_sign: bool,
}

impl Answer for Asm<'_> {
    const FORM: Form = Form::Text;

    fn write(&self, out: &mut Vec<u8>) {
        out.push(b'"');
        write_asm(self.script, self.may_sign, out);
        out.push(b'"');
    }
}

/// An output script that outlives its block.
#[derive(Debug)]
pub(crate) struct OwnedScript {
    bytes: Box<[u8]>,
    chain: Chain,
    /// Replaces the descriptor of the script alone.
    desc: Option<String>,
}

impl OwnedScript {
    pub(crate) fn new(bytes: impl Into<Box<[u8]>>, chain: Chain) -> OwnedScript {
        OwnedScript { bytes: bytes.into(), chain, desc: None }
    }

    /// With a descriptor that says more than the script alone, if there is one.
    pub(crate) fn described(self, desc: Option<String>) -> OwnedScript {
        OwnedScript { desc, ..self }
    }

    fn answer(&self) -> ScriptAnswer<'_> {
        let answer = ScriptAnswer::new(&self.bytes, self.chain);
        match &self.desc {
            Some(desc) => ScriptAnswer { desc: desc.clone(), ..answer },
            None => answer,
        }
    }
}

impl Answer for OwnedScript {
    const FORM: Form = ScriptAnswer::FORM;

    fn write(&self, out: &mut Vec<u8>) {
        self.answer().write(out);
    }

    fn write_fields(&self, out: &mut Vec<u8>) {
        self.answer().write_fields(out);
    }
}
