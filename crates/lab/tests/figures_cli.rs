//! `lydian-lab compare`, `project`, `thin` and `scale project` as processes, the first three on the example of the
//! format's document.
//!
//! The tests cover exit codes, and the messages for files that are damaged, older, or of another kind.

#![allow(
    clippy::unwrap_used,
    clippy::disallowed_methods,
    reason = "a test fails by panicking, and reads its own files"
)]

use lydian_oracle::Scratch;
use lydian_report::results::Results;
use serde_json::Value;
use std::path::PathBuf;
use std::process::{Command, Output};

const DOCUMENT: &str = include_str!("../../../docs/formats/lab-results.md");

struct Bench(Scratch);

impl Bench {
    fn new(name: &str) -> Bench {
        let bench = Bench(Scratch::new(&format!("figures-cli-{name}")));
        std::fs::create_dir_all(bench.0.path()).unwrap();
        bench
    }

    fn write(&self, name: &str, text: &str) -> String {
        let path = self.0.path().join(name);
        std::fs::write(&path, text).unwrap();
        path.display().to_string()
    }

    /// The document's example with a change applied.
    fn results(&self, name: &str, change: impl Fn(&mut Value)) -> String {
        let (_, rest) = DOCUMENT.split_once("```json\n").unwrap();
        let mut value: Value = serde_json::from_str(rest.split_once("```").unwrap().0).unwrap();
        change(&mut value);
        self.write(name, &value.to_string())
    }

    fn lab(&self, arguments: &[&str]) -> (i32, String) {
        let output: Output = Command::new(env!("CARGO_BIN_EXE_lydian-lab")).args(arguments).output().unwrap();
        let text = [output.stdout, output.stderr].map(|bytes| String::from_utf8(bytes).unwrap()).concat();
        (output.status.code().unwrap(), text)
    }

    fn fails(&self, arguments: &[&str], words: &str) {
        let (code, text) = self.lab(arguments);
        assert_eq!(code, 2, "{text}");
        assert!(text.contains(words), "{words} not in {text}");
    }
}

/// Three runs of every node, with the CPU time of all of them multiplied by `factor`.
fn quiet(value: &mut Value, factor: f64) {
    let runs = value["runs"].as_array().unwrap().clone();
    let counted: Vec<Value> = runs.into_iter().filter(|run| run["outcome"] == "counted").collect();
    let mut all = Vec::new();
    for run in counted {
        for slower in [1.0, 1.01, 1.02] {
            let mut run = run.clone();
            for field in ["user_seconds", "system_seconds"] {
                run[field] = (if run["node"] == "knots" { 10.0 } else { 12.0 } * slower * factor).into();
            }
            all.push(run);
        }
    }
    value["runs"] = all.into();
}

#[test]
fn compare_ends_with_0_1_or_2() {
    let bench = Bench::new("compare");
    let old = bench.results("old.json", |value| quiet(value, 1.0));
    let slow = bench.results("slow.json", |value| quiet(value, 1.5));
    let other = bench.results("other.json", |value| value["chain"]["sha256"] = "00".into());
    let (code, text) = bench.lab(&["compare", &old, &old]);
    assert_eq!(code, 0, "{text}");
    let (code, text) = bench.lab(&["compare", &old, &slow]);
    assert_eq!(code, 1, "{text}");
    assert!(text.contains("| bitcoind | CPU s | 24.24 [24.00-24.48], ") && text.contains("**slower**"), "{text}");
    // All runs of the example were disturbed, so their wall time proves nothing.
    assert!(text.contains("every run on one side was disturbed"), "{text}");
    assert_eq!(bench.lab(&["compare", &slow, &old, "--json"]).0, 0);
    assert_eq!(bench.lab(&["compare", &old, &slow, "--threshold", "60%"]).0, 0);
    let (code, text) = bench.lab(&["compare", &old, &other]);
    assert_eq!(code, 2);
    assert!(text.contains("NOT COMPARABLE") && text.contains("different block files"), "{text}");
    assert_eq!(bench.lab(&["compare", &old, &old, "--threshold", "5"]).0, 2);
}

#[test]
fn files_that_are_no_results_are_refused_with_what_they_are() {
    let bench = Bench::new("bad");
    let old = bench.results("old.json", |_| {});
    let whole = std::fs::read_to_string(&old).unwrap();
    let cut = bench.write("cut.json", &whole[..whole.len() / 2]);
    let damaged = bench.write("damaged.json", &whole.replacen(':', ";", 1));
    let older = bench.results("older.json", |value| value["format"] = 0.into());
    for (path, words) in [(&cut, "cut off"), (&damaged, "damaged"), (&older, "older format 0")] {
        bench.fails(&["compare", &old, path], words);
        bench.fails(&["project", path], words);
        bench.fails(&["thin", path, "--out", "."], words);
    }
    bench.fails(&["compare", &old, "nowhere.json"], "no such file");
}

#[test]
fn project_says_what_it_is_and_refuses_other_targets() {
    let bench = Bench::new("project");
    let results = bench.results("results.json", |_| {});
    let (code, text) = bench.lab(&["project", &results, "--to", "mainnet@928000", "--cores", "6"]);
    assert_eq!(code, 0, "{text}");
    assert!(
        text.starts_with("PROJECTION, not a measurement") && text.contains("| bitcoind | reindex on mainnet-mix |"),
        "{text}"
    );
    let (code, text) = bench.lab(&["project", &results, "--json"]);
    let json: Value = serde_json::from_str(&text).unwrap();
    assert_eq!((code, &json["kind"], &json["counts"]["target"]["height"]), (0, &"projection".into(), &928_000.into()));
    bench.fails(&["project", &results, "--to", "signet@100"], "only mainnet's counts are known");
    bench.fails(&["project", &results, "--to", "mainnet@1"], "from height 840000 to 935000");
    bench.fails(&["project", &results, "--cores", "0"], "--cores 0");
    let empty = bench.results("none.json", |value| value["summary"] = Value::Array(Vec::new()));
    let (code, text) = bench.lab(&["project", &empty]);
    assert_eq!(code, 1, "{text}");
    assert!(text.contains("not projected"), "{text}");
}

#[test]
fn thin_keeps_the_figures() {
    let bench = Bench::new("thin");
    let results = bench.results("results.json", |value| value["nodes"][0]["program"] = "/var/x/bitcoind".into());
    let out = bench.0.path().join("small");
    let (code, text) = bench.lab(&["thin", &results, "--samples", "1", "--out", &out.display().to_string()]);
    assert_eq!(code, 0, "{text}");
    assert!(text.contains("samples are kept"), "{text}");
    let (old, new) =
        (Results::read(&PathBuf::from(results)).unwrap(), Results::read(&out.join("results.json")).unwrap());
    assert_eq!((new.summary, new.nodes[0].program.as_str()), (old.summary, "bitcoind"));
    assert!(new.runs.iter().all(|run| run.samples.len() <= 1) && new.thinned.is_some());
}

#[test]
fn project_takes_no_results_of_two_builds() {
    let bench = Bench::new("builds");
    let one = bench.results("one.json", |value| value["nodes"][0]["program_sha256"] = "aa".into());
    let other = bench.results("other.json", |value| value["nodes"][0]["program_sha256"] = "bb".into());
    bench.fails(&["project", &one, &other], "other.json are of two builds of");
    bench.fails(&["project", &one, &other], "one.json and");
}

/// Costs come from results files, and from options, which win.
#[test]
fn the_needs_of_wallets_are_projected_from_costs() {
    let bench = Bench::new("wallets");
    let (code, text) = bench.lab(&["scale", "project", "--wallets", "10000000"]);
    assert_eq!(code, 0, "{text}");
    assert!(text.contains("| requests at the peak | 48,600/s |"), "{text}");
    assert!(text.contains("| connections at the peak | 400,000 |"), "{text}");
    let cost = |low: f64, high: f64| serde_json::json!({"low": low, "value": f64::midpoint(low, high), "high": high});
    let none = || serde_json::json!({});
    let of_fronts = serde_json::json!({"costs": {"request_us": cost(100.0, 300.0), "reads": cost(1.0, 1.0)}});
    let fronts = bench.write("fronts.json", &of_fronts.to_string());
    let copies = bench.write("copies.json", &serde_json::json!({"costs": {"whole_us": cost(90.0, 110.0)}}).to_string());
    let with = ["scale", "project", "--wallets", "1e7", "--results", &fronts, "--results", &copies, "--json"];
    let projected = |more: &[&str]| -> Value {
        let (code, text) = bench.lab(&[&with[..], more].concat());
        assert_eq!(code, 0, "{text}");
        serde_json::from_str(&text).unwrap()
    };
    let figure = |json: &Value, name: &str| -> Value {
        let found = json["figures"].as_array().unwrap().iter().find(|figure| figure["name"] == name);
        found.map_or_else(none, |figure| figure["estimate"].clone())
    };
    let json = projected(&[]);
    assert_eq!(figure(&json, "front_cores")["high"], 29.166_667);
    assert_eq!(figure(&json, "whole_copies"), serde_json::json!({"low": 3.0, "value": 3.0, "high": 3.0}));
    assert_eq!((figure(&json, "store_cores"), &json["left_out"][0][0]), (none(), &"front_bytes".into()));
    let json = projected(&["--cpu-request-us", "500", "--cpu-read-us", "100..200"]);
    assert_eq!(figure(&json, "front_cores")["low"], 48.611_111);
    assert_eq!(figure(&json, "store_cores")["low"], 9.722_222);
    bench.fails(&["scale", "project", "--wallets", "0"], "--wallets, --sessions-per-day");
    bench.fails(&["scale", "project", "--wallets", "1", "--cpu-request-us", "9..1"], "neither a number above 0 nor");
    let other = bench.write("other.json", "{}");
    bench.fails(&["scale", "project", "--wallets", "1", "--results", &other], "no results of `scale cluster`");
    bench.fails(&["scale", "cluster", "--failures", "fire"], "--failures: there is no fire here");
}
