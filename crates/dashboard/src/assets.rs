//! The files of the page, embedded in the program.
//!
//! Input: a path. Output: the file, with an `ETag`, so that a browser that has it asks only whether it is current. Our
//! scripts and sheets are served without comments and indentation, each line at its place.

use crate::guard::header;
use crate::reply::bytes;
use axum::http::StatusCode;
use axum::http::header::{CACHE_CONTROL, ETAG, HeaderMap, HeaderValue, IF_NONE_MATCH};
use axum::response::Response;
use lydian_hash::sha256;
use lydian_primitives::to_hex;
use std::sync::LazyLock;

const SCRIPT: &str = "text/javascript; charset=utf-8";
const STYLE: &str = "text/css; charset=utf-8";
const PAGE: &str = "text/html; charset=utf-8";
const PICTURE: &str = "image/svg+xml";

/// A file of the page.
#[derive(Debug)]
pub(crate) struct Asset {
    path: &'static str,
    kind: &'static str,
    bytes: &'static [u8],
}

macro_rules! assets {
    ($($path:literal $kind:ident $file:literal)*) => {
        const ASSETS: &[Asset] = &[$(
            Asset { path: $path, kind: $kind, bytes: include_bytes!(concat!("../assets/", $file)) },
        )*];
    };
}

assets! {
    "/" PAGE "index.html"
    "/assets/app.js" SCRIPT "app.js"
    "/assets/api.js" SCRIPT "api.js"
    "/assets/live.js" SCRIPT "live.js"
    "/assets/live-worker.js" SCRIPT "live-worker.js"
    "/assets/stream.js" SCRIPT "stream.js"
    "/assets/ui.js" SCRIPT "ui.js"
    "/assets/style.css" STYLE "style.css"
    "/assets/icon.svg" PICTURE "icon.svg"
    "/assets/panels/actions.js" SCRIPT "panels/actions.js"
    "/assets/panels/connect.js" SCRIPT "panels/connect.js"
    "/assets/panels/explorer.js" SCRIPT "panels/explorer.js"
    "/assets/panels/mempool.js" SCRIPT "panels/mempool.js"
    "/assets/panels/overview.js" SCRIPT "panels/overview.js"
    "/assets/panels/peer-fields.js" SCRIPT "panels/peer-fields.js"
    "/assets/panels/peers.js" SCRIPT "panels/peers.js"
    "/assets/charts.js" SCRIPT "charts.js"
    "/assets/vendor/uPlot.iife.min.js" SCRIPT "vendor/uPlot.iife.min.js"
    "/assets/panels/machine.js" SCRIPT "panels/machine.js"
    "/assets/panels/log.js" SCRIPT "panels/log.js"
    "/assets/panels/settings.js" SCRIPT "panels/settings.js"
    "/assets/panels/serving.js" SCRIPT "panels/serving.js"
    "/assets/panels/sync.js" SCRIPT "panels/sync.js"
    "/assets/panels/blocks.js" SCRIPT "panels/blocks.js"
    "/assets/panels/chain.js" SCRIPT "panels/chain.js"
    "/assets/panels/miners.js" SCRIPT "panels/miners.js"
}

/// Colours and common rules, which the lab's report has too.
static BASE: LazyLock<Asset> = LazyLock::new(|| {
    let sheet = lydian_style::root() + lydian_style::BASE;
    Asset { path: "/assets/base.css", kind: STYLE, bytes: sheet.into_bytes().leak() }
});

/// All files as they are served, with their tags.
static FILES: LazyLock<Vec<(Asset, String)>> = LazyLock::new(|| {
    let tagged = |asset: &Asset| {
        let is_ours = [SCRIPT, STYLE].contains(&asset.kind) && !asset.path.starts_with("/assets/vendor/");
        let text = std::str::from_utf8(asset.bytes).ok().filter(|_| is_ours);
        let bytes = text.map_or(asset.bytes, |text| lean(text).into_bytes().leak());
        (Asset { path: asset.path, kind: asset.kind, bytes }, format!("\"{}\"", &to_hex(&sha256(bytes))[..16]))
    };
    ASSETS.iter().chain([&*BASE]).map(tagged).collect()
});

/// A script or a sheet without its indentation and the lines that are comments. The other lines keep their numbers, so
/// that the places in a browser's messages are those of the file.
fn lean(text: &str) -> String {
    let is_comment = |line: &str| line.starts_with("//") || (line.starts_with("/*") && line.ends_with("*/"));
    let kept = text.lines().map(str::trim_start).map(|line| if is_comment(line) { "" } else { line });
    kept.flat_map(|line| [line, "\n"]).collect()
}

/// The file at a path, with its tag.
#[derive(Debug)]
pub(crate) struct Found(&'static Asset, &'static str);

pub(crate) fn find(path: &str) -> Option<Found> {
    FILES.iter().find(|(asset, _)| asset.path == path).map(|(asset, tag)| Found(asset, tag))
}

impl Found {
    pub(crate) fn answer(&self, headers: &HeaderMap) -> Response {
        let Found(asset, tag) = self;
        let is_current =
            header(headers, &IF_NONE_MATCH).is_some_and(|tags| tags.split(',').any(|one| one.trim() == *tag));
        let mut response = match is_current {
            true => bytes(StatusCode::NOT_MODIFIED, asset.kind, ""),
            false => bytes(StatusCode::OK, asset.kind, asset.bytes),
        };
        let headers = response.headers_mut();
        headers.insert(CACHE_CONTROL, HeaderValue::from_static("no-cache"));
        if let Ok(tag) = HeaderValue::from_str(tag) {
            headers.insert(ETAG, tag);
        }
        response
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::limits::ASSETS_SIZE_MAX;
    use std::path::Path;

    /// limit: ASSETS_SIZE_MAX at
    /// limit: ASSETS_SIZE_MAX above
    #[test]
    fn the_page_is_small() {
        let size: usize = FILES.iter().map(|(asset, _)| asset.bytes.len()).sum();
        let is_small = |size| size <= ASSETS_SIZE_MAX;
        assert!(is_small(size), "{size} bytes");
        assert!(is_small(ASSETS_SIZE_MAX) && !is_small(ASSETS_SIZE_MAX + 1));
    }

    #[test]
    fn every_file_is_served() {
        let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("assets");
        let mut folders = vec![root.clone()];
        while let Some(folder) = folders.pop() {
            for entry in std::fs::read_dir(folder).unwrap() {
                let path = entry.unwrap().path();
                if path.is_dir() {
                    folders.push(path);
                    continue;
                }
                let name = path.strip_prefix(&root).unwrap().to_str().unwrap();
                let at = if name == "index.html" { "/".to_owned() } else { format!("/assets/{name}") };
                assert!(name.ends_with(".md") || find(&at).is_some(), "{name}");
            }
        }
    }

    #[test]
    fn comments_and_indentation_are_left_out() {
        let text = "// A comment.\nconst a = {\n\t// Another.\n\tb: 'http://c',  // Not a line of its own.\n};\n/* A sheet. */\n";
        assert_eq!(lean(text), "\nconst a = {\n\nb: 'http://c',  // Not a line of its own.\n};\n\n");
        // No text spans lines, so that no text is changed.
        for asset in ASSETS.iter().filter(|asset| asset.kind == SCRIPT && !asset.path.contains("/vendor/")) {
            let lines = std::str::from_utf8(asset.bytes).unwrap().lines();
            let is_whole = |line: &str| line.matches('`').count().is_multiple_of(2) && !line.ends_with('\\');
            let broken = lines.enumerate().find(|(_, line)| !is_whole(line));
            assert_eq!(broken, None, "{}", asset.path);
        }
    }

    /// The files of others are unchanged: `assets/ORIGIN.md` has their hashes, and names each.
    #[test]
    fn the_files_of_others_have_their_origin() {
        let rows = include_str!("../assets/ORIGIN.md").lines().filter(|line| line.starts_with("| `vendor/"));
        let named: Vec<(&str, &str)> =
            rows.map(|row| (row.split('`').nth(1).unwrap(), row.rsplit('`').nth(1).unwrap())).collect();
        let vendor = ASSETS.iter().filter_map(|asset| Some((asset.path.strip_prefix("/assets/")?, asset.bytes)));
        let vendor: Vec<_> = vendor.filter(|(name, _)| name.starts_with("vendor/")).collect();
        assert_eq!(
            vendor.iter().map(|(name, _)| *name).collect::<Vec<_>>(),
            named.iter().map(|row| row.0).collect::<Vec<_>>()
        );
        for ((name, bytes), (_, hash)) in vendor.into_iter().zip(named) {
            assert_eq!(to_hex(&sha256(bytes)), hash, "{name}");
        }
    }

    #[test]
    fn a_current_file_is_not_sent_again() {
        let found = find("/assets/app.js").unwrap();
        let first = found.answer(&HeaderMap::new());
        assert_eq!(first.status(), StatusCode::OK);
        let mut headers = HeaderMap::new();
        headers.insert(IF_NONE_MATCH, first.headers()[ETAG].clone());
        assert_eq!(found.answer(&headers).status(), StatusCode::NOT_MODIFIED);
        headers.insert(IF_NONE_MATCH, HeaderValue::from_static("\"x\""));
        assert_eq!(found.answer(&headers).status(), StatusCode::OK);
    }
}
