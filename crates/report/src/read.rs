//! Reads a results file written by this lab or another one.
//!
//! Input: a path. Output: the results, or what is wrong with the file and what to do about it. Cost: the file in
//! memory, at most [`RESULTS_BYTES_MAX`]. Must never: accept a file that is not a results file, or fill in fields that
//! a damaged file lacks.

use crate::electrum;
use crate::error::ReportError;
use crate::limits::RESULTS_BYTES_MAX;
use crate::results::{FORMAT, Results};
use lydian_disk::{Disk, DiskErrorKind, PathKind, RealDisk, read_whole};
use serde_json::Value;
use serde_json::error::Category;
use std::fmt;
use std::path::Path;

/// What is wrong with a results file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ResultsFault {
    Missing,
    /// A folder, or something else that is not a regular file.
    NoFile,
    TooLarge,
    /// The file ends before its JSON document does.
    CutOff,
    /// Invalid JSON at this line and column.
    Corrupt {
        line: usize,
        column: usize,
    },
    /// Valid JSON, but not results.
    Foreign(String),
    Older {
        format: u64,
    },
    Newer {
        format: u64,
    },
    /// Results of `lydian-lab electrum`.
    Electrum,
}

impl fmt::Display for ResultsFault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            ResultsFault::Missing => f.write_str("there is no such file; `lydian-lab reindex` or `sync` with --out writes one"),
            ResultsFault::NoFile => f.write_str("this is not a file; give the file that --out named"),
            ResultsFault::TooLarge => {
                write!(f, "it is larger than {RESULTS_BYTES_MAX} bytes, the limit for results; give the file that --out named")
            }
            ResultsFault::CutOff => {
                f.write_str("the file is cut off; copy it again, or measure again")
            }
            ResultsFault::Corrupt { line, column } => {
                write!(f, "it is damaged at line {line}, column {column}; copy it again, or measure again")
            }
            ResultsFault::Foreign(reason) => {
                write!(f, "these are not results of `lydian-lab reindex` or `sync` ({reason}); give the file that --out named")
            }
            ResultsFault::Older { format } => write!(
                f,
                "it has the older format {format}, and this lydian-lab reads {FORMAT}; read it with the version that wrote it, or measure again"
            ),
            ResultsFault::Newer { format } => {
                write!(f, "it has format {format}, and this lydian-lab reads {FORMAT}; read it with a newer lydian-lab")
            }
            ResultsFault::Electrum => f.write_str(
                "these are results of `lydian-lab electrum`; this command accepts only those of reindex and sync, `lydian-lab report` accepts both kinds",
            ),
        }
    }
}

impl Results {
    pub fn read(path: &Path) -> Result<Results, ReportError> {
        let failed = |fault| ReportError::Results { path: path.to_owned(), fault };
        match RealDisk.kind(path) {
            Ok(PathKind::File) => {}
            Ok(_) => return Err(failed(ResultsFault::NoFile)),
            Err(error) if error.kind == DiskErrorKind::NotFound => return Err(failed(ResultsFault::Missing)),
            Err(error) => return Err(error.into()),
        }
        if RealDisk.open(path)?.size() > RESULTS_BYTES_MAX {
            return Err(failed(ResultsFault::TooLarge));
        }
        Results::parse(&read_whole(&RealDisk, path, RESULTS_BYTES_MAX)?).map_err(failed)
    }

    /// Parses the contents of a results file.
    pub fn parse(bytes: &[u8]) -> Result<Results, ResultsFault> {
        let document: Value = serde_json::from_slice(bytes).map_err(|error| fault_of(&error))?;
        if document["experiment"] == electrum::results::EXPERIMENT {
            return Err(ResultsFault::Electrum);
        }
        match document["format"].as_u64() {
            None => return Err(ResultsFault::Foreign("it has no format number".into())),
            Some(format) if format < u64::from(FORMAT) => return Err(ResultsFault::Older { format }),
            Some(format) if format > u64::from(FORMAT) => return Err(ResultsFault::Newer { format }),
            Some(_) => {}
        }
        serde_json::from_value(document).map_err(|error| ResultsFault::Foreign(error.to_string()))
    }
}

fn fault_of(error: &serde_json::Error) -> ResultsFault {
    match error.classify() {
        Category::Eof => ResultsFault::CutOff,
        Category::Io | Category::Syntax | Category::Data => {
            ResultsFault::Corrupt { line: error.line(), column: error.column() }
        }
    }
}

#[cfg(test)]
#[allow(clippy::disallowed_methods, reason = "tests read and write their own files")]
mod tests {
    use super::*;
    use serde_json::json;

    const DOCUMENT: &str = include_str!("../../../docs/formats/lab-results.md");

    fn example() -> &'static str {
        let (_, rest) = DOCUMENT.split_once("```json\n").unwrap();
        rest.split_once("```").unwrap().0
    }

    #[test]
    fn each_fault_of_the_bytes_is_reported() {
        assert!(Results::parse(example().as_bytes()).is_ok());
        let with = |name: &str, value: Value| {
            let mut document: Value = serde_json::from_str(example()).unwrap();
            document[name] = value;
            Results::parse(document.to_string().as_bytes()).unwrap_err()
        };
        // Truncated at any position.
        for end in [0, 1, 100, example().trim_end().len() / 2, example().trim_end().len() - 1] {
            assert_eq!(Results::parse(&example().as_bytes()[..end]), Err(ResultsFault::CutOff), "{end}");
        }
        assert_eq!(with("format", json!(0)), ResultsFault::Older { format: 0 });
        assert_eq!(with("format", json!(2)), ResultsFault::Newer { format: 2 });
        assert_eq!(with("experiment", json!("electrum")), ResultsFault::Electrum);
        assert!(matches!(with("format", json!("one")), ResultsFault::Foreign(_)));
        assert!(matches!(with("runs", json!(7)), ResultsFault::Foreign(_)));
        assert!(matches!(Results::parse(b"[]"), Err(ResultsFault::Foreign(_))));
        let mut damaged = example().as_bytes().to_vec();
        let place = example().find("\"runs\"").unwrap();
        damaged[place] = b'x';
        let fault = Results::parse(&damaged).unwrap_err();
        assert!(matches!(fault, ResultsFault::Corrupt { line, .. } if line > 10), "{fault:?}");
        // Bytes that are not UTF-8.
        damaged[place] = 0xff;
        assert!(matches!(Results::parse(&damaged), Err(ResultsFault::Corrupt { .. })));
    }

    /// The message names the file and says what to do.
    /// limit: RESULTS_BYTES_MAX at
    /// limit: RESULTS_BYTES_MAX above
    #[test]
    fn each_fault_of_the_file_is_reported() {
        let folder = std::env::temp_dir().join(format!("lydian-lab-read-{}", std::process::id()));
        std::fs::create_dir_all(&folder).unwrap();
        let path = folder.join("results.json");
        let said = |path: &Path| Results::read(path).unwrap_err().to_string();
        assert!(said(&path).starts_with(&path.display().to_string()), "{}", said(&path));
        assert!(said(&path).contains("no such file"));
        assert!(said(&folder).contains("this is not a file"));
        std::fs::write(&path, example()).unwrap();
        assert!(Results::read(&path).is_ok());
        // At the limit the file is read, and the damage after the document is found; above the limit it is not read.
        let file = std::fs::OpenOptions::new().write(true).open(&path).unwrap();
        file.set_len(RESULTS_BYTES_MAX).unwrap();
        assert!(said(&path).contains("is damaged at line"), "{}", said(&path));
        file.set_len(RESULTS_BYTES_MAX + 1).unwrap();
        assert!(said(&path).contains("the limit for results"), "{}", said(&path));
        std::fs::remove_dir_all(&folder).unwrap();
    }
}
