//! Why options, configuration files and `settings.json` cannot be used, in Bitcoin Core's words wherever Core has the
//! same error.

use std::fmt;
use std::path::PathBuf;

/// Errors in a single option: Core's `InterpretValue` and the checks around it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ArgumentProblem {
    /// An unknown option, or one with a section before it.
    Invalid {
        argument: String,
    },
    Negated {
        name: &'static str,
    },
    NoValue {
        name: &'static str,
    },
    /// `-includeconf` on the command line.
    Include {
        value: String,
    },
}

/// Errors in a configuration file: Core's `ReadConfigFiles`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ConfProblem {
    LeadingDash {
        line: usize,
        text: String,
    },
    HashInPassword {
        line: usize,
    },
    NoValue {
        line: usize,
        text: String,
    },
    /// `conf=` in a configuration file.
    Conf,
    Argument(ArgumentProblem),
    IsDirectory {
        path: PathBuf,
    },
    NotOpened {
        path: PathBuf,
    },
    IncludeIsDirectory {
        path: PathBuf,
    },
    NotIncluded {
        name: String,
    },
    NoSuchDataDir {
        text: String,
    },
    /// Core silently skips such a file.
    Unreadable {
        path: PathBuf,
        reason: String,
    },
}

/// Why `settings.json` cannot be used.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum FileProblem {
    Permissions {
        path: PathBuf,
    },
    NotJson {
        path: PathBuf,
    },
    Failed {
        path: PathBuf,
    },
    NotAnObject {
        path: PathBuf,
        value: String,
    },
    DuplicateKey {
        path: PathBuf,
        key: String,
    },
    /// A value that no option can have.
    Type {
        found: &'static str,
    },
    NotWritten {
        path: PathBuf,
    },
}

impl fmt::Display for ArgumentProblem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Invalid { argument } => write!(f, "Invalid parameter {argument}"),
            Self::Negated { name } => write!(f, "Negating of -{name} is meaningless and therefore forbidden"),
            Self::NoValue { name } => {
                write!(f, "Can not set -{name} with no value. Please specify value with -{name}=value.")
            }
            Self::Include { value } => {
                write!(f, "-includeconf cannot be used from commandline; -includeconf=\"{value}\"")
            }
        }
    }
}

impl fmt::Display for ConfProblem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::LeadingDash { line, text } => write!(
                f,
                "parse error on line {line}: {text}, options in configuration file must be specified without leading -"
            ),
            Self::HashInPassword { line } => write!(
                f,
                "parse error on line {line}, using # in rpcpassword can be ambiguous and should be avoided"
            ),
            Self::NoValue { line, text } => {
                write!(f, "parse error on line {line}: {text}")?;
                if text.starts_with("no") {
                    write!(f, ", if you intended to specify a negated option, use {text}=1 instead")?;
                }
                Ok(())
            }
            Self::Conf => f.write_str(
                "conf cannot be set in the configuration file; use includeconf= if you want to include additional config files",
            ),
            Self::Argument(problem) => problem.fmt(f),
            Self::IsDirectory { path } => write!(f, "Config file \"{}\" is a directory.", path.display()),
            Self::NotOpened { path } => {
                write!(f, "specified config file \"{}\" could not be opened.", path.display())
            }
            Self::IncludeIsDirectory { path } => {
                write!(f, "Included config file \"{}\" is a directory.", path.display())
            }
            Self::NotIncluded { name } => write!(f, "Failed to include configuration file {name}"),
            Self::NoSuchDataDir { text } => write!(f, "specified data directory \"{text}\" does not exist."),
            Self::Unreadable { path, reason } => write!(f, "{}: {reason}", path.display()),
        }
    }
}

impl fmt::Display for FileProblem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        const NOT_READ: &str = "Settings file could not be read:\n- ";
        match self {
            Self::Permissions { path } => write!(f, "{NOT_READ}{}. Please check permissions.", path.display()),
            Self::NotJson { path } => write!(
                f,
                "{NOT_READ}Settings file {} does not contain valid JSON. This may be caused by a crash, power loss, full disk, or storage error, \
                 and can be fixed by removing the file, which will reset settings to default values.",
                path.display()
            ),
            Self::Failed { path } => write!(f, "{NOT_READ}Failed reading settings file {}", path.display()),
            Self::NotAnObject { path, value } => {
                write!(f, "{NOT_READ}Found non-object value {value} in settings file {}", path.display())
            }
            Self::DuplicateKey { path, key } => {
                write!(f, "{NOT_READ}Found duplicate key {key} in settings file {}", path.display())
            }
            Self::Type { found } => write!(f, "JSON value of type {found} is not of expected type string"),
            Self::NotWritten { path } => write!(
                f,
                "Settings file could not be written:\n- Error: Unable to open settings file {}.tmp for writing",
                path.display()
            ),
        }
    }
}

impl std::error::Error for ArgumentProblem {}
impl std::error::Error for ConfProblem {}
impl std::error::Error for FileProblem {}
