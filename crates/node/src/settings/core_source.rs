//! Compares Bitcoin Core's source with our tables: every option and every start-up message.

use super::core::CORE_OPTIONS;
use super::table::{find, options};
use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};

/// Files whose options are not those of the daemon.
const OTHER_PROGRAMS: &[(&str, &str)] = &[
    ("bitcoin-chainstate.cpp", "a program of its own"),
    ("bitcoin-cli.cpp", "the options of bitcoin-cli"),
    ("bitcoin-tx.cpp", "the options of bitcoin-tx"),
    ("bitcoin-util.cpp", "the options of bitcoin-util"),
    ("bitcoin-wallet.cpp", "the options of bitcoin-wallet"),
    ("bitcoin.cpp", "starts the other programs"),
    ("ipc/libmultiprocess/", "a generator of code"),
    ("qt/", "the options of the GUI; those that a shared file may hold are hidden options of the daemon"),
    ("bench/", "the options of the benchmarks"),
    ("test/", "options that unit tests invent, and -testdatadir of the test program"),
];

/// Folders without start-up messages.
const WITHOUT_MESSAGES: &[&str] = &[
    "test/",
    "bench/",
    "qt/",
    "rpc/",
    "wallet/",
    "ipc/",
    "secp256k1/",
    "crc32c/",
    "leveldb/",
    "minisketch/",
    "univalue/",
    "crypto/",
    "script/sign.cpp",
];

/// Files whose errors are start-up messages even if they are not marked for translation.
const OF_THE_START: [&str; 8] = [
    "bitcoind.cpp",
    "init.cpp",
    "init/common.cpp",
    "common/args.cpp",
    "common/config.cpp",
    "common/settings.cpp",
    "common/init.cpp",
    "chainparams.cpp",
];

/// The code before a message, in every file and in those of the start.
const MARKS: [&str; 3] = ["_(", "Untranslated(", "Untranslated(strprintf("];
const MARKS_OF_THE_START: [&str; 9] = [
    "error = strprintf(",
    "error =",
    "error += strprintf(",
    "error +=",
    "runtime_error(strprintf(",
    "runtime_error(",
    "emplace_back(strprintf(",
    "SaveErrors({strprintf(",
    "std::cerr,",
];

/// The folder `src` of the judge's source.
fn source(test: &str) -> Option<PathBuf> {
    lydian_oracle::or_skip(test, lydian_oracle::build::locate()).map(|built| built.source.join("src"))
}

/// C++ files below a folder: their paths in it and their contents.
fn files(root: &Path) -> Vec<(String, String)> {
    let mut found = Vec::new();
    let mut folders = vec![root.to_owned()];
    while let Some(folder) = folders.pop() {
        for entry in fs::read_dir(&folder).unwrap().map(|entry| entry.unwrap().path()) {
            if entry.is_dir() {
                folders.push(entry);
            } else if entry.extension().is_some_and(|kind| kind == "cpp") {
                let name = entry.strip_prefix(root).unwrap().to_str().unwrap().to_owned();
                #[allow(clippy::disallowed_methods, reason = "a test reads the judge's source")]
                found.push((name, fs::read_to_string(&entry).unwrap()));
            }
        }
    }
    found.sort();
    found
}

/// A C++ string literal, its adjacent parts joined, and the code before it.
struct Literal {
    before: String,
    text: String,
}

/// All string literals of a file. Escapes are left unchanged.
fn literals(code: &str) -> Vec<Literal> {
    let bytes = code.as_bytes();
    let (mut found, mut before, mut at) = (Vec::new(), String::new(), 0);
    // The closing quote of a literal.
    let close = |mut at: usize, quote: u8| {
        while bytes[at] != quote {
            at += if bytes[at] == b'\\' { 2 } else { 1 };
        }
        at
    };
    while at < bytes.len() {
        let rest = &code[at..];
        if rest.starts_with("//") {
            at += rest.find('\n').unwrap_or(rest.len());
        } else if rest.starts_with("/*") {
            at += rest.find("*/").unwrap() + 2;
        } else if bytes[at] == b'\'' && !before.ends_with(|last: char| last.is_ascii_alphanumeric()) {
            at = close(at + 1, b'\'') + 1;
            before.push('\'');
        } else if bytes[at] == b'"' {
            let mut text = String::new();
            loop {
                let end = close(at + 1, b'"');
                text += &code[at + 1..end];
                at = end + 1;
                let next = code[at..].trim_start_matches(|letter: char| letter.is_whitespace() || letter == '\\');
                if !next.starts_with('"') {
                    break;
                }
                at = code.len() - next.len();
            }
            let start = before.len().saturating_sub(100);
            let start = (start..before.len()).find(|start| before.is_char_boundary(*start)).unwrap_or(before.len());
            let words: Vec<&str> = before[start..].split_whitespace().collect();
            found.push(Literal { before: words.join(" "), text });
            before.push('"');
        } else {
            let letter = rest.chars().next().unwrap();
            before.push(letter);
            at += letter.len_utf8();
        }
    }
    found
}

/// Every option that a file registers: in a call of `AddArg`, in a list of hidden options, and the like.
fn registered(code: &str) -> Vec<String> {
    let mut names = Vec::new();
    let mut is_hidden_list = false;
    for Literal { before, text } in literals(code) {
        let is_call = ["AddArg(", "emplace_back("].iter().any(|call| before.ends_with(call));
        let begins_list = before.ends_with("AddHiddenArgs({") || before.ends_with("hidden_args = {");
        is_hidden_list = begins_list || (is_hidden_list && before.ends_with("\","));
        if (is_call || is_hidden_list)
            && let Some(name) = text.strip_prefix('-')
        {
            names.push(name.split('=').next().unwrap_or_default().to_owned());
        }
    }
    names
}

/// Every option of the daemon is implemented, without effect, or refused with its reason. All files of Core are read,
/// so that an option that a later version adds elsewhere is found too.
#[test]
fn every_option_of_core_is_in_a_table() {
    let Some(source) = source("every_option_of_core_is_in_a_table") else { return };
    let mut found = BTreeSet::new();
    for (file, code) in files(&source) {
        if !OTHER_PROGRAMS.iter().any(|(other, _)| file.starts_with(other)) {
            found.extend(registered(&code).into_iter().map(|name| (name, file.clone())));
        }
    }
    let is_known = |name: &str| find(name).is_some() || CORE_OPTIONS.iter().any(|option| option.name == name);
    let missing: Vec<_> = found.iter().filter(|(name, _)| !is_known(name)).collect();
    assert!(missing.is_empty(), "options of Core in no table: {missing:?}");
    let names: BTreeSet<&str> = found.iter().map(|(name, _)| name.as_str()).collect();
    assert!(names.len() > 190, "only {} options were found", names.len());
    // The reverse: options in our tables that Core does not have.
    let foreign = options().filter(|option| !option.is_own && !names.contains(option.name)).map(|option| option.name);
    let foreign: Vec<_> =
        foreign.chain(CORE_OPTIONS.iter().map(|option| option.name).filter(|name| !names.contains(name))).collect();
    assert_eq!(foreign, [""; 0], "options that Core does not have");
}

/// Rows of the table: file of Core, message, place.
fn table() -> Vec<[&'static str; 3]> {
    let lines = include_str!("startup-messages.tsv").lines().filter(|line| !line.starts_with('#'));
    lines.map(|line| line.split('\t').collect::<Vec<_>>().try_into().unwrap_or_else(|_| panic!("{line}"))).collect()
}

/// Every message that Core shows at start-up is in the table.
#[test]
fn every_message_of_a_start_is_in_the_table() {
    let Some(source) = source("every_message_of_a_start_is_in_the_table") else { return };
    let mut found = BTreeSet::new();
    for (file, code) in files(&source) {
        let is_other = OTHER_PROGRAMS.iter().any(|(other, _)| file.starts_with(other));
        if is_other || WITHOUT_MESSAGES.iter().any(|other| file.starts_with(other)) {
            continue;
        }
        let of_the_start = OF_THE_START.contains(&file.as_str());
        for Literal { before, text } in literals(&code) {
            let is_marked = MARKS.iter().any(|mark| {
                let name = before.strip_suffix(mark);
                // Not the end of a longer name.
                name.is_some_and(|name| {
                    *mark != "_(" || !name.ends_with(|last: char| last.is_alphanumeric() || last == '_')
                })
            });
            let is_fault = of_the_start && MARKS_OF_THE_START.iter().any(|mark| before.ends_with(mark));
            if (is_marked || is_fault) && !text.is_empty() {
                found.insert((file.clone(), text));
            }
        }
    }
    let known: BTreeSet<_> = table().iter().map(|[file, text, _]| ((*file).to_owned(), (*text).to_owned())).collect();
    let missing: Vec<_> = found.difference(&known).collect();
    assert!(missing.is_empty(), "messages of Core that startup-messages.tsv lacks: {missing:#?}");
    let gone: Vec<_> = known.difference(&found).collect();
    assert!(gone.is_empty(), "messages that Core does not have: {gone:#?}");
    assert!(found.len() > 250, "only {} messages were found", found.len());
}

/// The parts of a message between its placeholders, with quotes as they are shown.
fn parts(message: &str) -> Vec<String> {
    let message = message.replace("\\\"", "\"").replace("\\n", "\n").replace("bitcoind -h", "lydian -h");
    let mut parts = vec![String::new()];
    let mut letters = message.chars().peekable();
    while let Some(letter) = letters.next() {
        match letter {
            '%' => {
                while letters.next_if(|letter| letter.is_ascii_digit() || "$.".contains(*letter)).is_some() {}
                if letters.next() == Some('z') {
                    letters.next();
                }
                parts.push(String::new());
            }
            '\n' => parts.push(String::new()),
            letter => parts.last_mut().unwrap().push(letter),
        }
    }
    parts.retain(|part| part.trim().len() > 3);
    parts
}

/// Each "here" is true: the file that the table names has the words.
#[test]
fn our_messages_are_where_the_table_says() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    for [core, message, place] in table() {
        let Some(file) = place.strip_prefix("here: ") else {
            let has_reason = ["never: ", "refused: ", "run time: ", "RPC: ", "log: ", "own issue: ", "differs: "];
            assert!(has_reason.iter().any(|word| place.starts_with(word)), "{core}: {message}: {place}");
            continue;
        };
        #[allow(clippy::disallowed_methods, reason = "a test reads the checkout")]
        let code = fs::read_to_string(root.join(file)).unwrap_or_else(|error| panic!("{file}: {error}"));
        // A backslash at the end of a line continues a Rust string.
        let lines = code.split("\\\n").enumerate();
        let code: String = lines.map(|(index, part)| if index == 0 { part } else { part.trim_start() }).collect();
        let code = code.replace("\\\"", "\"");
        for part in parts(message) {
            assert!(code.contains(&part), "'{part}' of '{message}' ({core}) is not in {file}");
        }
    }
}
