//! A data directory of a newer release: whatever file has the newer number, one sentence refuses it, and nothing is
//! written. Which files are refused is in docs/formats/README.md; those of the indexes are in the test `indexes` of
//! `rpc`, and Core's own formats in those of their stores.

use super::Place;
use lydian_disk::record::{Records, encode_record};
use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

/// Every file below a directory with its bytes; no lock, whose bytes say nothing.
fn contents(directory: &Path, found: &mut BTreeMap<PathBuf, Vec<u8>>) {
    for entry in fs::read_dir(directory).unwrap() {
        let path = entry.unwrap().path();
        match path.is_dir() {
            true => contents(&path, found),
            false => {
                found.insert(path.clone(), fs::read(&path).unwrap());
            }
        }
    }
}

/// The file with a number that is raised by one, and this number. A file that a node without a page or wallets does
/// not write is made here.
fn newer(name: &str, bytes: Option<Vec<u8>>, known: u32) -> Vec<u8> {
    let number = known + 1;
    let record = |payload: &[u8]| {
        let mut bytes = Vec::new();
        encode_record(payload, 0, &mut bytes);
        bytes
    };
    match (name, bytes) {
        ("blocks/owner" | "chainstate/owner", _) => format!("lydian {number}\nchain regtest\n").into_bytes(),
        ("blocks/index/index.log", Some(bytes)) => {
            let head = Records::read(&bytes, 0).next().unwrap().unwrap();
            let mut payload = head.to_vec();
            payload[12..16].copy_from_slice(&number.to_le_bytes());
            let mut changed = record(&payload);
            changed.extend_from_slice(&bytes[changed.len()..]);
            changed
        }
        ("chainstate/manifest", Some(mut bytes)) => {
            bytes[8..12].copy_from_slice(&number.to_le_bytes());
            bytes
        }
        ("mempool.dat", _) => [&u64::from(number).to_le_bytes()[..], &[0; 16]].concat(),
        ("history.dat", _) => record(format!("lydian history {number}\nslot 4096\n").as_bytes()),
        (name, Some(bytes)) if name.ends_with(".json") => {
            let text = String::from_utf8(bytes).unwrap();
            let changed = text.replacen(&format!("\"format\": {known}"), &format!("\"format\": {number}"), 1);
            assert_ne!(changed, text);
            changed.into_bytes()
        }
        (name, None) if name.ends_with(".json") => format!("{{\"new\":[],\"format\":{number}}}").into_bytes(),
        (name, _) => panic!("{name}: this test does not know how it says its number"),
    }
}

/// checklist: 95
#[test]
fn a_file_of_a_newer_format_is_refused_before_anything_is_written() {
    let place = Place::new("newer");
    assert_eq!(place.run(&["-stopafterblockimport"]).2, 0);
    let page = include_str!("../../../../docs/formats/README.md");
    let table = page.split("| store | file | number |").nth(1).unwrap().split("\n\n").next().unwrap();
    let mut count = 0;
    for row in table.lines().filter(|row| row.contains("| refused |")) {
        let cells: Vec<&str> = row.split('|').map(str::trim).collect();
        let name = cells[2].split('`').nth(1).unwrap();
        let known: u32 = cells[3].parse().unwrap();
        let path = place.chain_folder().join(name);
        let saved = fs::read(&path).ok();
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(&path, newer(name, saved.clone(), known)).unwrap();
        let mut before = BTreeMap::new();
        contents(&place.directory, &mut before);
        for (arguments, expected) in [
            (&["-stopafterblockimport"][..], 1),
            (&["-reindex"], 1),
            (&["-reindex-chainstate"], 1),
            (&["import", "."], 3),
            (&["utxohash"], 3),
            (&["info"], 3),
            (&["index", "status"], 3),
        ] {
            let (_, err, code) = place.run(arguments);
            let sentence = format!(
                "Error: {} has format {}, which a newer release of Lydian reads; this one ({}) reads formats up to {known}: \
                 start the newer release, or ",
                path.display(),
                known + 1,
                env!("CARGO_PKG_VERSION")
            );
            assert!(err.starts_with(&sentence) && err.lines().count() == 1, "{arguments:?}: {err}");
            assert_eq!(code, expected, "{arguments:?}: {err}");
            let mut after = BTreeMap::new();
            contents(&place.directory, &mut after);
            assert!(after == before, "{name} {arguments:?}: something was written");
        }
        match saved {
            Some(bytes) => fs::write(&path, bytes).unwrap(),
            None => fs::remove_file(&path).unwrap(),
        }
        count += 1;
    }
    assert!(count >= 9, "the table of the document was not found");
    assert_eq!(place.run(&["-stopafterblockimport"]).2, 0);
}
