//! Apache Cassandra as Maven packages: `cassandra-all` and what it needs.
//!
//! Input: the list of jars with their SHA-256, as `sha256sum` prints it. Output: the jars in the cache directory, and
//! the class path. A jar that is missing, or whose bytes differ from the list, is an error that names it; jars that are
//! not in the list are never loaded. Cost: 64 MB, and half a minute for the first download. It needs Maven for that,
//! and Java 17 to run.

use crate::error::LabError;
use crate::peers::{Unfinished, needs};
use crate::runs::adapter::ask;
use crate::runs::adapters::cache_folder;
use lydian_disk::{Disk, RealDisk, read_whole};
use lydian_hash::sha256;
use lydian_primitives::to_hex;
use std::path::{Path, PathBuf};
use std::process::Command;

/// The version of `cassandra-all` in `pom.xml`.
pub const VERSION: &str = "5.0.2";
const FOLDER: &str = "cassandra-5.0.2";
const POM: &str = include_str!("pom.xml");
const JARS: &str = include_str!("jars.sha256");
const MAIN_JAR: &str = "cassandra-all-5.0.2.jar";
/// The largest of them has 12 MB.
const JAR_SIZE_MAX: u64 = 64 << 20;
/// Copies a package and its dependencies into a folder; the version is that of Debian 12.
const PLUGIN: &str = "org.apache.maven.plugins:maven-dependency-plugin:3.8.1:copy-dependencies";
/// The versions of Java that Cassandra 5.0 supports.
const JAVA_VERSIONS: &[&str] = &["17", "11"];
/// Where Debian's `openjdk-17-jre-headless` installs it, if another version is the default.
const DEBIAN_JAVA: &[&str] =
    &["/usr/lib/jvm/java-17-openjdk-amd64/bin/java", "/usr/lib/jvm/java-17-openjdk-arm64/bin/java"];

/// What a node is started with.
#[derive(Clone, Debug)]
pub struct Installed {
    pub java: PathBuf,
    /// The folder of the jars.
    pub jars: PathBuf,
}

impl Installed {
    /// Finds Java and the jars, and compares each jar with the list.
    pub fn find() -> Result<Installed, LabError> {
        let jars = cache_folder().join(FOLDER);
        if !jars.join(MAIN_JAR).is_file() {
            let text = "Cassandra is not installed; `lydian-lab store install` does it".to_owned();
            return Err(LabError::NotInstalled(text));
        }
        check(&jars, &listed(JARS)?)?;
        Ok(Installed { java: java()?, jars })
    }

    /// The jars of the list, separated by colons.
    pub fn class_path(&self) -> Result<String, LabError> {
        let paths = listed(JARS)?.into_iter().map(|(name, _)| self.jars.join(name).display().to_string());
        Ok(paths.collect::<Vec<_>>().join(":"))
    }

    /// The agent with which Cassandra measures its memtables.
    pub fn agent(&self) -> PathBuf {
        self.jars.join("jamm-0.4.0.jar")
    }
}

/// Installs Cassandra if it is not installed yet.
pub fn install(print_progress: &mut dyn FnMut(&str)) -> Result<Installed, LabError> {
    match Installed::find() {
        Err(LabError::NotInstalled(_)) => {}
        found => return found,
    }
    java()?;
    needs("mvn", "--version", "Debian's package maven")?;
    print_progress(&format!("fetching Cassandra {VERSION} with Maven"));
    let unfinished = Unfinished::new(FOLDER)?;
    let pom = unfinished.path().join("pom.xml");
    RealDisk.write_whole(&pom, POM.as_bytes())?;
    let mut command = Command::new("mvn");
    command.args(["--batch-mode", "--quiet", "--file"]).arg(&pom);
    command.args([PLUGIN, "-DincludeScope=runtime"]);
    command.arg(format!("-DoutputDirectory={}", unfinished.path().display()));
    ask(command)?;
    check(unfinished.path(), &listed(JARS)?)?;
    unfinished.finish()?;
    Installed::find()
}

/// Name and SHA-256 of each jar.
fn listed(text: &str) -> Result<Vec<(&str, &str)>, LabError> {
    let parse = |line| match str::split_once(line, "  ") {
        Some((hash, name)) if hash.len() == 64 && name.ends_with(".jar") => Ok((name, hash)),
        _ => Err(LabError::Usage(format!("jars.sha256: `{line}` is no hash and name of a jar"))),
    };
    text.lines().map(parse).collect()
}

fn check(folder: &Path, jars: &[(&str, &str)]) -> Result<(), LabError> {
    for (name, hash) in jars {
        let path = folder.join(name);
        let found = to_hex(&sha256(&read_whole(&RealDisk, &path, JAR_SIZE_MAX)?));
        if found != *hash {
            let reason = format!(
                "{} has SHA-256 {found}, expected {hash}: remove {} and run `lydian-lab store install`",
                path.display(),
                folder.display()
            );
            return Err(LabError::program("Maven", reason));
        }
    }
    Ok(())
}

/// A Java that Cassandra supports: the default one, or Debian's.
fn java() -> Result<PathBuf, LabError> {
    let mut found = Vec::new();
    for path in ["java"].iter().chain(DEBIAN_JAVA) {
        let mut command = Command::new(path);
        command.arg("--version");
        let Ok(text) = ask(command) else { continue };
        if JAVA_VERSIONS.contains(&major_version(&text)) {
            return Ok(PathBuf::from(path));
        }
        found.push(text.lines().next().unwrap_or_default().to_owned());
    }
    let found = if found.is_empty() { "none is installed".to_owned() } else { format!("found {}", found.join(", ")) };
    Err(LabError::NotInstalled(format!(
        "Cassandra {VERSION} needs Java {}, and {found}: get it from Debian's package openjdk-17-jre-headless",
        JAVA_VERSIONS.join(" or ")
    )))
}

/// `17` of `openjdk 17.0.15 2025-04-15`.
fn major_version(text: &str) -> &str {
    let version = text.split_whitespace().nth(1).unwrap_or_default();
    version.split('.').next().unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;
    use lydian_oracle::Scratch;

    #[test]
    fn the_list_names_the_version_of_the_pom() {
        let jars = listed(JARS).unwrap();
        assert!(jars.iter().any(|(name, _)| *name == MAIN_JAR), "{MAIN_JAR}");
        assert!(jars.len() > 50 && POM.contains(&format!("<version>{VERSION}</version>")));
        assert_eq!((MAIN_JAR, FOLDER), (format!("cassandra-all-{VERSION}.jar").as_str(), "cassandra-5.0.2"));
        let error = listed("abc  a.jar\n").unwrap_err().to_string();
        assert!(error.contains("`abc  a.jar`"), "{error}");
    }

    #[test]
    fn a_jar_that_differs_from_the_list_is_named() {
        let scratch = Scratch::new("lab-store-jars");
        std::fs::create_dir_all(scratch.path()).unwrap();
        RealDisk.write_whole(&scratch.path().join("a.jar"), b"abc").unwrap();
        let hash = "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad";
        check(scratch.path(), &[("a.jar", hash)]).unwrap();
        let error = check(scratch.path(), &[("a.jar", &hash.replace("ba", "bb"))]).unwrap_err().to_string();
        assert!(error.contains("a.jar has SHA-256 ba78"), "{error}");
        let error = check(scratch.path(), &[("b.jar", hash)]).unwrap_err().to_string();
        assert!(error.contains("b.jar"), "{error}");
    }

    #[test]
    fn the_version_of_java_is_read() {
        assert_eq!(major_version("openjdk 17.0.15 2025-04-15\nOpenJDK Runtime"), "17");
        assert_eq!((major_version("java 21 2023-09-19 LTS"), major_version("")), ("21", ""));
    }
}
