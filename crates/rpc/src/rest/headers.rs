//! `/rest/headers/` and `/rest/blockhashbyheight/`: what the header tree has.

use super::reply::{Made, Refused, TEXT_TYPE};
use super::request::{Format, Request, hash_of, integer};
use crate::limits::REST_HEADERS_MAX;
use crate::output::HeaderAnswer;
use crate::result::{Answer, result};
use lydian_primitives::{BlockHash, HEADER_SIZE, Height};

/// The number of headers, if none is given.
const COUNT_DEFAULT: &[u8] = b"5";

/// Bytes of a header as JSON.
const HEADER_JSON_BYTES: usize = 900;

/// The count and the hash in the last parts of a path: `<hash>` with the argument `count`, or, as before that argument,
/// `<count>/<hash>`.
pub(super) fn header_path<'a>(request: &Request<'_>, parts: &[&'a str]) -> Option<(Vec<u8>, &'a str)> {
    match parts {
        [count, hash] => Some((count.as_bytes().to_vec(), hash)),
        [hash] => Some((request.argument("count").unwrap_or_else(|| COUNT_DEFAULT.to_vec()), hash)),
        _ => None,
    }
}

/// The number of headers that are asked for.
pub(super) fn header_count(count: &[u8]) -> Result<u32, Refused> {
    let number = integer::<u32>(count).filter(|number| (1..=REST_HEADERS_MAX).contains(number));
    number.ok_or_else(|| {
        let words = format!("Header count is invalid or out of acceptable range (1-{REST_HEADERS_MAX}): ");
        Refused::bad([words.as_bytes(), count].concat())
    })
}

/// Core's `rest_headers`.
pub(super) fn headers(request: &Request<'_>) -> Result<Made, Refused> {
    let engine = request.engine()?;
    let Some((count, hash)) = header_path(request, &request.parts()) else {
        return Err(Refused::bad("Invalid URI format. Expected /rest/headers/<hash>.<ext>?count=<count>"));
    };
    let count = header_count(&count)?;
    let hash: BlockHash = hash_of(hash)?;
    let headers = engine.active_infos(&hash, usize::try_from(count).unwrap_or(usize::MAX));
    let bytes = || {
        let mut bytes = Vec::with_capacity(headers.len() * HEADER_SIZE);
        headers.iter().for_each(|info| bytes.extend_from_slice(&info.node.header.to_bytes()));
        bytes
    };
    request.reply(bytes, |out| {
        request.expect_bytes(headers.len() * HEADER_JSON_BYTES)?;
        let mut answers = Vec::with_capacity(headers.len());
        for info in &headers {
            let tx_count = engine.transaction_count(info.id).map_err(|error| Refused::Failed(error.to_string()))?;
            answers.push(HeaderAnswer::new(info, tx_count.unwrap_or(0), engine.params()));
        }
        answers.write(out);
        Ok(())
    })
}

result! {
    struct HashAnswer {
        blockhash: BlockHash,
    }
}

/// Core's `rest_blockhash_by_height`.
pub(super) fn hash_by_height(request: &Request<'_>) -> Result<Made, Refused> {
    let engine = request.engine()?;
    let height = integer::<i32>(request.path.as_bytes()).and_then(|height| u32::try_from(height).ok());
    let height = height.ok_or_else(|| Refused::bad(format!("Invalid height: {}", sanitized(request.path))))?;
    let hash = engine.hash_at(Height(height)).ok_or_else(|| Refused::missing("Block height out of range"))?;
    if request.format == Format::Hex {
        // In the displayed order, unlike the bytes.
        return Ok(Made::new(TEXT_TYPE, format!("{hash}\n").into_bytes()));
    }
    request.reply(
        || hash.0.to_vec(),
        |out| {
            HashAnswer { blockhash: hash }.write(out);
            Ok(())
        },
    )
}

/// The characters of Core's `SAFE_CHARS_URI` that are neither letters nor digits.
const SAFE_IN_URI: &str = "!*'();:@&=+$,/?#[]-_.~%";

/// Core's `SanitizeString` for URIs.
fn sanitized(text: &str) -> String {
    text.chars().filter(|char| char.is_ascii_alphanumeric() || SAFE_IN_URI.contains(*char)).collect()
}
