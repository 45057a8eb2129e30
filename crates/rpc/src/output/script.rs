//! Scripts as JSON: Core's `ScriptToUniv` (core_io.cpp).
//!
//! Input: an output script. Output: text.

use lydian_consensus::Chain;
use lydian_descriptor::{address, solve, write_asm, write_inferred};
use lydian_primitives::push_hex;

/// An output script: `{"asm", "desc", "hex", "address", "type"}`.
pub(crate) fn write_script(script: &[u8], chain: Chain, out: &mut Vec<u8>) {
    let kind = solve(script);
    let address = address::encode(&kind, chain);
    out.extend_from_slice(b"{\"asm\":\"");
    write_asm(script, false, out);
    out.extend_from_slice(b"\",\"desc\":\"");
    write_inferred(script, &kind, address.as_deref(), out);
    out.extend_from_slice(b"\",\"hex\":\"");
    push_hex(out, script);
    if let Some(address) = address {
        out.extend_from_slice(b"\",\"address\":\"");
        out.extend_from_slice(address.as_bytes());
    }
    out.extend_from_slice(b"\",\"type\":\"");
    out.extend_from_slice(kind.name().as_bytes());
    out.extend_from_slice(b"\"}");
}
