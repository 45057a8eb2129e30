//! Records that a signature engine was wrong: a file beside the block index for each case, an error in the log, and
//! advice for the user.
//!
//! Input: disagreements, from any thread. Output: `sigengine-disagreement-N.json`
//! (`docs/formats/sigengine-disagreement.md`). Invariants: a file is written once and never changed; the program
//! deletes none, so that the warning stays until the user has acted; the log has the case even if the file cannot be
//! written. Must never decide anything; the referee has done that.

use crate::clock::now;
use crate::limits::DISAGREEMENT_FILES_MAX;
use crate::log::Log;
use lydian_curve::{Check, Disagreement, Evidence};
use lydian_disk::{Disk, DiskErrorKind, OwnDir, OwnFile, Proof};
use serde::Serialize;
use std::fmt::Write as _;
use std::path::{Path, PathBuf};

/// Version of the file format: changes when a field changes its meaning or is removed.
const FORMAT: u32 = 1;

/// Name pattern of the files.
pub(crate) const FILES: &str = "sigengine-disagreement-#.json";

/// The files, in `blocks/index`: the index records the verdicts that they cast doubt on.
pub(crate) const DISAGREEMENT_FILES: &[OwnFile] = &[OwnFile { name: FILES, proof: Proof::Directory }];

const PREFIX: &str = "sigengine-disagreement-";
const SUFFIX: &str = ".json";

/// Advice for the user.
pub(crate) const ADVICE: &str = "What it verified in this data directory before may be wrong. Run lydian -reindex \
                                 -sigengine=reference once, then delete the sigengine-disagreement files in blocks/index.";

/// Contents of a file. Parts that do not apply to the kind of check are left out.
#[derive(Debug, Default, Serialize)]
struct Document {
    format: u32,
    lydian: &'static str,
    /// When it was written, in seconds since 1970.
    time: u32,
    kernel: &'static str,
    kind: &'static str,
    kernel_verdict: bool,
    reference_verdict: bool,
    #[serde(flatten)]
    parts: Parts,
    advice: &'static str,
}

/// Bytes, as hexadecimal digits.
#[derive(Debug, Default, Serialize)]
struct Parts {
    #[serde(skip_serializing_if = "Option::is_none")]
    key: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    message: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    signature: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    output: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    is_odd: Option<bool>,
    #[serde(skip_serializing_if = "Option::is_none")]
    internal: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    tweak: Option<String>,
    /// A description of what was accepted on the kernel's verdicts.
    #[serde(skip_serializing_if = "Option::is_none")]
    accepted: Option<String>,
}

/// Writes a case to a file and to the log. Returns the logged sentence.
pub(crate) fn keep(disk: &dyn Disk, log: &Log, directory: &Path, case: &Disagreement) -> String {
    let what = match &case.evidence {
        Evidence::Check { kernel, reference, .. } => {
            format!("returned {kernel} for a check for which libsecp256k1 returned {reference}")
        }
        Evidence::Accepted { what } => format!("accepted what libsecp256k1 rejects: {what}"),
    };
    let kept = match write(disk, directory, case) {
        Ok(path) => format!("its inputs are in {}", path.display()),
        Err(error) => format!("its inputs could not be saved: {error}"),
    };
    let sentence = format!(
        "Signature engine {} {what}; {kept}. It is no longer used; libsecp256k1 decides. {ADVICE}",
        case.kernel
    );
    log.error(&sentence);
    sentence
}

/// Names of the files in a directory, ordered by number.
pub(crate) fn files(disk: &dyn Disk, directory: &Path) -> Vec<String> {
    let entries = disk.list(directory).unwrap_or_default();
    let mut found: Vec<(u32, String)> = entries
        .iter()
        .filter_map(|(path, _)| {
            let name = path.file_name()?.to_str()?;
            let number = name.strip_prefix(PREFIX)?.strip_suffix(SUFFIX)?.parse().ok()?;
            Some((number, name.to_owned()))
        })
        .collect();
    found.sort_unstable();
    found.into_iter().map(|(_, name)| name).collect()
}

fn write(disk: &dyn Disk, directory: &Path, case: &Disagreement) -> Result<PathBuf, String> {
    let mut text = match serde_json::to_string_pretty(&document(case)) {
        Ok(text) => text,
        Err(error) => unreachable!("structures of numbers and texts are JSON: {error}"),
    };
    text.push('\n');
    for number in 1..=DISAGREEMENT_FILES_MAX {
        let path = directory.join(format!("{PREFIX}{number}{SUFFIX}"));
        match disk.kind(&path) {
            Ok(_) => {}
            Err(error) if error.kind == DiskErrorKind::NotFound => {
                let own = OwnDir::new(directory, DISAGREEMENT_FILES);
                own.replace(disk, &path, text.as_bytes()).map_err(|error| error.to_string())?;
                return Ok(path);
            }
            Err(error) => return Err(error.to_string()),
        }
    }
    Err(format!("{DISAGREEMENT_FILES_MAX} of these files already exist in {}", directory.display()))
}

fn document(case: &Disagreement) -> Document {
    let (kind, parts) = match &case.evidence {
        Evidence::Check { check, .. } => parts(check),
        Evidence::Accepted { what } => ("accepted", Parts { accepted: Some(what.clone()), ..Parts::default() }),
    };
    let (kernel_verdict, reference_verdict) = match case.evidence {
        Evidence::Check { kernel, reference, .. } => (kernel, reference),
        Evidence::Accepted { .. } => (true, false),
    };
    Document {
        format: FORMAT,
        lydian: env!("CARGO_PKG_VERSION"),
        time: now(),
        kernel: case.kernel,
        kind,
        kernel_verdict,
        reference_verdict,
        parts,
        advice: ADVICE,
    }
}

fn parts(check: &Check) -> (&'static str, Parts) {
    match check {
        Check::Ecdsa { key, message, signature } => (
            "ecdsa",
            Parts { key: hex(key.as_bytes()), message: hex(message), signature: hex(signature), ..Parts::default() },
        ),
        Check::Schnorr { key, message, signature } => {
            ("schnorr", Parts { key: hex(key), message: hex(message), signature: hex(signature), ..Parts::default() })
        }
        Check::Tweak { output, is_odd, internal, tweak } => {
            let is_odd = Some(*is_odd);
            (
                "tweak",
                Parts { output: hex(output), is_odd, internal: hex(internal), tweak: hex(tweak), ..Parts::default() },
            )
        }
    }
}

fn hex(bytes: &[u8]) -> Option<String> {
    let mut digits = String::with_capacity(2 * bytes.len());
    for byte in bytes {
        // Writing to a string cannot fail.
        let _ = write!(digits, "{byte:02x}");
    }
    Some(digits)
}

#[cfg(test)]
mod tests {
    use super::*;
    use lydian_curve::PublicKeyBytes;
    use lydian_disk::{SimDisk, limits::WHOLE_FILE_SIZE_MAX, read_whole};
    use serde_json::Value;
    use std::collections::BTreeSet;
    use std::sync::Arc;

    fn case(evidence: Evidence) -> Disagreement {
        Disagreement { kernel: "ifma512", evidence }
    }

    fn cases() -> [Disagreement; 4] {
        let check = |check| case(Evidence::Check { check, kernel: true, reference: false });
        let key = PublicKeyBytes::new(&[2; 33]).unwrap();
        [
            check(Check::Tweak { output: [1; 32], is_odd: true, internal: [2; 32], tweak: [3; 32] }),
            check(Check::Ecdsa { key, message: [4; 32], signature: [5; 64] }),
            check(Check::Schnorr { key: [6; 32], message: [7; 32], signature: [8; 64] }),
            case(Evidence::Accepted { what: "block 00 at height 5".to_owned() }),
        ]
    }

    fn read(disk: &SimDisk, path: &Path) -> Value {
        serde_json::from_slice(&read_whole(disk, path, WHOLE_FILE_SIZE_MAX).unwrap()).unwrap()
    }

    fn page() -> String {
        let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/formats/sigengine-disagreement.md");
        #[allow(clippy::disallowed_methods, reason = "a page of the documentation")]
        std::fs::read_to_string(path).unwrap()
    }

    #[test]
    fn files_are_as_documented() {
        let (disk, directory) = (SimDisk::new(0), Path::new("/"));
        let mut written = BTreeSet::new();
        for (number, case) in cases().iter().enumerate() {
            let path = write(&disk, directory, case).unwrap();
            assert_eq!(path, directory.join(format!("sigengine-disagreement-{}.json", number + 1)));
            let Value::Object(fields) = read(&disk, &path) else { panic!("an object") };
            written.extend(fields.keys().cloned());
        }
        let page = page();
        let mut documented = BTreeSet::new();
        for line in page.lines().filter(|line| line.starts_with("| `")) {
            let cell = line.split('|').nth(1).unwrap();
            documented.extend(cell.split('`').skip(1).step_by(2).map(str::to_owned));
        }
        assert_eq!(written, documented);
        let example = page.split("```json").nth(1).unwrap().split("```").next().unwrap();
        let mut example: Value = serde_json::from_str(example).unwrap();
        let found = read(&disk, Path::new("/sigengine-disagreement-1.json"));
        for field in ["lydian", "time"] {
            example[field] = found[field].clone();
        }
        assert_eq!(found, example);
        assert_eq!(read(&disk, Path::new("/sigengine-disagreement-2.json"))["key"], "02".repeat(33));
    }

    /// limit: DISAGREEMENT_FILES_MAX at
    /// limit: DISAGREEMENT_FILES_MAX above
    #[test]
    fn files_are_limited_numbered_and_never_replaced() {
        let (disk, directory) = (SimDisk::new(0), Path::new("/"));
        assert_eq!(files(&disk, directory), [""; 0]);
        let case = &cases()[3];
        for _ in 1..DISAGREEMENT_FILES_MAX {
            write(&disk, directory, case).unwrap();
        }
        disk.remove_file(Path::new("/sigengine-disagreement-7.json")).unwrap();
        disk.write_whole(Path::new("/sigengine-disagreement-x.json"), b"").unwrap();
        assert_eq!(write(&disk, directory, case), Ok("/sigengine-disagreement-7.json".into()), "the first free number");
        assert_eq!(write(&disk, directory, case), Ok("/sigengine-disagreement-100.json".into()));
        let names = files(&disk, directory);
        assert_eq!(
            (names.len(), &names[1][..], &names[99][..]),
            (100, "sigengine-disagreement-2.json", "sigengine-disagreement-100.json")
        );
        assert!(write(&disk, directory, case).unwrap_err().starts_with("100 of these files already exist in /"));
    }

    #[test]
    fn a_case_is_reported_if_its_file_cannot_be_written() {
        let disk = Arc::new(SimDisk::new(0));
        let settings = crate::settings::LogSettings { file: Some("/debug.log".into()), ..Default::default() };
        let log = Log::new(Arc::<SimDisk>::clone(&disk), &settings, false);
        log.open(false).unwrap();
        let sentence = keep(&*disk, &log, Path::new("/"), &cases()[0]);
        assert!(
            sentence.starts_with(
                "Signature engine ifma512 returned true for a check for which libsecp256k1 returned false"
            )
        );
        assert!(
            sentence.contains("in /sigengine-disagreement-1.json")
                && sentence.contains("-reindex -sigengine=reference")
        );
        for _ in 1..DISAGREEMENT_FILES_MAX {
            write(&*disk, Path::new("/"), &cases()[1]).unwrap();
        }
        let sentence = keep(&*disk, &log, Path::new("/"), &cases()[3]);
        assert!(
            sentence.contains("rejects: block 00 at height 5; its inputs could not be saved: 100 of these"),
            "{sentence}"
        );
        let text = read_whole(&*disk, Path::new("/debug.log"), WHOLE_FILE_SIZE_MAX).unwrap();
        let text = String::from_utf8(text).unwrap();
        assert_eq!(text.matches("[error] Signature engine ifma512").count(), 2, "{text}");
    }
}
