//! Checks Bitcoin Core's log sentences against the table `docs/core-log.tsv`. It has one row for each sentence of the
//! default level and of the categories net, validation, reindex, prune, rpc, http and addrman, with our place or the
//! reason why there is none.
//!
//! Input: Core's source, if the judge is built; our source. Output: a failure that names the sentences.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};

const CATEGORIES: [&str; 7] = ["net", "validation", "reindex", "prune", "rpc", "http", "addrman"];

/// Directories of Core's source with other programs or third-party libraries.
const SKIPPED: [&str; 10] =
    ["test", "bench", "wallet", "qt", "ipc", "leveldb", "secp256k1", "minisketch", "crc32c", "univalue"];

/// The placeholder for a value in a sentence.
const HOLE: char = '\u{1}';

/// A row of the table.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Sentence {
    file: String,
    level: String,
    category: String,
    text: String,
}

/// Reads the table: sentences with their place (`-` if there is none) and the reason.
fn table() -> BTreeMap<Sentence, (String, String)> {
    let text = read(&root().join("docs/core-log.tsv"));
    let row = |line: &str| {
        let cells: Vec<&str> = line.split('\t').collect();
        let [file, level, category, text, place, reason] = cells[..] else { panic!("six cells: {line}") };
        let own = str::to_owned;
        let sentence = Sentence { file: own(file), level: own(level), category: own(category), text: own(text) };
        (sentence, (own(place), own(reason)))
    };
    text.lines().skip(1).map(row).collect()
}

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

#[allow(clippy::disallowed_methods, reason = "a test reads sources")]
fn read(path: &Path) -> String {
    fs::read_to_string(path).unwrap_or_else(|error| panic!("{}: {error}", path.display()))
}

#[allow(clippy::disallowed_methods, reason = "a test reads sources")]
fn files(folder: &Path, found: &mut Vec<PathBuf>) {
    for entry in fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() { files(&path, found) } else { found.push(path) }
    }
}

/// Removes comments.
fn without_comments(text: &str) -> Vec<char> {
    let letters: Vec<char> = text.chars().collect();
    let (mut out, mut at, mut quote) = (Vec::with_capacity(letters.len()), 0, None);
    while at < letters.len() {
        let (letter, next) = (letters[at], letters.get(at + 1).copied().unwrap_or(' '));
        match quote {
            Some(_) if letter == '\\' => {
                out.extend([letter, next]);
                at += 1;
            }
            Some(end) => {
                out.push(letter);
                quote = Some(end).filter(|end| *end != letter);
            }
            None if letter == '/' && next == '/' => {
                while at < letters.len() && letters[at] != '\n' {
                    at += 1;
                }
                continue;
            }
            None if letter == '/' && next == '*' => {
                while at < letters.len() && !(letters[at] == '*' && letters.get(at + 1) == Some(&'/')) {
                    at += 1;
                }
                at += 1;
                out.push(' ');
            }
            None => {
                // An apostrophe inside a number separates digits.
                let is_quote = letter == '"' || letter == '\'' && !(at > 0 && letters[at - 1].is_alphanumeric());
                quote = is_quote.then_some(letter);
                out.push(letter);
            }
        }
        at += 1;
    }
    out
}

/// The arguments of a call; `at` is the position of its opening bracket.
fn arguments(text: &[char], mut at: usize) -> Vec<String> {
    let (mut depth, mut all, mut current, mut quote) = (0, Vec::new(), String::new(), None);
    while at < text.len() {
        let letter = text[at];
        match quote {
            Some(end) => {
                current.push(letter);
                if letter == '\\' {
                    at += 1;
                    current.push(text[at]);
                } else if letter == end {
                    quote = None;
                }
            }
            None if letter == '"' || letter == '\'' && !text[at - 1].is_alphanumeric() => {
                quote = Some(letter);
                current.push(letter);
            }
            None if "([{".contains(letter) => {
                depth += 1;
                if depth > 1 {
                    current.push(letter);
                }
            }
            None if ")]}".contains(letter) => {
                depth -= 1;
                if depth == 0 {
                    all.push(current.trim().to_owned());
                    return all;
                }
                current.push(letter);
            }
            None if letter == ',' && depth == 1 => all.push(std::mem::take(&mut current).trim().to_owned()),
            None => current.push(letter),
        }
        at += 1;
    }
    all
}

/// The text of an argument: its literals joined, with `%s` for a name between them; the argument itself if it has no
/// literal.
fn sentence_of(argument: &str) -> String {
    if !argument.contains('"') {
        return argument.to_owned();
    }
    let letters: Vec<char> = argument.chars().collect();
    let (mut out, mut at) = (String::new(), 0);
    while at < letters.len() {
        if letters[at] == '"' {
            at += 1;
            while letters[at] != '"' {
                match (letters[at], letters[at + 1]) {
                    ('\\', 'n') => out.push_str("\\n"),
                    ('\\', other) => out.push(other),
                    (letter, _) => out.push(letter),
                }
                at += if letters[at] == '\\' { 2 } else { 1 };
            }
        } else if letters[at].is_alphabetic() || letters[at] == '_' {
            out.push_str("%s");
            while at + 1 < letters.len() && (letters[at + 1].is_alphanumeric() || letters[at + 1] == '_') {
                at += 1;
            }
        }
        at += 1;
    }
    out.trim_end_matches("\\n").to_owned()
}

/// Collects all sentences of one of Core's files.
fn extract(file: &str, source: &str, found: &mut BTreeSet<Sentence>) {
    let text = without_comments(source);
    let calls = [
        ("LogInfo", "info"),
        ("LogPrintf", "info"),
        ("LogWarning", "warning"),
        ("LogError", "error"),
        ("LogDebug", "debug"),
        ("LogTrace", "trace"),
    ];
    for (name, level) in calls {
        let call: Vec<char> = format!("{name}(").chars().collect();
        for at in 0..text.len().saturating_sub(call.len()) {
            let is_word = at == 0 || !(text[at - 1].is_alphanumeric() || text[at - 1] == '_');
            if !is_word || text[at..at + call.len()] != call[..] {
                continue;
            }
            let start = text[..at].iter().rposition(|letter| *letter == '\n').map_or(0, |end| end + 1);
            if text[start..at].iter().collect::<String>().trim_start().starts_with("#define") {
                continue;
            }
            let mut given = arguments(&text, at + call.len() - 1);
            let mut category = "-".to_owned();
            if matches!(name, "LogDebug" | "LogTrace") {
                category = given.remove(0).replace("BCLog::", "").to_lowercase();
            }
            given.retain(|argument| !argument.contains("NO_RATE_LIMIT"));
            let Some(first) = given.first() else { continue };
            if category == "-" || CATEGORIES.contains(&category.as_str()) {
                let text = sentence_of(first).replace('\t', " ");
                found.insert(Sentence { file: file.to_owned(), level: level.to_owned(), category, text });
            }
        }
    }
}

/// Core's format string, with a hole for each value.
fn core_form(text: &str) -> String {
    let (mut out, letters) = (String::new(), text.chars().collect::<Vec<_>>());
    let mut at = 0;
    while at < letters.len() {
        match (letters[at], letters.get(at + 1)) {
            ('%', Some('%')) => {
                out.push('%');
                at += 1;
            }
            ('%', Some(_)) => {
                at += 1;
                while at < letters.len() && !letters[at].is_alphabetic() {
                    at += 1;
                }
                while at + 1 < letters.len() && "lzh".contains(letters[at]) {
                    at += 1;
                }
                out.push(HOLE);
            }
            (letter, _) => out.push(letter),
        }
        at += 1;
    }
    out
}

/// The string literals of one of our files, with a hole for each value.
fn literals(source: &str) -> BTreeSet<String> {
    let letters: Vec<char> = source.chars().collect();
    let starts = |at: usize, text: &str| text.chars().enumerate().all(|(step, c)| letters.get(at + step) == Some(&c));
    let (mut found, mut at) = (BTreeSet::new(), 0);
    while at < letters.len() {
        if starts(at, "//") {
            while at < letters.len() && letters[at] != '\n' {
                at += 1;
            }
        } else if starts(at, "'\"'") {
            at += 3;
        } else if starts(at, "'\\\"'") {
            at += 4;
        } else if letters[at] == '"' {
            let (mut text, mut end) = (String::new(), at + 1);
            while end < letters.len() && letters[end] != '"' {
                match (letters[end], letters.get(end + 1)) {
                    ('\\', Some('\n')) => {
                        end += 2;
                        while letters.get(end).is_some_and(|letter| letter.is_whitespace()) {
                            end += 1;
                        }
                        continue;
                    }
                    ('\\', Some('n')) => text.push_str("\\n"),
                    ('\\', Some(other)) => text.push(*other),
                    (letter, _) => text.push(letter),
                }
                end += if letters[end] == '\\' { 2 } else { 1 };
            }
            found.insert(our_form(&text));
            at = end + 1;
        } else {
            at += 1;
        }
    }
    found
}

fn our_form(text: &str) -> String {
    let (mut out, mut is_inside) = (String::new(), false);
    let mut letters = text.chars().peekable();
    while let Some(letter) = letters.next() {
        match letter {
            '{' | '}' if !is_inside && letters.peek() == Some(&letter) => {
                letters.next();
                out.push(letter);
            }
            '{' => is_inside = true,
            '}' => {
                is_inside = false;
                out.push(HOLE);
            }
            _ if is_inside => {}
            _ => out.push(letter),
        }
    }
    out
}

/// The forms that a sentence of Core's may have in our source: whole, without the end that a common function appends,
/// or with the words of that end filled in.
fn forms(core: &str) -> BTreeSet<String> {
    let whole = core_form(core);
    let mut forms = BTreeSet::from([whole.clone()]);
    let end = format!(", {HOLE}");
    forms.extend(whole.strip_suffix(&end).map(str::to_owned));
    forms.insert(whole.replacen(&end, &format!(", disconnecting {HOLE}"), 1));
    let cut: Vec<_> = forms.iter().filter_map(|form| form.strip_suffix(HOLE).map(str::to_owned)).collect();
    forms.extend(cut);
    forms.insert(whole.replace(&format!("not {HOLE}"), &format!("not disconnecting {HOLE}")));
    forms
}

fn has(core: &str, ours: &BTreeSet<String>) -> bool {
    let forms = forms(core);
    if forms.iter().any(|form| ours.contains(form)) {
        return true;
    }
    // The sentence starts with the name of a function.
    let is_named = |form: &String| {
        let rest = form.trim_start_matches(HOLE);
        let is_name = |name: &str| name.chars().all(|letter| letter.is_alphanumeric() || letter == '_');
        rest.len() > 8 && rest != form && ours.iter().any(|our| our.strip_suffix(rest).is_some_and(is_name))
    };
    // One sentence of ours may cover several of Core's.
    let is_covered = |form: &String| ours.iter().any(|our| our.contains(HOLE) && covers(our, form));
    forms.iter().any(|form| is_named(form) || is_covered(form))
}

/// Whether our literal becomes the sentence when its holes are filled. It must have at least 12 letters of its own, and
/// a hole at its beginning or end is one word: text that a common function puts around any message covers no sentence.
fn covers(our: &str, core: &str) -> bool {
    if our.chars().filter(|letter| letter.is_alphabetic()).count() < 12 {
        return false;
    }
    let mut parts = our.split(HOLE);
    let Some(start) = parts.next() else { return false };
    let Some(mut rest) = core.strip_prefix(start) else { return false };
    let parts: Vec<&str> = parts.collect();
    for (index, part) in parts.iter().enumerate() {
        let (is_first, is_last) = (index == 0 && start.is_empty(), index + 1 == parts.len());
        let at = if is_last { rest.strip_suffix(part).map(str::len) } else { rest.find(part) };
        let Some(at) = at else { return false };
        if (is_first || is_last && part.is_empty()) && rest[..at].contains(' ') {
            return false;
        }
        rest = &rest[at + part.len()..];
    }
    rest.is_empty()
}

/// Whether the text is made elsewhere, so that there is nothing to compare.
fn is_trivial(core: &str) -> bool {
    core_form(core).split(|letter: char| !letter.is_ascii_alphabetic()).all(|word| word.len() < 2)
}

/// Programs that drive Core wait for its sentences: each one that Core logs has a row in the table, and each row is in
/// Core.
#[test]
fn every_sentence_of_core_is_in_the_table() {
    let name = "every_sentence_of_core_is_in_the_table";
    let Some(source) = lydian_oracle::or_skip(name, lydian_oracle::build::locate()).map(|built| built.source) else {
        return;
    };
    let root = source.join("src");
    let mut all = Vec::new();
    files(&root, &mut all);
    let mut found = BTreeSet::new();
    for path in all {
        let file = path.strip_prefix(&root).unwrap().display().to_string();
        let is_source = file.ends_with(".cpp") || file.ends_with(".h");
        if is_source && !SKIPPED.iter().any(|folder| file.starts_with(&format!("{folder}/"))) {
            extract(&file, &read(&path), &mut found);
        }
    }
    assert!(found.len() > 800, "only {} sentences were found", found.len());
    let known: BTreeSet<_> = table().into_keys().collect();
    let missing: Vec<_> = found.difference(&known).collect();
    assert!(missing.is_empty(), "not in docs/core-log.tsv: {missing:#?}");
    let gone: Vec<_> = known.difference(&found).collect();
    assert!(gone.is_empty(), "not in Core's source: {gone:#?}");
}

/// Each place named in the table has the sentence in Core's words; each row without a place has a reason.
#[test]
fn the_places_of_the_table_have_the_sentences() {
    let mut sources: BTreeMap<String, BTreeSet<String>> = BTreeMap::new();
    let mut here = 0;
    for (sentence, (place, reason)) in table() {
        if place == "-" {
            assert!(!reason.is_empty(), "why is this not here: {}", sentence.text);
            continue;
        }
        here += 1;
        let ours = sources.entry(place.clone()).or_insert_with(|| literals(&read(&root().join(&place))));
        assert!(is_trivial(&sentence.text) || has(&sentence.text, ours), "{place} lacks: {}", sentence.text);
    }
    assert!(here > 300, "only {here} sentences are here");
}

#[test]
fn sentences_are_found_and_compared() {
    let source = "LogDebug(BCLog::NET, \"a %d /* no comment */, %s\\n\", 1'000, x); // LogInfo(\"no\")\nLogInfo(CLIENT_NAME \" b\");";
    let mut found = BTreeSet::new();
    extract("f.cpp", source, &mut found);
    let texts: Vec<_> = found.iter().map(|sentence| (sentence.category.as_str(), sentence.text.as_str())).collect();
    assert_eq!(texts, [("net", "a %d /* no comment */, %s"), ("-", "%s b")]);
    let ours =
        literals("log(\"socket closed, disconnecting {peer}\"); log(\"ConnectTip: ConnectBlock {hash} failed\")");
    assert!(has("socket closed, %s", &ours));
    assert!(has("%s: ConnectBlock %s failed, %s", &ours));
    let around = literals("log(\"{reason}, disconnecting {peer}\"); log(\"Verification error: {text}\")");
    assert!(!has("Stopping node, %s", &around) && !has("Verification error: bad block at %d, hash=%s", &around));
    assert!(!has("socket opened, %s", &ours) && !has("ConnectBlock %s has failed", &ours));
}
