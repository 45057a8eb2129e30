//! `lydian doctor`: each check once where all is well, and once with a real fault.

mod bundle;
mod faults;
mod machine;
mod running;

use crate::{MIX, Place};
use rustix::process::getuid;
use serde_json::Value;
use std::collections::BTreeMap;
use std::fs;
use std::path::Path;
use std::process::{Command, Output};
use std::time::SystemTime;

/// What `lydian doctor --json` printed, and its exit code.
struct Seen {
    report: Value,
    code: i32,
}

impl Seen {
    fn of(output: Output) -> Seen {
        let (out, err) = (String::from_utf8(output.stdout).unwrap(), String::from_utf8(output.stderr).unwrap());
        assert!(!err.contains("panicked"), "{err}");
        let report = serde_json::from_str(&out).unwrap_or_else(|error| panic!("{error}: {out}{err}"));
        Seen { report, code: output.status.code().unwrap() }
    }

    fn check(&self, name: &str) -> &Value {
        let checks = self.report["checks"].as_array().unwrap();
        checks.iter().find(|check| check["name"] == name).unwrap_or_else(|| panic!("no check {name}"))
    }

    /// The answer to a check must have this level and these words.
    #[track_caller]
    fn expect(&self, name: &str, level: &str, words: &str) {
        let check = self.check(name);
        let text = check["text"].as_str().unwrap();
        assert!(check["level"] == level && text.contains(words), "{name}: {check}");
        assert_eq!(check["advice"].is_string(), ["warning", "bad"].contains(&level), "{check}");
    }

    fn has(&self, level: &str) -> bool {
        self.report["checks"].as_array().unwrap().iter().any(|check| check["level"] == level)
    }
}

/// The program through a shell, after these commands; `$0` is the program.
fn through(mut shell: Command, place: &Place, commands: &str, arguments: &[&str]) -> Command {
    let inner = place.command(arguments);
    shell.args(["-c", &format!("{commands} exec \"$0\" \"$@\"")]);
    shell.arg(inner.get_program()).args(inner.get_args()).env("HOME", &place.directory);
    shell
}

/// The same in a shell that may mount file systems.
fn in_shell(place: &Place, commands: &str, arguments: &[&str]) -> Command {
    let mut shell = Command::new("unshare");
    shell.args(["--mount", "--map-root-user", "sh"]);
    through(shell, place, commands, arguments)
}

/// `lydian doctor --json` through a shell.
fn after(place: &Place, commands: &str, arguments: &[&str]) -> Command {
    in_shell(place, commands, &[&["doctor", "--json"], arguments].concat())
}

fn doctor(place: &Place, arguments: &[&str]) -> Seen {
    Seen::of(place.command(&[&["doctor", "--json"], arguments].concat()).output().unwrap())
}

/// Names, sizes and times of everything in a folder.
fn state(folder: &Path) -> BTreeMap<String, (u64, SystemTime)> {
    let mut found = BTreeMap::new();
    for entry in fs::read_dir(folder).unwrap().map(Result::unwrap) {
        let (path, metadata) = (entry.path(), entry.metadata().unwrap());
        if metadata.is_dir() {
            found.extend(state(&path));
        }
        found.insert(path.display().to_string(), (metadata.len(), metadata.modified().unwrap()));
    }
    found
}

/// What depends on the machine is asked, and not bad on one that runs these tests.
const OF_MACHINE: [&str; 7] =
    ["file-system", "sync-time", "read-latency", "io-uring", "kernels", "kernel-speed", "clock"];

#[test]
fn a_healthy_directory_has_no_fault_and_stays_as_it_is() {
    let place = Place::new("doctor-healthy");
    let arguments = ["import", MIX.to_str().unwrap(), "--copy", "-blockfilterindex", "-txindex"];
    assert_eq!(place.run(&arguments).2, 0);
    let before = state(&place.data());
    let look = || doctor(&place, &["-par=1", "-dbcache=100", "-maxmempool=50"]);
    let is_good = |seen: &Seen| OF_MACHINE.iter().all(|name| seen.check(name)["level"] != "bad");
    // A stall of the machine during a measurement looks like a fault, so it is measured again.
    let first = look();
    assert_eq!(state(&place.data()), before, "nothing was changed");
    let seen = if is_good(&first) { first } else { (0..5).map(|_| look()).find(is_good).unwrap_or(first) };
    for name in [
        "free-space",
        "memory",
        "limits",
        "open-files",
        "ports",
        "holder",
        "permissions",
        "formats",
        "clean-stop",
        "disagreements",
        "sample",
        "settings",
        "unknown-options",
        "core-options",
        "contradictions",
    ] {
        seen.expect(name, "ok", "");
    }
    seen.expect("sample", "ok", "32 records of coins, ");
    seen.expect("clean-stop", "ok", "at height 440");
    for name in ["rpc", "peers", "tip", "warnings", "index-lag"] {
        seen.expect(name, "skipped", "no node runs");
    }
    for name in OF_MACHINE {
        assert_ne!(seen.check(name)["level"], "bad", "{}", seen.check(name));
    }
    seen.expect("user", if getuid().is_root() { "warning" } else { "ok" }, "");
    let levels = ["ok", "warning", "bad"];
    let code = levels.iter().rposition(|level| seen.has(level)).unwrap();
    let worst = levels[code];
    assert_eq!((&seen.report["level"], seen.code), (&Value::from(worst), i32::try_from(code).unwrap()));
}

/// The fields that docs/doctor.md lists, and the text for people.
#[test]
fn the_output_is_as_documented() {
    let place = Place::new("doctor-output");
    let seen = doctor(&place, &[]);
    let page = include_str!("../../../../docs/doctor.md");
    let fields = seen.report.as_object().unwrap().keys();
    fields.for_each(|field| assert!(page.contains(&format!("`{field}`")), "{field} is not documented"));
    let names: Vec<&str> = page.lines().filter_map(|line| line.strip_prefix("| `")?.split('`').next()).collect();
    for check in seen.report["checks"].as_array().unwrap() {
        assert!(names.contains(&check["name"].as_str().unwrap()), "{check}");
        check.as_object().unwrap().keys().for_each(|key| assert!(page.contains(&format!("`{key}`")), "{key}"));
    }
    // An empty directory is no fault.
    for name in ["holder", "free-space"] {
        seen.expect(name, "ok", "");
    }
    seen.expect("sample", "skipped", "");
    let (out, _, code) = place.run(&["doctor"]);
    assert_eq!(code, seen.code);
    assert!(out.contains("ok       holder") && out.lines().last().unwrap().contains(" not asked, in "), "{out}");
    // A path is never broken, so a line with a long one may be longer.
    let is_narrow = |line: &str| line.chars().count() <= 100 || line.split(' ').any(|word| word.chars().count() > 75);
    assert!(out.lines().all(is_narrow), "{out}");
    let (_, err, code) = place.run(&["doctor", "--nonsense"]);
    assert!(code == 2 && err.contains("Invalid parameter --nonsense"), "{err}");
}
