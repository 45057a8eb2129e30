//! Bytes and hashes in answers.
//!
//! Input: bytes. Output: hex as JSON.

use crate::result::{Answer, Form};
use lydian_consensus::U256;
use lydian_primitives::{BlockHash, Txid, Wtxid, push_hex, push_hex_reversed};

/// Bytes in hex, in their order.
#[derive(Debug)]
pub(crate) struct Hex<T>(pub(crate) T);

impl<T: AsRef<[u8]>> Answer for Hex<T> {
    const FORM: Form = Form::Hex;

    fn write(&self, out: &mut Vec<u8>) {
        out.push(b'"');
        push_hex(out, self.0.as_ref());
        out.push(b'"');
    }
}

fn write_reversed(bytes: &[u8], out: &mut Vec<u8>) {
    out.push(b'"');
    push_hex_reversed(out, bytes);
    out.push(b'"');
}

impl Answer for BlockHash {
    const FORM: Form = Form::Hex;

    fn write(&self, out: &mut Vec<u8>) {
        write_reversed(&self.0, out);
    }
}

impl Answer for Txid {
    const FORM: Form = Form::Hex;

    fn write(&self, out: &mut Vec<u8>) {
        write_reversed(&self.0, out);
    }
}

impl Answer for Wtxid {
    const FORM: Form = Form::Hex;

    fn write(&self, out: &mut Vec<u8>) {
        write_reversed(&self.0, out);
    }
}

/// A target or a chain work, in the displayed order of hashes.
impl Answer for U256 {
    const FORM: Form = Form::Hex;

    fn write(&self, out: &mut Vec<u8>) {
        write_reversed(&self.to_le_bytes(), out);
    }
}
