//! The methods `blockchain.block.*` and `blockchain.headers.*`: headers and their proofs.

use super::{Call, Method};
use crate::fault::Fault;
use crate::limits::HEADERS_MAX;
use crate::version::V1_6;
use crate::write::{Json, put, put_hash, put_hex, put_list};
use lydian_primitives::{Header, push_hex};
use lydian_query::MerkleProof;
use serde_json::Value;

pub(super) const METHODS: &[Method] = &[
    Method::new("blockchain.headers.subscribe", subscribe),
    Method::new("blockchain.headers.unsubscribe", unsubscribe),
    Method::new("blockchain.headers.get_tip", tip),
    Method::new("blockchain.header.get", get).takes(&["block_hash"], 1),
    Method::new("blockchain.block.header", header).takes(&["height", "cp_height"], 1),
    Method::new("blockchain.block.headers", headers).takes(&["start_height", "count", "cp_height"], 2),
];

fn subscribe(call: &Call<'_>) -> Result<Json, Fault> {
    call.session.subscribe_to_headers(call.shared);
    let (height, header) = call.shared.query.tip()?;
    call.session.is_new_header(&header.hash());
    Ok(tip_of(height, &header))
}

/// As in Fulcrum: whether there was a subscription.
fn unsubscribe(call: &Call<'_>) -> Result<Json, Fault> {
    Ok(call.session.unsubscribe_from_headers(call.shared).to_string().into_bytes())
}

/// As in Fulcrum: a header of the chain, by the hash or by the height of its block.
fn get(call: &Call<'_>) -> Result<Json, Fault> {
    let query = &call.shared.query;
    if call.params.value(0).is_some_and(Value::is_number) {
        let height = call.params.number(0)?;
        return Ok(tip_of(height, &query.header(height)?));
    }
    let hash = call.params.block_hash(0)?;
    let info = query.chain().block_info(&hash)?.filter(|info| info.is_active);
    let info = info.ok_or_else(|| Fault::bad(format!("no block of the chain has the hash {hash}")))?;
    Ok(tip_of(info.height, &info.header))
}

fn tip(call: &Call<'_>) -> Result<Json, Fault> {
    let (height, header) = call.shared.query.tip()?;
    Ok(tip_of(height, &header))
}

/// The form of a header with its height, such as a new tip.
pub(crate) fn tip_of(height: u32, header: &Header) -> Json {
    let mut out = b"{\"hex\":".to_vec();
    put_hex(&mut out, &header.to_bytes());
    put(&mut out, format_args!(",\"height\":{height}}}"));
    out
}

fn put_proof(out: &mut Json, proof: &MerkleProof) {
    out.extend_from_slice(b",\"branch\":");
    put_list(out, &proof.branch, put_hash);
    out.extend_from_slice(b",\"root\":");
    put_hash(out, &proof.root);
}

fn header(call: &Call<'_>) -> Result<Json, Fault> {
    let (height, last) = (call.params.number(0)?, call.params.number_or(1, 0)?);
    let header = call.shared.query.header(height)?;
    let mut out = Vec::new();
    if last == 0 {
        put_hex(&mut out, &header.to_bytes());
        return Ok(out);
    }
    let proof = call.shared.query.header_proof(height, last)?;
    out.extend_from_slice(b"{\"header\":");
    put_hex(&mut out, &header.to_bytes());
    put_proof(&mut out, &proof);
    out.push(b'}');
    Ok(out)
}

/// Headers that are answered: fewer than asked for, above the maximum.
fn count_of(asked: u32) -> usize {
    (asked as usize).min(HEADERS_MAX)
}

fn headers(call: &Call<'_>) -> Result<Json, Fault> {
    let (start, count, last) = (call.params.number(0)?, call.params.number(1)?, call.params.number_or(2, 0)?);
    let headers = call.shared.query.headers(start, count_of(count))?;
    let mut out = Vec::with_capacity(headers.len() * 164 + 128);
    put(&mut out, format_args!("{{\"count\":{},\"max\":{HEADERS_MAX}", headers.len()));
    if call.version < V1_6 {
        out.extend_from_slice(b",\"hex\":\"");
        headers.iter().for_each(|header| push_hex(&mut out, &header.to_bytes()));
        out.push(b'"');
    } else {
        out.extend_from_slice(b",\"headers\":");
        put_list(&mut out, &headers, |out, header| put_hex(out, &header.to_bytes()));
    }
    if last != 0
        && let Some(above) = u32::try_from(headers.len()).ok().filter(|count| *count > 0)
    {
        put_proof(&mut out, &call.shared.query.header_proof(start + above - 1, last)?);
    }
    out.push(b'}');
    Ok(out)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// limit: HEADERS_MAX at
    /// limit: HEADERS_MAX above
    #[test]
    fn an_answer_has_a_bounded_number_of_headers() {
        assert_eq!([0, 2_016, 2_017, u32::MAX].map(count_of), [0, 2_016, 2_016, 2_016]);
    }
}
