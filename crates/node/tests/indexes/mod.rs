//! `lydian index`: the state of the indexes, their comparison with a rebuild, and their removal.

use super::fields::keys;
use super::{MIX, MIX_HEIGHT, Place};
use lydian_chains::presets::empty;
use rustix::process::Signal;
use serde_json::Value;
use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

/// All indexes.
const ALL: [&str; 5] = ["-txindex", "-txospenderindex", "-addressindex=full", "-blockfilterindex", "-coinstatsindex"];

const NAMES: [&str; 3] = ["tables", "blockfilter", "coinstats"];

/// Longer than the indexes need for their blocks, on a busy machine or an emulated one.
const PATIENCE: Duration = Duration::from_secs(240);

/// Imports a chain with all indexes.
fn import(place: &Place, chain: &Path) {
    let (_, err, code) = place.run(&[&["import", chain.to_str().unwrap()][..], &ALL].concat());
    assert_eq!(code, 0, "{err}");
}

/// The files below a directory.
fn files(dir: &Path) -> BTreeMap<PathBuf, Vec<u8>> {
    let mut found = BTreeMap::new();
    for entry in fs::read_dir(dir).unwrap().map(Result::unwrap) {
        match entry.file_type().unwrap().is_dir() {
            true => found.extend(files(&entry.path())),
            false => drop(found.insert(entry.path(), fs::read(entry.path()).unwrap())),
        }
    }
    found
}

fn indexes(place: &Place) -> PathBuf {
    place.chain_folder().join("indexes")
}

fn status(place: &Place, name: &str) -> Option<Value> {
    let status = place.json(&["index", "status"]);
    status["indexes"].as_array().unwrap().iter().find(|index| index["name"] == *name).cloned()
}

#[test]
fn the_state_of_every_index_is_printed() {
    let place = Place::new("index-status");
    let chain = place.directory.join("chain");
    empty::write(1_700, &chain).unwrap();
    let (_, err, code) = place.run(&["index", "status"]);
    assert_eq!((code, err.contains("there is no data directory")), (3, true), "{err}");
    import(&place, &chain);
    let status = place.json(&["index", "status"]);
    assert_eq!(status["is_running"], false);
    let indexes = status["indexes"].as_array().unwrap();
    assert_eq!(indexes.iter().map(|index| index["name"].as_str().unwrap()).collect::<Vec<_>>(), NAMES);
    for index in indexes {
        assert_eq!((&index["height"], &index["error"]), (&Value::from(1_700), &Value::Null));
        let files = index["files"].as_array().unwrap();
        let sum: u64 = files.iter().map(|files| files["bytes"].as_u64().unwrap()).sum();
        assert_eq!(index["bytes"], sum);
        let on_disk: usize = self::files(Path::new(index["directory"].as_str().unwrap())).values().map(Vec::len).sum();
        assert_eq!(sum, on_disk as u64);
    }
    let tables = &indexes[0];
    assert_eq!((&tables["transactions"], &tables["profile"]), (&Value::from(1_701), &Value::from("full")));
    let kinds: Vec<&str> =
        tables["files"].as_array().unwrap().iter().map(|files| files["kind"].as_str().unwrap()).collect();
    for kind in ["commit", "log", "numbers", "sizes", "blocks", "events", "lists", "positions", "txids"] {
        assert!(kinds.contains(&kind), "{kinds:?}");
    }
    assert!(tables["sealed_blocks"].as_u64().is_some_and(|blocks| blocks % 256 == 0), "{tables}");
    let (out, _, code) = place.run(&["index", "status"]);
    assert_eq!(code, 0);
    for text in ["no node runs", "profile full", "height 1,700 at the last checkpoint", "1,701 transactions"] {
        assert!(out.contains(text), "{text}: {out}");
    }
    // A file that cannot be read is an error of its index alone.
    fs::write(self::indexes(&place).join("coinstats/stats.tip"), b"not this").unwrap();
    let (out, _, code) = place.run(&["index", "status"]);
    assert!(code == 4 && out.contains("stats.tip:0: damaged") && out.contains("profile full"), "{out}");
}

#[test]
fn the_documents_have_the_fields_that_are_documented() {
    let place = Place::new("index-documents");
    import(&place, &MIX);
    let page = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/formats/index-json.md");
    let page = fs::read_to_string(page).unwrap();
    // What follows is about the index in a store, which needs a cluster.
    let (page, _) = page.split_once("\n## `lydian index status cassandra://").unwrap();
    let rows = page.lines().filter(|line| line.starts_with("| `"));
    let documented: BTreeSet<String> = rows.map(|line| line.split('`').nth(1).unwrap().to_owned()).collect();
    let mut written = BTreeSet::new();
    for words in [&["index", "status"][..], &["index", "verify"], &["index", "drop", "coinstats"]] {
        keys(&place.json(words), &mut written);
    }
    assert_eq!(documented, written);
}

/// Every index is equal to its rebuild, which leaves nothing behind and changes nothing; damage is named.
#[test]
fn indexes_are_compared_with_a_rebuild() {
    let place = Place::new("index-verify");
    let chain = place.directory.join("chain");
    empty::write(1_700, &chain).unwrap();
    for chain in [&chain, &*MIX] {
        let _ = fs::remove_dir_all(place.chain_folder());
        import(&place, chain);
        let before = files(&indexes(&place));
        let (out, err, code) = place.run(&["index", "verify"]);
        assert_eq!(code, 0, "{out}{err}");
        for name in NAMES {
            assert!(out.contains(&format!("{name}: equal to a rebuild up to height ")), "{out}");
        }
        assert!(!indexes(&place).join("verify").exists());
        assert!(files(&indexes(&place)) == before, "the index is only read");
        let (out, _, code) = place.run(&["index", "verify", "blockfilter"]);
        assert_eq!((code, out.lines().count()), (0, 1), "{out}");
    }
    // A damaged byte is named with its file; the others are compared.
    let file = indexes(&place).join("blockfilter/basic/filters.log");
    let own = fs::read(&file).unwrap();
    let mut damaged = own.clone();
    damaged[own.len() / 2] ^= 1;
    fs::write(&file, &damaged).unwrap();
    let (out, _, code) = place.run(&["index", "verify"]);
    assert_eq!(code, 1, "{out}");
    assert!(out.contains(&format!("blockfilter: NOT EQUAL: {}:", file.display())), "{out}");
    assert!(out.contains("tables: equal") && out.contains("coinstats: equal"), "{out}");
    fs::write(&file, &own).unwrap();
    // Records with the right checksums, but of another block: the first two change places.
    let file = indexes(&place).join("coinstats/stats.log");
    let other = Place::new("index-verify-other");
    let others = other.directory.join("chain");
    empty::write(u32::try_from(MIX_HEIGHT).unwrap(), &others).unwrap();
    import(&other, &others);
    let record = |number: usize, bytes: &[u8]| {
        let size = bytes.len() / (usize::try_from(MIX_HEIGHT).unwrap() + 1);
        bytes[number * size..(number + 1) * size].to_vec()
    };
    let (own, of_other) = (fs::read(&file).unwrap(), fs::read(indexes(&other).join("coinstats/stats.log")).unwrap());
    assert_eq!(own.len(), of_other.len());
    let size = record(0, &own).len();
    let mut mixed = own.clone();
    mixed[7 * size..8 * size].copy_from_slice(&record(7, &of_other));
    fs::write(&file, &mixed).unwrap();
    let (out, _, code) = place.run(&["index", "verify", "coinstats"]);
    assert_eq!((code, out.contains(&format!("{}:{}: differs", file.display(), 7 * size))), (1, true), "{out}");
    fs::write(&file, &own).unwrap();
    assert_eq!(place.run(&["index", "verify"]).2, 0);
}

/// A file of each kind, removed: its index is not equal, and the others are compared.
#[test]
fn a_missing_file_is_named_and_the_other_indexes_are_compared() {
    let place = Place::new("index-missing");
    let chain = place.directory.join("chain");
    empty::write(1_700, &chain).unwrap();
    import(&place, &chain);
    let all = indexes(&place);
    let segment = ["numbers", "sizes", "blocks", "events", "lists", "positions", "txids"];
    let mut missing: Vec<(&str, String)> =
        segment.iter().map(|kind| ("tables", format!("tables/0000000-0000256.{kind}"))).collect();
    let basic = "blockfilter/basic";
    for (name, file) in [
        ("tables", "tables/commit".to_owned()),
        ("blockfilter", format!("{basic}/filters.log")),
        ("blockfilter", format!("{basic}/headers.log")),
        ("blockfilter", format!("{basic}/filters.tip")),
        ("coinstats", "coinstats/stats.log".to_owned()),
        ("coinstats", "coinstats/stats.tip".to_owned()),
    ] {
        missing.push((name, file));
    }
    for (name, file) in missing {
        let path = all.join(&file);
        let own = fs::read(&path).unwrap();
        fs::remove_file(&path).unwrap();
        let error = format!("{}: there is no such file or directory", path.display());
        let (out, err, code) = place.run(&["index", "verify"]);
        assert_eq!((code, out.contains(&format!("{name}: NOT EQUAL: {error}"))), (1, true), "{file}: {out}{err}");
        for other in NAMES.iter().filter(|other| **other != name) {
            assert!(out.contains(&format!("{other}: equal to a rebuild up to height 1,700")), "{file}: {out}");
        }
        assert!(!all.join("verify").exists());
        // A tip file is also missing before the first checkpoint.
        let is_error = !file.ends_with(".tip");
        let (out, _, code) = place.run(&["index", "status"]);
        assert_eq!((code, out.contains(&error)), (if is_error { 4 } else { 0 }, is_error), "{file}: {out}");
        assert_eq!(out.matches("height 1,700 at the last checkpoint").count(), 2, "{file}: {out}");
        fs::write(&path, &own).unwrap();
    }
    // A log of the tables may be missing after a crash: the blocks below it are used.
    fs::remove_file(all.join("tables/0001536.log")).unwrap();
    let (out, err, code) = place.run(&["index", "verify"]);
    assert_eq!(code, 0, "{out}{err}");
    assert!(out.contains("tables: equal to a rebuild up to height 1,535") && out.contains("interrupted"), "{out}");
}

#[test]
fn a_running_node_keeps_its_indexes() {
    let place = Place::new("index-running");
    import(&place, &MIX);
    let node = place.start(&ALL, "waiting for a signal");
    let status = place.json(&["index", "status"]);
    assert_eq!(status["is_running"], true);
    assert_eq!(status["indexes"][0]["height"], MIX_HEIGHT);
    let info = place.json(&["info"]);
    let names: Vec<&str> =
        info["indexes"].as_array().unwrap().iter().map(|index| index["name"].as_str().unwrap()).collect();
    let expected = ["txindex", "txospenderindex", "addressindex", "basic block filter index", "coinstatsindex"];
    assert_eq!(names, expected, "as in getindexinfo");
    let (out, _, _) = place.run(&["index", "status"]);
    assert!(
        out.contains("(a node runs; its indexes as of ") && out.contains(&format!("at height {MIX_HEIGHT}")),
        "{out}"
    );
    for words in [&["index", "verify"][..], &["index", "drop", "tables"]] {
        let (_, err, code) = place.run(words);
        assert_eq!((code, err.contains("Lydian is probably already running")), (3, true), "{err}");
    }
    node.signal(Signal::TERM);
    assert_eq!(node.wait(), Some(0));
    assert_eq!(place.run(&["index", "verify"]).2, 0);
}

#[test]
fn an_index_is_removed_with_its_own_files_only() {
    let place = Place::new("index-drop");
    import(&place, &MIX);
    let (_, err, code) = place.run(&["index", "drop", "txindex"]);
    assert!(code == 2 && err.contains("tables (-txindex"), "{err}");
    let foreign = indexes(&place).join("tables/notes.txt");
    fs::write(&foreign, "a user's").unwrap();
    let size = status(&place, "tables").unwrap()["bytes"].clone();
    assert_eq!(place.json(&["index", "drop", "tables"])["freed_bytes"], size);
    assert_eq!(files(foreign.parent().unwrap()).len(), 1, "only its own files");
    assert!(status(&place, "tables").is_none() && status(&place, "coinstats").is_some());
    let (_, err, code) = place.run(&["index", "drop", "tables"]);
    assert!(code == 3 && err.contains("has no index tables"), "{err}");
    let (out, _, code) = place.run(&["index", "drop", "coinstats"]);
    assert!(code == 0 && out.contains("MB freed") && !indexes(&place).join("coinstats").exists(), "{out}");
    // It is built again.
    let node = place.start(&ALL, &format!("coinstatsindex is enabled at height {MIX_HEIGHT}"));
    node.signal(Signal::TERM);
    assert_eq!(node.wait(), Some(0));
    assert_eq!(status(&place, "coinstats").unwrap()["height"], MIX_HEIGHT);
    assert_eq!(place.run(&["index", "verify"]).2, 0);
}

/// The indexes are switched off and on again, and both profiles follow one another, while the chain grows: each time
/// every index is equal to its rebuild.
#[test]
fn indexes_are_switched_on_and_off_and_between_profiles() {
    const COMPACT: [&str; 3] = ["-addressindex=compact", "-blockfilterindex", "-coinstatsindex"];
    let place = Place::new("index-switched");
    // Adds blocks up to a height, to which the indexes follow, if they are on.
    let grow = |height: u32, options: &[&str], profile: &str, expected: u32| {
        let chain = place.directory.join(format!("chain-{height}"));
        empty::write(height, &chain).unwrap();
        let (_, err, code) = place.run(&[&["import", chain.to_str().unwrap()][..], options].concat());
        assert_eq!(code, 0, "{err}");
        let start = Instant::now();
        loop {
            let status = place.json(&["index", "status"]);
            if status["indexes"].as_array().unwrap().iter().all(|index| index["height"] == expected) {
                assert_eq!(status["indexes"][0]["profile"], profile, "{status}");
                break;
            }
            assert!(start.elapsed() < PATIENCE, "{height}: {status}");
            assert_eq!(place.run(&[options, &["-stopafterblockimport"]].concat()).2, 0);
        }
        let (out, err, code) = place.run(&["index", "verify"]);
        assert_eq!((code, out.matches(": equal to a rebuild up to height ").count()), (0, 3), "{out}{err}");
    };
    grow(300, &COMPACT, "compact", 300);
    grow(310, &[], "compact", 300);
    grow(320, &COMPACT, "compact", 320);
    // The full profile is built anew.
    grow(330, &ALL, "full", 330);
    // What the compact profile needs is there.
    grow(340, &COMPACT, "full", 340);
}

/// What a rebuild leaves behind when it is killed is removed by the next start; one that is asked to stop removes it
/// itself.
#[test]
fn an_interrupted_rebuild_leaves_nothing() {
    let place = Place::new("index-interrupted");
    import(&place, &MIX);
    let scratch = indexes(&place).join("verify");
    let leave = || {
        for (dir, from) in [("tables", "tables"), ("blockfilter", "blockfilter/basic"), ("coinstats", "coinstats")] {
            fs::create_dir_all(scratch.join(dir)).unwrap();
            for (path, bytes) in files(&indexes(&place).join(from)) {
                fs::write(scratch.join(dir).join(path.file_name().unwrap()), &bytes).unwrap();
            }
        }
    };
    leave();
    assert_eq!(place.run(&["-stopafterblockimport"]).2, 0);
    assert!(!scratch.exists(), "by a node without an index");
    leave();
    assert_eq!(place.run(&["index", "verify", "coinstats"]).2, 0);
    assert!(!scratch.exists(), "by the next one");
    for attempt in 0.. {
        assert!(attempt < 20, "it always ends before the signal");
        let mut child = place.command(&["index", "verify"]).spawn().unwrap();
        while child.try_wait().unwrap().is_none() && !scratch.exists() {
            std::thread::sleep(Duration::from_millis(1));
        }
        if child.try_wait().unwrap().is_none() {
            rustix::process::kill_process(rustix::process::Pid::from_child(&child), Signal::INT).unwrap();
        }
        let code = child.wait().unwrap().code();
        assert!(!scratch.exists(), "{code:?}");
        match code {
            Some(130) => break,
            other => assert_eq!(other, Some(0)),
        }
    }
    assert_eq!(place.run(&["index", "verify"]).2, 0);
}

/// The rebuild needs every block.
#[test]
fn a_pruned_node_cannot_compare_its_indexes() {
    let place = Place::new("index-pruned");
    let options = ["--copy", "-fastprune", "-prune=1", "-blockfilterindex", "-coinstatsindex"];
    let (_, err, code) = place.run(&[&["import", MIX.to_str().unwrap()][..], &options].concat());
    assert_eq!(code, 0, "{err}");
    prune(&place.chain_folder());
    let (_, err, code) = place.run(&["index", "verify"]);
    assert_eq!(code, 3, "{err}");
    assert!(err.contains("the checksums of all files match") && err.contains("deleted by pruning"), "{err}");
    assert!(!indexes(&place).join("verify").exists());
    // Damage is found without blocks.
    let file = indexes(&place).join("coinstats/stats.log");
    let mut bytes = fs::read(&file).unwrap();
    bytes[1_000] ^= 1;
    fs::write(&file, &bytes).unwrap();
    let (out, _, _) = place.run(&["index", "verify"]);
    assert!(out.contains(&format!("coinstats: NOT EQUAL: {}:", file.display())), "{out}");
}

/// Removes the oldest block files, as `pruneblockchain` does.
fn prune(folder: &Path) {
    use lydian_consensus::{Chain, Params};
    use lydian_engine::{Engine, Layout, Settings, Unobserved};
    let blocks = folder.join("blocks");
    let layout = Layout { index: blocks.join("index"), blocks, coins: folder.join("chainstate") };
    let disk = std::sync::Arc::new(lydian_disk::RealDisk);
    let settings = Settings { prune_bytes: Some(u64::MAX), ..Settings::new(1) };
    let engine = Engine::open(disk, &layout, Params::new(Chain::Regtest), settings, Vec::new()).unwrap().engine;
    engine.prune_to(lydian_primitives::Height(140), &Unobserved).unwrap();
    engine.checkpoint(&Unobserved).unwrap();
    let genesis = engine.header_info_at(lydian_primitives::Height(1)).unwrap();
    assert!(genesis.is_pruned());
}

/// esplora#471: 858 MB for an empty regtest.
#[test]
fn an_empty_regtest_index_is_below_a_megabyte() {
    let place = Place::new("index-empty");
    assert_eq!(place.run(&[&ALL[..], &["-stopafterblockimport"]].concat()).2, 0);
    let status = place.json(&["index", "status"]);
    let sizes: Vec<u64> =
        status["indexes"].as_array().unwrap().iter().map(|index| index["bytes"].as_u64().unwrap()).collect();
    assert_eq!(sizes.len(), 3);
    assert!(sizes.iter().sum::<u64>() < 1_000_000, "{sizes:?}");
    let blocks: u64 = files(&indexes(&place)).values().map(|bytes| bytes.len() as u64).sum();
    assert_eq!(sizes.iter().sum::<u64>(), blocks, "nothing else is there");
    assert_eq!(place.run(&["index", "verify"]).2, 0);
}
