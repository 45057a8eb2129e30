//! Where tests find their data; included by every test that reads any. `testdata/` is always there. The larger data lie
//! in the folder that `LYDIAN_SHARED` names, `../shared` otherwise; what is missing there is named and not run.

use std::path::{Path, PathBuf};

/// The folder of the checkout.
pub(crate) fn workspace() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).ancestors().nth(2).map_or_else(PathBuf::new, Path::to_path_buf)
}

/// A file or folder under `testdata/`.
pub(crate) fn testdata(path: &str) -> PathBuf {
    workspace().join("testdata").join(path)
}

/// A file or folder of the larger data. When it is absent that is said, and the answer is `None`.
pub(crate) fn shared(path: &str) -> Option<PathBuf> {
    let root = std::env::var_os("LYDIAN_SHARED").map_or_else(|| workspace().join("../shared"), PathBuf::from);
    let found = root.join(path);
    if found.exists() {
        return Some(found);
    }
    report(&format!(
        "NOT RUN: {path} is missing in the folder of larger test data, {} (set LYDIAN_SHARED)",
        root.display()
    ));
    None
}

/// Says something that must be seen of a test that passes, too: past the capture of the test harness.
pub(crate) fn report(line: &str) {
    let written = std::io::Write::write_all(&mut std::io::stderr(), format!("{line}\n").as_bytes());
    written.unwrap_or_else(|error| panic!("standard error: {error}"));
}

/// The files of a folder in the order of their names.
pub(crate) fn files(folder: &Path) -> Vec<PathBuf> {
    let entries = std::fs::read_dir(folder).unwrap_or_else(|error| panic!("{}: {error}", folder.display()));
    let mut files: Vec<_> = entries.filter_map(|entry| entry.ok().map(|entry| entry.path())).collect();
    files.sort();
    files
}

/// The bytes of a file, decompressed if its name ends in `.zst`.
#[allow(clippy::disallowed_methods, reason = "tests read their data themselves")]
pub(crate) fn read(path: &Path) -> Vec<u8> {
    let bytes = std::fs::read(path).unwrap_or_else(|error| panic!("{}: {error}", path.display()));
    if path.extension().is_some_and(|ext| ext == "zst") {
        return zstd::decode_all(&bytes[..]).unwrap_or_else(|error| panic!("{}: {error}", path.display()));
    }
    bytes
}

/// The blocks of a file in the format of Core's block files: magic, length, block.
pub(crate) fn blocks_of(mut file: &[u8], magic: [u8; 4]) -> Vec<&[u8]> {
    let mut blocks = Vec::new();
    while let Some((head, rest)) = file.split_first_chunk::<8>() {
        let (found, length) = head.split_at(4);
        assert_eq!(found, magic);
        let length = length.iter().rev().fold(0, |length, byte| length << 8 | usize::from(*byte));
        let (block, rest) = rest.split_at(length);
        blocks.push(block);
        file = rest;
    }
    assert!(file.is_empty(), "bytes after the last block");
    blocks
}
