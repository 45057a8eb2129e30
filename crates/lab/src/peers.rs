//! `lydian-lab peers install NAME`: other nodes, brought from the package sources that this machine already uses.
//!
//! Input: a name. Output: the node in the cache folder. btcd is built from its Go module, whose sums Go checks, with Go's own caches. Knots is Debian's package of the unstable release with the C library of that release, so
//! that it runs on an older system; apt works in a folder of its own with an empty list of installed packages. Must never: change anything of the
//! system's own apt or dpkg, or leave half an installation behind. Cost: about 27 MB of download for Knots, ten seconds
//! of one core for btcd.

use crate::error::LabError;
use crate::runs::adapter::ask;
use crate::runs::adapters::{BTCD_FOLDER, BTCD_PROGRAM, BTCD_VERSION, KNOTS_FOLDER, adapter, cache_folder};
use crate::runs::system::{create_dir, read_proc, remove_dir};
use lydian_disk::{Disk, RealDisk};
use std::path::{Path, PathBuf};
use std::process::Command;

const RELEASE: &str = "sid";
const PACKAGE: &str = "bitcoin-knots";
const SOURCE_FOLDER: &str = "/etc/apt/sources.list.d";
const SOURCE_FILE: &str = "/etc/apt/sources.list";
const KEYRING: &str = "/usr/share/keyrings/debian-archive-keyring.gpg";

/// Installs the node if it is not there yet, and returns its version.
pub fn install(name: &str, say: &mut dyn FnMut(&str)) -> Result<String, LabError> {
    let fetch = match name {
        "knots" => knots,
        "btcd" => btcd,
        _ => {
            let text =
                format!("peers install: {name} cannot be installed; knots and btcd can (`make judge` builds bitcoind)");
            return Err(LabError::Usage(text));
        }
    };
    if let Ok(version) = adapter(name, None).and_then(|node| node.version()) {
        return Ok(version);
    }
    fetch(say)?;
    adapter(name, None)?.version()
}

/// Built beside its final place, so that what is there is whole.
fn btcd(say: &mut dyn FnMut(&str)) -> Result<(), LabError> {
    let (folder, unfinished) = (cache_folder().join(BTCD_FOLDER), cache_folder().join(format!("{BTCD_FOLDER}.new")));
    remove_dir(&unfinished)?;
    create_dir(&unfinished)?;
    say(&format!("building btcd {BTCD_VERSION} with go"));
    let mut command = Command::new("go");
    // Outside a checkout there is nothing to stamp.
    command.env("GOBIN", &unfinished).env("GOFLAGS", "-buildvcs=false").current_dir(&unfinished);
    command.arg("install").arg(format!("github.com/btcsuite/btcd@{BTCD_VERSION}"));
    ask(command)?;
    if !unfinished.join(BTCD_PROGRAM).is_file() {
        return Err(LabError::program("go install", format!("{} holds no {BTCD_PROGRAM}", unfinished.display())));
    }
    finish(&unfinished, &folder)
}

fn finish(unfinished: &Path, folder: &Path) -> Result<(), LabError> {
    remove_dir(folder)?;
    std::fs::rename(unfinished, folder).map_err(|error| LabError::io("rename", unfinished, error))
}

fn knots(say: &mut dyn FnMut(&str)) -> Result<(), LabError> {
    let mirror = debian_mirror(&source_texts())
        .ok_or_else(|| LabError::Usage("peers install: no source of Debian packages is set up here".into()))?;
    let (folder, unfinished) = (cache_folder().join(KNOTS_FOLDER), cache_folder().join(format!("{KNOTS_FOLDER}.new")));
    remove_dir(&unfinished)?;
    say(&format!("downloading {PACKAGE} and its libraries of Debian {RELEASE}"));
    let packages = download(&unfinished, &mirror)?;
    let root = unfinished.join("root");
    create_dir(&root)?;
    for package in &packages {
        let mut command = Command::new("dpkg");
        command.arg("-x").arg(package).arg(&root);
        ask(command)?;
    }
    remove_dir(&unfinished.join("apt"))?;
    finish(&unfinished, &folder)
}

/// Lets apt choose and fetch what the package needs, as if nothing were installed.
fn download(unfinished: &Path, mirror: &str) -> Result<Vec<PathBuf>, LabError> {
    let apt = unfinished.join("apt");
    for part in ["etc", "state/lists/partial", "cache/archives/partial"] {
        create_dir(&apt.join(part))?;
    }
    RealDisk.write_whole(&apt.join("status"), b"")?;
    let source = format!("deb [signed-by={KEYRING}] {mirror} {RELEASE} main\n");
    RealDisk.write_whole(&apt.join("etc/sources.list"), source.as_bytes())?;
    let configuration = apt.join("apt.conf");
    RealDisk.write_whole(&configuration, configuration_of(&apt.display().to_string()).as_bytes())?;
    let apt_get = |arguments: &[&str]| {
        let mut command = Command::new("apt-get");
        command.env("APT_CONFIG", &configuration).env("DEBIAN_FRONTEND", "noninteractive").args(arguments);
        ask(command)
    };
    apt_get(&["-q", "update"])?;
    apt_get(&["-q", "-y", "--download-only", "install", PACKAGE])?;
    let entries = RealDisk.list(&apt.join("cache/archives"))?;
    Ok(entries.into_iter().map(|(path, _)| path).filter(|path| path.extension().is_some_and(|e| e == "deb")).collect())
}

/// Only the folder's own lists and sources; of the system's settings those about the network (a proxy) stay.
fn configuration_of(apt: &str) -> String {
    format!(
        "Dir \"{apt}\";\nDir::State \"{apt}/state\";\nDir::State::status \"{apt}/status\";\nDir::Cache \"{apt}/cache\";\n\
         Dir::Etc \"{apt}/etc\";\nDir::Etc::parts \"/etc/apt/apt.conf.d\";\nDir::Etc::sourcelist \"{apt}/etc/sources.list\";\n\
         Dir::Etc::sourceparts \"-\";\nDir::Etc::preferencesparts \"-\";\nAcquire::Check-Valid-Until \"false\";\n\
         Acquire::Languages \"none\";\nAPT::Install-Recommends \"false\";\nAPT::Sandbox::User \"root\";\n"
    )
}

fn source_texts() -> String {
    let listed = RealDisk.list(Path::new(SOURCE_FOLDER)).unwrap_or_default();
    let is_source = |path: &PathBuf| path.extension().is_some_and(|end| end == "sources" || end == "list");
    let files = listed.into_iter().map(|(path, _)| path).filter(is_source);
    let texts = files.chain([PathBuf::from(SOURCE_FILE)]).filter_map(|path| read_proc(&path.to_string_lossy()));
    texts.collect::<Vec<_>>().join("\n")
}

/// The first address in the sources that ends as Debian's main archive does, in the one-line form or in deb822.
fn debian_mirror(sources: &str) -> Option<String> {
    let lines = sources.lines().map(str::trim).filter(|line| line.starts_with("deb ") || line.starts_with("URIs:"));
    let mut words = lines.flat_map(str::split_ascii_whitespace);
    let mirror = words.find(|word| word.contains("://") && word.trim_end_matches('/').ends_with("/debian"))?;
    Some(mirror.trim_end_matches('/').to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_mirror_is_the_systems_own() {
        let deb822 = "Types: deb\n# http://old.example/debian\nURIs: http://mirror.example/debian/\nSuites: bookworm\n\n\
                      Types: deb\nURIs: http://mirror.example/debian-security\n";
        assert_eq!(debian_mirror(deb822).as_deref(), Some("http://mirror.example/debian"));
        let lines = "deb-src http://a.example/debian x main\ndeb [arch=amd64] https://b.example/debian bookworm main\n";
        assert_eq!(debian_mirror(lines).as_deref(), Some("https://b.example/debian"));
        assert_eq!(debian_mirror("deb http://mirror.example/ubuntu noble main\n"), None);
    }

    #[test]
    fn only_what_can_be_installed_is() {
        let error = install("bcoin", &mut |_| ()).unwrap_err().to_string();
        assert!(error.contains("bcoin cannot be installed"), "{error}");
    }

    #[test]
    fn apt_stays_in_its_folder() {
        let text = configuration_of("X");
        let places = text.lines().filter(|line| line.starts_with("Dir"));
        assert!(places.clone().count() >= 8);
        let outside: Vec<&str> = places.filter(|line| !line.contains("\"X") && !line.contains("\"-\"")).collect();
        assert_eq!(outside, ["Dir::Etc::parts \"/etc/apt/apt.conf.d\";"], "read only, for the proxy");
    }
}
