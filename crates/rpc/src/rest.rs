//! REST, without a login: Core's `rest.cpp`, of which the paths of block filters are served.
//!
//! Input: a path with its query. Output: a status, a type and bytes, which are Core's. Paths: `/rest/blockfilter/` and
//! `/rest/blockfilterheaders/`, each as `.bin`, `.hex` and `.json`. Must never: answer before the warm-up is over.

use crate::context::Context;
use lydian_engine::Engine;
use lydian_index::{FILTERS_NAME, FilterReader};
use lydian_primitives::{BlockHash, Height, to_hex, write_compact_size};
use std::sync::Arc;

/// The most filter headers of a request: Core's `MAX_REST_HEADERS_RESULTS`.
pub(crate) const FILTER_HEADERS_MAX: u32 = 2_000;

/// The prefixes that are served.
pub(crate) const PREFIXES: [&str; 2] = [FILTER, FILTER_HEADERS];

const FILTER: &str = "/rest/blockfilter/";
const FILTER_HEADERS: &str = "/rest/blockfilterheaders/";

const TEXT_TYPE: &str = "text/plain";
const STILL_INDEXED: &str = "Filter not found. Block filters are still in the process of being indexed.";

/// An answer.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Reply {
    pub(crate) status: u16,
    /// Its `Content-Type`.
    pub(crate) kind: &'static str,
    pub(crate) body: Vec<u8>,
}

/// A status and a sentence, as in Core's `RESTERR`.
#[derive(Debug)]
struct Refused(u16, String);

impl Refused {
    fn bad(words: impl Into<String>) -> Refused {
        Refused(400, words.into())
    }

    fn missing(words: impl Into<String>) -> Refused {
        Refused(404, words.into())
    }
}

/// Core's `RESTResponseFormat`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Format {
    Undefined,
    Binary,
    Hex,
    Json,
}

const FORMATS: [(&str, Format); 4] =
    [("", Format::Undefined), ("bin", Format::Binary), ("hex", Format::Hex), ("json", Format::Json)];

/// Answers a request; `None` if the path is not served.
pub(crate) fn answer(context: &Context, uri: &str) -> Option<Reply> {
    let made = if let Some(rest) = uri.strip_prefix(FILTER) {
        filter(context, rest)
    } else {
        headers(context, uri.strip_prefix(FILTER_HEADERS)?)
    };
    Some(made.unwrap_or_else(|Refused(status, words)| Reply {
        status,
        kind: TEXT_TYPE,
        body: format!("{words}\r\n").into_bytes(),
    }))
}

/// Core's `ParseDataFormat`: the path without query and suffix, and the format.
fn format_of(part: &str) -> (&str, Format) {
    let path = part.rsplit_once('?').map_or(part, |(path, _)| path);
    let Some((before, suffix)) = path.rsplit_once('.') else { return (path, Format::Undefined) };
    match FORMATS.iter().find(|(name, _)| *name == suffix) {
        Some((_, format)) => (before, *format),
        None => (path, Format::Undefined),
    }
}

/// The value of an argument in the query.
fn query_value<'a>(part: &'a str, name: &str) -> Option<&'a str> {
    let (_, query) = part.split_once('?')?;
    query.split('&').filter_map(|pair| pair.split_once('=')).find(|(key, _)| *key == name).map(|(_, value)| value)
}

fn hash_of(text: &str) -> Result<BlockHash, Refused> {
    text.parse().map_err(|_| Refused::bad(format!("Invalid hash: {text}")))
}

fn ready(context: &Context) -> Result<Arc<Engine>, Refused> {
    let engine = context.check_ready().and_then(|()| context.engine());
    engine.map_err(|error| Refused(503, format!("Service temporarily unavailable: {}", error.message)))
}

/// The index of a type of filters.
fn index_of<'a>(context: &'a Context, name: &str) -> Result<&'a FilterReader, Refused> {
    if name != "basic" {
        return Err(Refused::bad(format!("Unknown filtertype {name}")));
    }
    let index = context.indexes().filters.as_ref();
    index.ok_or_else(|| Refused::bad(format!("Index is not enabled for filtertype {name}")))
}

fn reply(format: Format, bytes: &[u8], json: impl FnOnce() -> String) -> Result<Reply, Refused> {
    let (kind, body) = match format {
        Format::Binary => ("application/octet-stream", bytes.to_vec()),
        Format::Hex => (TEXT_TYPE, format!("{}\n", to_hex(bytes)).into_bytes()),
        Format::Json => ("application/json", format!("{}\n", json()).into_bytes()),
        Format::Undefined => {
            return Err(Refused::missing("output format not found (available: .bin, .hex, .json)"));
        }
    };
    Ok(Reply { status: 200, kind, body })
}

/// Core's `rest_block_filter`.
fn filter(context: &Context, part: &str) -> Result<Reply, Refused> {
    let engine = ready(context)?;
    let (path, format) = format_of(part);
    let [kind, hash] = path.split('/').collect::<Vec<_>>()[..] else {
        let words = "Invalid URI format. Expected /rest/blockfilter/<filtertype>/<blockhash>";
        return Err(Refused::bad(words));
    };
    let block = hash_of(hash)?;
    let index = index_of(context, kind)?;
    let info = engine.header_info(&block).ok_or_else(|| Refused::missing(format!("{hash} not found")))?;
    engine.wait_for_follower(FILTERS_NAME, engine.settled_tip().height);
    let found = index.filter_of(&engine, &block).map_err(|error| Refused(500, error.to_string()))?;
    let Some((filter, _)) = found else {
        return Err(Refused::missing(match info.node.is_verified {
            true => STILL_INDEXED,
            false => "Filter not found. Block was not connected to active chain.",
        }));
    };
    // The type, the hash of the block, and the filter with its length.
    let mut bytes = vec![0];
    bytes.extend_from_slice(&block.0);
    write_compact_size(&mut bytes, filter.len());
    bytes.extend_from_slice(&filter);
    reply(format, &bytes, || format!("{{\"filter\":\"{}\"}}", to_hex(&filter)))
}

/// Core's `rest_filter_header`.
fn headers(context: &Context, part: &str) -> Result<Reply, Refused> {
    let engine = ready(context)?;
    let (path, format) = format_of(part);
    let (kind, count, hash) = match path.split('/').collect::<Vec<_>>()[..] {
        // As it was before the argument `count`.
        [kind, count, hash] => (kind, count, hash),
        [kind, hash] => (kind, query_value(part, "count").unwrap_or("5"), hash),
        _ => {
            let words =
                "Invalid URI format. Expected /rest/blockfilterheaders/<filtertype>/<blockhash>.<ext>?count=<count>";
            return Err(Refused::bad(words));
        }
    };
    let is_number = !count.is_empty() && count.bytes().all(|byte| byte.is_ascii_digit());
    let number = count.parse::<u32>().ok().filter(|number| is_number && (1..=FILTER_HEADERS_MAX).contains(number));
    let number = number.ok_or_else(|| {
        let words = "Header count is invalid or out of acceptable range";
        Refused::bad(format!("{words} (1-{FILTER_HEADERS_MAX}): {count}"))
    })?;
    let block = hash_of(hash)?;
    let index = index_of(context, kind)?;
    let from = engine.header_info(&block).filter(|info| info.is_active);
    engine.wait_for_follower(FILTERS_NAME, engine.settled_tip().height);
    let mut headers: Vec<[u8; 32]> = Vec::new();
    if let Some(info) = from {
        let start = info.node.height;
        let last = Height(start.0.saturating_add(number - 1).min(info.tip.height.0));
        let to = engine.hash_at(last).ok_or_else(|| Refused::missing(STILL_INDEXED))?;
        let entries = index.entries_to(&engine, start, &to).map_err(|error| Refused(500, error.to_string()))?;
        let entries = entries.ok_or_else(|| Refused::missing(STILL_INDEXED))?;
        headers.extend(entries.iter().map(|entry| entry.header));
    }
    reply(format, &headers.concat(), || {
        // Shown as other hashes are.
        let shown = |header: &[u8; 32]| format!("\"{}\"", BlockHash(*header));
        format!("[{}]", headers.iter().map(shown).collect::<Vec<_>>().join(","))
    })
}
