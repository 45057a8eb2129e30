//! Bitcoin Knots: Debian's package of the unstable release with the C library of that release, so that it runs on an
//! older system.
//!
//! Output: the package and its libraries, unpacked in the cache directory. apt runs in a directory of its own with an
//! empty list of installed packages. It must never change anything of the system's own apt or dpkg. Cost: about 27 MB
//! of download.

use super::Unfinished;
use crate::error::LabError;
use crate::runs::adapter::ask;
use crate::runs::adapters::KNOTS_FOLDER;
use crate::runs::system::{create_dir, read_proc, remove_dir};
use lydian_disk::{Disk, RealDisk};
use std::path::{Path, PathBuf};
use std::process::Command;

const RELEASE: &str = "sid";
const PACKAGE: &str = "bitcoin-knots";
const SOURCE_FOLDER: &str = "/etc/apt/sources.list.d";
const SOURCE_FILE: &str = "/etc/apt/sources.list";
const KEYRING: &str = "/usr/share/keyrings/debian-archive-keyring.gpg";

pub(super) fn fetch(print_progress: &mut dyn FnMut(&str)) -> Result<(), LabError> {
    let mirror = debian_mirror(&source_texts())
        .ok_or_else(|| LabError::Usage("peers install: no source of Debian packages is set up here".into()))?;
    let unfinished = Unfinished::new(KNOTS_FOLDER)?;
    print_progress(&format!("downloading {PACKAGE} and its libraries of Debian {RELEASE}"));
    let packages = download(unfinished.path(), &mirror)?;
    let root = unfinished.path().join("root");
    create_dir(&root)?;
    for package in &packages {
        let mut command = Command::new("dpkg");
        command.arg("-x").arg(package).arg(&root);
        ask(command)?;
    }
    remove_dir(&unfinished.path().join("apt"))?;
    unfinished.finish()
}

/// Lets apt choose and download what the package needs, as if nothing were installed.
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

/// Uses only the directory's own lists and sources; the system's network settings (a proxy) still apply.
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

/// The first address in the sources that ends like Debian's main archive, in one-line or deb822 format.
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
    fn apt_stays_in_its_folder() {
        let text = configuration_of("X");
        let places = text.lines().filter(|line| line.starts_with("Dir"));
        assert!(places.clone().count() >= 8);
        let outside: Vec<&str> = places.filter(|line| !line.contains("\"X") && !line.contains("\"-\"")).collect();
        assert_eq!(outside, ["Dir::Etc::parts \"/etc/apt/apt.conf.d\";"], "read only, for the proxy");
    }
}
