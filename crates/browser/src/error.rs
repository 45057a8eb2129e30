//! What can go wrong with a browser.

use std::path::PathBuf;
use std::time::Duration;

/// The reason why a browser did not do what a test asked for.
#[derive(Debug)]
pub enum BrowserError {
    /// No browser is installed, and `LYDIAN_REQUIRE_BROWSER=1` demands one.
    Missing,
    /// The program does not start or opens no port.
    Start { program: PathBuf, text: String },
    /// The connection to the browser failed, or a file could not be written.
    Io { what: String, text: String },
    /// The browser refused a command.
    Refused { method: String, text: String },
    /// An answer of the browser has another form than the protocol says.
    Answer { method: String, text: String },
    /// A script threw an exception.
    Script { script: String, text: String },
    /// An element is missing, invisible or covered by another.
    Element { selector: String, text: String },
    /// A key without a code in the table of keys.
    Key { name: String },
    /// Something did not happen in time.
    Timeout { what: String, after: Duration },
}

impl std::fmt::Display for BrowserError {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Missing => write!(f, "no browser; apt-get install chromium"),
            Self::Start { program, text } => write!(f, "{} does not start: {text}", program.display()),
            Self::Io { what, text } => write!(f, "{what}: {text}"),
            Self::Refused { method, text } => write!(f, "the browser refused {method}: {text}"),
            Self::Answer { method, text } => write!(f, "unexpected answer to {method}: {text}"),
            Self::Script { script, text } => write!(f, "exception in `{script}`: {text}"),
            Self::Element { selector, text } => write!(f, "element `{selector}`: {text}"),
            Self::Key { name } => write!(f, "unknown key {name}"),
            Self::Timeout { what, after } => write!(f, "not within {} ms: {what}", after.as_millis()),
        }
    }
}

impl std::error::Error for BrowserError {}
