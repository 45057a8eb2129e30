//! `docs/core-interface.md` against Core's source, from which the judge was built, and against a running node.

use crate::server::Server;
use lydian_oracle::{build, or_skip};
use std::collections::BTreeSet;
use std::fs;
use std::path::Path;
use std::process::Command;

/// Methods of files that the judge's source lacks, because it has no ZMQ.
const NOT_IN_THE_SOURCE: &[&str] = &["getzmqnotifications"];

/// A row of the document: the name of a method, path or topic, and what is said of it.
type Row = (String, String);

/// The document as the program prints it; a test of the generated documents compares it with the file.
fn document() -> String {
    let output = Command::new(env!("CARGO_BIN_EXE_lydian")).arg("-help-interface").output().unwrap();
    String::from_utf8(output.stdout).unwrap()
}

/// The rows of a section.
fn rows(document: &str, section: &str) -> Vec<Row> {
    let (_, rest) = document.split_once(&format!("\n## {section}\n")).unwrap();
    let lines = rest.split("\n## ").next().unwrap().lines().filter(|line| line.starts_with("| ") && line.contains('`'));
    let row = |line: &str| {
        let cells: Vec<&str> = line.split('|').collect();
        (cells[1].split('`').nth(1).unwrap().to_owned(), cells[2].trim().to_owned())
    };
    lines.map(row).collect()
}

fn names(rows: &[Row]) -> BTreeSet<String> {
    rows.iter().map(|(name, _)| name.clone()).collect()
}

/// Collects the methods that the files below a folder register: the names in their tables of `CRPCCommand`.
fn methods(folder: &Path, names: &mut BTreeSet<String>) {
    for entry in fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            if !["test", "bench", "qt", "wallet"].iter().any(|name| path.ends_with(name)) {
                methods(&path, names);
            }
        } else if path.extension().is_some_and(|end| end == "cpp") {
            let text = String::from_utf8_lossy(&fs::read(&path).unwrap()).into_owned();
            for table in text.split("CRPCCommand ").skip(1).filter(|table| table.contains("[]{")) {
                let body = table.split("};").next().unwrap_or_default();
                let cells = body.split("\", &").skip(1);
                names.extend(cells.filter_map(|rest| Some(rest.split('}').next()?.trim().to_owned())));
            }
        }
    }
}

/// Fails for a method, path or topic that Core's source has and the document lacks, and the other way round.
#[test]
fn the_document_has_all_of_cores_interface() {
    let Some(built) = or_skip("the_document_has_all_of_cores_interface", build::locate()) else { return };
    let (source, document) = (built.source.join("src"), document());
    let mut found: BTreeSet<String> = NOT_IN_THE_SOURCE.iter().map(|name| (*name).to_owned()).collect();
    methods(&source, &mut found);
    assert!(found.len() > 100 && found.contains("getblock") && found.contains("stop"), "{found:?}");
    assert_eq!(names(&rows(&document, "RPC")), found);

    let text = fs::read_to_string(source.join("rest.cpp")).unwrap();
    let table = text.split_once("uri_prefixes[] = {").unwrap().1.split("};").next().unwrap();
    let paths = table.lines().filter_map(|line| Some(line.split('"').nth(1)?.to_owned())).collect();
    assert_eq!(names(&rows(&document, "REST")), paths);

    let text = fs::read_to_string(source.join("init.cpp")).unwrap();
    let options = text.split("AddArg(\"-zmqpub").skip(1).filter_map(|rest| Some(rest.split_once('=')?.0.to_owned()));
    let topics: BTreeSet<String> = options.filter(|name| !name.ends_with("hwm")).collect();
    assert_eq!(topics.len(), 5);
    assert_eq!(names(&rows(&document, "ZMQ")), topics);
}

/// What is "here" is answered, what is "refused" is unknown to the node and has a reason.
#[test]
fn the_document_is_true_of_a_running_node() {
    let (document, address) = (document(), format!("tcp://127.0.0.1:{}", lydian_oracle::free_port().unwrap()));
    let options: Vec<String> =
        rows(&document, "ZMQ").iter().map(|(topic, _)| format!("-zmqpub{topic}={address}")).collect();
    let mut options: Vec<&str> = options.iter().map(String::as_str).collect();
    options.push("-rest");
    let lydian = Server::lydian("the_document_is_true_of_a_running_node", &options);
    for (name, word) in rows(&document, "RPC") {
        // No method takes so many arguments: the answer of one that exists is its help, or that they are wrong.
        let answer = lydian.call(&name, &format!("[{}0]", "0,".repeat(20))).body;
        let is_unknown = answer.contains("\"code\":-32601");
        assert!(word == "here" || word.len() > "refused: ".len() && word.starts_with("refused: "), "{name}: {word}");
        assert_eq!(is_unknown, word != "here", "{name}: {answer}");
    }
    let notifiers = lydian.result("getzmqnotifications", "[]");
    assert_eq!(notifiers.as_array().unwrap().len(), rows(&document, "ZMQ").len());
}
