//! `lydian verify` as a user runs it: real blocks, every kind of bad input with its error and its exit code, and the
//! JSON document.
#![allow(
    clippy::unwrap_used,
    clippy::disallowed_methods,
    reason = "a test fails by panicking, and makes its own files"
)]

mod fields;

use fields::keys;
use lydian_primitives::build::{MutBlock, MutInput, MutOutput, MutTx};
use lydian_primitives::{Amount, BlockHash, Header, OutPoint};
use serde_json::Value;
use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

const MAGIC: [u8; 4] = [0xf9, 0xbe, 0xb4, 0xd9];

fn testdata(path: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../testdata/blocks").join(path)
}

/// Runs the program; returns stdout, stderr and the exit code.
fn lydian(directory: &Path, arguments: &[&str]) -> (String, String, i32) {
    let mut command = Command::new(env!("CARGO_BIN_EXE_lydian"));
    let Output { stdout, stderr, status } = command.current_dir(directory).args(arguments).output().unwrap();
    (String::from_utf8(stdout).unwrap(), String::from_utf8(stderr).unwrap(), status.code().unwrap())
}

fn json(directory: &Path, arguments: &[&str]) -> (Value, i32) {
    let (out, err, code) = lydian(directory, &[&["verify", "--json"], arguments].concat());
    assert_eq!(err, "", "nothing beside the document");
    (serde_json::from_str(&out).unwrap(), code)
}

/// A fresh directory below the test's own.
fn scratch(name: &str) -> PathBuf {
    let path = Path::new(env!("CARGO_TARGET_TMPDIR")).join(name);
    let _ = std::fs::remove_dir_all(&path);
    std::fs::create_dir_all(&path).unwrap();
    path
}

/// The records of the first `count` blocks of mainnet.
fn mainnet(count: usize) -> Vec<Vec<u8>> {
    let packed = std::fs::read(testdata("runs/main_000000_004312.blk.zst")).unwrap();
    let mut rest = &zstd::stream::decode_all(&packed[..]).unwrap()[..];
    let mut records = Vec::new();
    while records.len() < count {
        let length = u32::from_le_bytes(rest[4..8].try_into().unwrap()) as usize;
        let (record, later) = rest.split_at(8 + length);
        records.push(record.to_vec());
        rest = later;
    }
    records
}

/// Writes the file and verifies it; checks the exit code and parts of the output (PATH stands for the file).
fn check(name: &str, bytes: &[u8], code: i32, expected: &[&str]) {
    let directory = scratch(&format!("bad-{name}"));
    std::fs::write(directory.join(name), bytes).unwrap();
    let (out, err, found) = lydian(&directory, &["verify", name]);
    assert_eq!(found, code, "{out}{err}");
    for part in expected {
        assert!(out.contains(&part.replace("PATH", name)), "'{part}' is not in\n{out}");
    }
    assert!(!out.contains('\x1b') && !err.contains('\x1b'), "no colours without a terminal");
    assert!(!err.contains("panicked"), "{err}");
}

fn flipped(records: &[Vec<u8>], record: usize, offset: usize) -> Vec<u8> {
    let mut records = records.to_vec();
    records[record][offset] ^= 1;
    records.concat()
}

#[test]
fn real_blocks_are_valid_and_counted() {
    let root = testdata("");
    let (report, code) = json(&root, &[".", "--expect-invalid", "./invalid"]);
    assert_eq!((code, &report["verdict"]), (0, &Value::from("valid")));
    let items = report["items"].as_array().unwrap();
    let of_kind = |kind: &str| items.iter().filter(|item| item["kind"] == kind).collect::<Vec<_>>();
    let chains: Vec<_> =
        of_kind("chain").iter().map(|item| (item["chain"].clone(), item["tip"]["height"].clone())).collect();
    let expected = [("main", 4312), ("signet", 120), ("test", 4000)];
    assert_eq!(chains, expected.map(|(chain, height)| (Value::from(chain), Value::from(height))));
    let blocks = of_kind("block");
    let with_prevouts: Vec<_> = blocks.iter().filter(|item| !item["prevouts_file"].is_null()).collect();
    assert_eq!((blocks.len(), with_prevouts.len()), (30, 29));
    assert!(with_prevouts.iter().all(|item| item["decided"].as_array().unwrap().len() >= 34));
    // From MANIFEST: 247 inputs in mainnet's first blocks, each with one signature.
    let main = of_kind("chain")[0];
    assert_eq!((&main["totals"]["inputs"], &main["totals"]["ecdsa_checks"]), (&Value::from(247), &Value::from(247)));
    let inputs: u64 = with_prevouts.iter().map(|item| item["totals"]["inputs"].as_u64().unwrap()).sum();
    assert_eq!(inputs, 74_841);
}

#[test]
fn the_overflow_block_of_2010_is_refused_for_its_reason() {
    let (report, code) = json(&testdata(""), &["invalid"]);
    assert_eq!(code, 1);
    let violation = &report["items"][0]["violation"];
    assert_eq!(violation["reject_reason"], "bad-txns-vout-toolarge");
    assert_eq!((&violation["height"], &violation["transaction"]), (&Value::from(74_638), &Value::from(1)));
    let (out, _, code) = lydian(&testdata(""), &["verify", "invalid"]);
    assert_eq!(code, 1);
    for part in
        ["INVALID", "74638", "An output's value MUST NOT exceed", "CVE-2010-5139", "1d5e512a9723cbef373b970eb52f1e95"]
    {
        assert!(out.contains(part), "{part}\n{out}");
    }
    // A block that is expected to break a rule and does not is as bad.
    let (out, _, code) = lydian(&testdata(""), &["verify", "--expect-invalid", "runs/signet_000000_000120.blk.zst"]);
    assert_eq!(code, 1);
    assert!(out.contains("1 item should have been refused but passed"), "{out}");
}

#[test]
fn files_that_cannot_be_read() {
    let records = mainnet(100);
    let whole = records.concat();
    check("empty.blk", b"", 2, &["PATH: the file is empty"]);
    check("empty.block", b"", 2, &["PATH: the file is empty, and should hold one block"]);
    check(
        "text.blk",
        b"no blocks here",
        2,
        &["PATH:0: the file begins with 6e6f20626c6f636b and no block of a known chain"],
    );
    check("text.md", b"no blocks here", 2, &["PATH:0: the file begins with 6e6f20626c6f636b"]);
    check("text.block", b"no blocks here", 2, &["PATH:4: the file does not hold one block"]);
    check("torn.blk", &whole[..whole.len() - 20], 2, &["heights 0 to 98", "PATH:22161: the last block is cut off"]);
    let packed = zstd::stream::encode_all(&whole[..], 3).unwrap();
    check("whole.blk.zst", &packed, 0, &["heights 0 to 99"]);
    check("cut.blk.zst", &packed[..packed.len() / 2], 2, &["PATH:", "the zstd data ends in the middle of a frame"]);
    check("text.blk.zst", b"this is not compressed", 2, &["PATH:", "this is not valid zstd data"]);

    let directory = scratch("unreadable");
    std::fs::write(directory.join("file"), b"x").unwrap();
    std::fs::create_dir(directory.join("nothing")).unwrap();
    for (path, sentence) in [
        ("none", "none: there is no such file or directory"),
        ("file/inside", "file/inside: a part of this path is a file, not a directory"),
        ("nothing", "nothing: there is nothing to verify here"),
        ("/dev/null", "/dev/null: this is neither a file nor a directory"),
    ] {
        let (out, _, code) = lydian(&directory, &["verify", path]);
        assert_eq!(code, 2, "{out}");
        assert!(out.contains(sentence), "{out}");
    }
}

#[test]
fn bytes_between_blocks_are_reported() {
    let records = mainnet(100);
    let (first, rest) = (records[..50].concat(), records[50..].concat());
    let foreign = "PATH:11220: 7 bytes that belong to no block were skipped (they begin with 666f726569676e)";
    check("foreign.blk", &[&first[..], b"foreign", &rest].concat(), 0, &["heights 0 to 99", foreign]);
    check("zeros.blk", &[&first[..], &[0; 9], &rest].concat(), 0, &["heights 0 to 99", "PATH:11220: 9 zero bytes"]);
    check("padded.blk", &[&first[..], &rest, &[0; 9999]].concat(), 0, &["heights 0 to 99"]);
    let mut reversed = records.clone();
    reversed.reverse();
    check("reversed.blk", &reversed.concat(), 0, &["heights 0 to 99"]);
    check("twice.blk", &[&first[..], &records[20], &rest].concat(), 0, &["is a duplicate of the one at PATH:4538"]);
    let without = [&first[..], &records[51..].concat()].concat();
    check(
        "missing.blk",
        &without,
        2,
        &["heights 0 to 49", "PATH:11228: block ", "in none of the files; it and the 48 blocks"],
    );
    let test = std::fs::read(testdata("runs/test3_000000_004000.blk.zst")).unwrap();
    let test = zstd::stream::decode_all(&test[..]).unwrap();
    let other = [&first[..], &test[..1000], &rest].concat();
    check("other.blk", &other, 2, &["heights 0 to 99", "PATH:11220: 1000 bytes were skipped", "another chain: test"]);

    let directory = scratch("wrong-chain");
    std::fs::write(directory.join("a.blk"), &first).unwrap();
    let (out, _, code) = lydian(&directory, &["verify", "a.blk", "--chain", "signet"]);
    assert_eq!(code, 2);
    assert!(out.contains("hold blocks of another chain: main, whose magic is f9beb4d9"), "{out}");
    assert!(out.contains("a.blk: there is no block of signet in this file"), "{out}");
}

#[test]
fn flipped_bits_are_found() {
    let records = mainnet(100);
    let flip = |offset| flipped(&records, 60, offset);
    check(
        "magic.blk",
        &flip(0),
        2,
        &["heights 0 to 59", "PATH:13452: 224 bytes that belong to no block", "which is in none of the files"],
    );
    check("length.blk", &flip(7), 2, &["heights 0 to 59", "a block of 16777432 bytes is announced there"]);
    check("version.blk", &flip(8), 1, &["INVALID", "height 60", "high-hash", "PATH:13460"]);
    check("parent.blk", &flip(20), 2, &["PATH:13460: block", "which is in none of the files"]);
    check("merkle.blk", &flip(50), 1, &["INVALID", "high-hash"]);
    check("body.blk", &flip(150), 1, &["INVALID", "height 60", "bad-txnmrklroot", "39 blocks on an invalid"]);
    let mut short = records.clone();
    short[60].truncate(8 + 212);
    short[60][4] = 212;
    check("short.blk", &short.concat(), 2, &["PATH:13460: block ", "does not parse: 4 bytes are missing at byte 212"]);
    // A damaged copy before an intact one does no harm.
    let healed = [&flip(150)[..], &records[60]].concat();
    check("healed.blk", &healed, 0, &["heights 0 to 99", "this copy of block", "a later copy is whole"]);
}

#[test]
fn cores_directory_is_read_with_its_key() {
    let directory = scratch("core");
    let blocks = directory.join("blocks");
    std::fs::create_dir(&blocks).unwrap();
    let key = [0x5a, 1, 2, 3, 4, 5, 6, 7];
    let hide = |records: &[Vec<u8>]| {
        let mut bytes = [records.concat(), vec![0; 100]].concat();
        bytes.iter_mut().enumerate().for_each(|(at, byte)| *byte ^= key[at % 8]);
        bytes
    };
    let records = mainnet(100);
    std::fs::write(blocks.join("xor.dat"), key).unwrap();
    std::fs::write(blocks.join("blk00000.dat"), hide(&records[30..])).unwrap();
    std::fs::write(blocks.join("blk00001.dat"), hide(&records[..30])).unwrap();
    std::fs::write(blocks.join("rev00000.dat"), b"undo").unwrap();
    let (out, _, code) = lydian(&directory, &["verify", "blocks"]);
    assert_eq!(code, 0, "{out}");
    assert!(out.contains("heights 0 to 99  blocks/blk00000.dat ... blocks/blk00001.dat (2 files)"), "{out}");
    std::fs::write(blocks.join("xor.dat"), &key[..3]).unwrap();
    let (out, _, code) = lydian(&directory, &["verify", "blocks"]);
    assert_eq!(code, 2);
    assert!(out.contains("blocks/xor.dat: the key has 3 bytes, not 8"), "{out}");
}

#[test]
fn single_blocks_and_their_spent_outputs() {
    let name = "main-000170-00000000d1145790a8694403d4063f323d499e655c83426834d4ce2f8dd4a2ee";
    let unpack = |ending: &str| {
        let packed = std::fs::read(testdata(&format!("with_prevouts/{name}.{ending}.zst"))).unwrap();
        zstd::stream::decode_all(&packed[..]).unwrap()
    };
    let (block, prevouts) = (unpack("block"), unpack("prevouts"));
    let directory = scratch("single");
    let write = |name: &str, bytes: &[u8]| std::fs::write(directory.join(name), bytes).unwrap();
    let expect = |arguments: &[&str], code: i32, parts: &[&str]| {
        let (out, err, found) = lydian(&directory, &[&["verify"], arguments].concat());
        assert_eq!(found, code, "{arguments:?}\n{out}{err}");
        for part in parts {
            assert!(out.contains(part) || err.contains(part), "'{part}' is not in\n{out}{err}");
        }
    };
    write("a.block", &block);
    write("b.prevouts", &prevouts);
    expect(&["a.block", "b.prevouts"], 2, &["a.block: its height is not known"]);
    expect(&["a.block", "b.prevouts", "--height", "170"], 0, &["2 tx, 1 input; 35 of 42 rules"]);
    expect(&["a.block", "--verbose"], 0, &["bad-cb-amount: needs the coins that the block spends"]);
    expect(&["b.prevouts"], 2, &["b.prevouts: the block that spends these outputs is missing"]);
    expect(&["a.block", "--height", "1", "--chain", "nochain"], 2, &["unknown chain 'nochain'"]);

    write("a.prevouts", &prevouts[..prevouts.len() - 1]);
    expect(
        &["a.block", "--height", "170"],
        2,
        &["a.prevouts:13: the file does not hold spent outputs: 1 bytes are missing"],
    );
    write("a.prevouts", &[&prevouts[..], &prevouts].concat());
    expect(&["a.block", "--height", "170"], 2, &["a.prevouts: the block spends 1 outputs, but 2 are given"]);
    let mut poor = prevouts.clone();
    poor[1] = 0;
    write("a.prevouts", &poor);
    expect(
        &["a.block", "--height", "170"],
        1,
        &["bad-txns-in-belowout", "transaction  1, f4184fc596403b9d638783cf57adfe4c"],
    );
    let mut key = prevouts.clone();
    key[40] ^= 1;
    write("a.prevouts", &key);
    let failed = [
        "block-script-verify-flag-failed",
        "input        0, spends 0437cd7f8525ceed2324359c2d0ba26006d92d856a9c20fa0241106ee5a597c9:0",
    ];
    expect(&["a.block", "--height", "170"], 1, &failed);

    write("cut.bin", &block[..block.len() - 9]);
    expect(&["cut.bin"], 2, &["cut.bin:", "the file does not hold one block: 5 bytes are missing"]);
    let wrong = name.replace("d1145790", "d1145791");
    write(&format!("{wrong}.bin"), &block);
    expect(
        &[&format!("{wrong}.bin")],
        2,
        &["the name says block 00000000d1145791", "the content is block 00000000d1145790"],
    );
    write("c.bin", &block);
    expect(&["a.block", "c.bin", "--height", "170"], 2, &["--height is the height of one block"]);
    expect(
        &["c.bin", "--testactivationheight", "segwit"],
        2,
        &["Invalid format (segwit) for -testactivationheight=name@height."],
    );
}

/// limit: VIOLATIONS_MAX at
/// limit: VIOLATIONS_MAX above
#[test]
fn violations_are_limited_and_counted() {
    let directory = scratch("violations");
    let records = mainnet(2);
    for (count, kept, left_out) in [(1_000, 1_000, 0), (1_001, 1_000, 1)] {
        // Blocks on genesis without transactions and without work, distinguished by their nonce.
        let mut file = records[0].clone();
        for nonce in 0..count {
            let mut block = records[1][8..88].to_vec();
            block[76..80].copy_from_slice(&u32::to_le_bytes(nonce));
            block.push(0);
            file.extend_from_slice(&MAGIC);
            file.extend_from_slice(&81u32.to_le_bytes());
            file.extend_from_slice(&block);
        }
        std::fs::write(directory.join("a.blk"), file).unwrap();
        let (report, code) = json(&directory, &["a.blk"]);
        assert_eq!(code, 1);
        let item = &report["items"][0];
        assert_eq!(item["violations"].as_array().unwrap().len(), kept);
        assert_eq!(item["violations_left_out"], left_out);
        assert_eq!(item["violations"][0]["rule"], "high-hash");
    }
}

/// A sealed regtest block with only a coinbase: its hash and its record.
fn mined(prev_block: BlockHash, height: u8, tag: u8) -> (BlockHash, Vec<u8>) {
    let script_sig = vec![0x50 + height, tag];
    let input = MutInput { prevout: OutPoint::NULL, script_sig, sequence: u32::MAX, witness: Vec::new() };
    let output = MutOutput { value: Amount(50 * Amount::COIN.0), script_pubkey: vec![0x51] };
    let coinbase = MutTx { version: 2, inputs: vec![input], outputs: vec![output], lock_time: 0 };
    let time = 1_296_688_602 + u32::from(height);
    let header = Header { version: 0x2000_0000, prev_block, merkle_root: [0; 32], time, bits: 0x207f_ffff, nonce: 0 };
    let mut block = MutBlock { header, txs: vec![coinbase] };
    block.seal_on_regtest();
    let bytes = block.encode();
    let length = u32::try_from(bytes.len()).unwrap().to_le_bytes();
    (block.header.hash(), [&[0xfa, 0xbf, 0xb5, 0xda], &length[..], &bytes].concat())
}

#[test]
fn the_branch_with_most_work_wins_and_the_others_are_counted() {
    let genesis = "0f9188f13cb7b2c71f2a335e3a4fc328bf5beb436012afca590b1a11466e2206".parse().unwrap();
    let (first, a) = mined(genesis, 1, 1);
    let (other, b) = mined(genesis, 1, 2);
    let (tip, c) = mined(other, 2, 3);
    let directory = scratch("branches");
    // Without the genesis block, children before parents.
    std::fs::write(directory.join("a.blk"), [c.clone(), a.clone(), b].concat()).unwrap();
    let (report, code) = json(&directory, &["a.blk"]);
    let item = &report["items"][0];
    assert_eq!((code, item["tip"]["hash"].as_str().unwrap()), (0, &tip.to_string()[..]));
    assert_eq!((&item["blocks_off_chain"], &item["totals"]["blocks"]), (&Value::from(1), &Value::from(3)));
    assert_ne!(first, other);
    let (out, _, _) = lydian(&directory, &["verify", "a.blk"]);
    assert!(out.contains("off chain    1 block on branches without more work"), "{out}");
    // The same blocks before BIP-0034 is active, and with the parent of one missing.
    std::fs::write(directory.join("a.blk"), [c, a].concat()).unwrap();
    let (out, _, code) = lydian(&directory, &["verify", "a.blk", "--testactivationheight", "bip34@9"]);
    assert_eq!(code, 2);
    assert!(out.contains("heights 0 to 1 ") && out.contains(&format!("names parent {other}")), "{out}");
}

#[test]
fn the_document_has_the_fields_that_are_documented() {
    let page = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/formats/verify-json.md");
    let page = std::fs::read_to_string(page).unwrap();
    let directory = scratch("json");
    let records = mainnet(3);
    std::fs::write(directory.join("a.blk"), flipped(&records, 2, 150)).unwrap();
    let single = testdata(
        "with_prevouts/main-000170-00000000d1145790a8694403d4063f323d499e655c83426834d4ce2f8dd4a2ee.block.zst",
    );
    let (report, code) = json(&directory, &["a.blk", single.to_str().unwrap(), "none"]);
    assert_eq!((code, &report["exit_code"], &report["format"]), (1, &Value::from(1), &Value::from(1)));
    let mut written = BTreeSet::new();
    keys(&report, &mut written);
    // Every word in backticks in the first column of a table, or in the paragraph about totals, is a field.
    let mut documented = BTreeSet::new();
    for line in page.lines().filter(|line| line.starts_with("| `")) {
        let cell = line.split('|').nth(1).unwrap();
        documented.extend(cell.split('`').skip(1).step_by(2).map(str::to_owned));
    }
    let missing: Vec<_> = documented.difference(&written).collect();
    assert!(missing.is_empty(), "documented, not written: {missing:?}");
    let undocumented: Vec<_> = written.iter().filter(|key| !page.contains(&format!("`{key}`"))).collect();
    assert!(undocumented.is_empty(), "written, not documented: {undocumented:?}");
}
