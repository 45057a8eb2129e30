//! Finds and reads the configuration files: Core's `ReadConfigFiles`. Input: the values of the command line, the disk,
//! the working directory. Output: the values of the files in [`Sources`], or the first error.
//!
//! A file may include others, one level deep, if the program has the option `-includeconf`. As in Core, a program
//! without it (`bitcoin-cli`) ignores `includeconf=` like every option that it lacks.

use crate::chain::{ChainCombination, base_chain, chain_name};
use crate::conf::{self, Entry};
use crate::error::ConfProblem;
use crate::limits::CONF_SIZE_MAX;
use crate::notice::Notice;
use crate::sources::{Origin, Setting, Sources, Value, after_negation};
use crate::words::{Key, interpret};
use lydian_disk::{Disk, DiskErrorKind, PathKind, read_whole};
use std::path::{Path, PathBuf};

/// The first that exists is used; Core's own file is read if ours is missing.
pub const CONF_FILENAMES: [&str; 2] = ["lydian.conf", "bitcoin.conf"];

/// Where the files are, and how they are read.
#[derive(Clone, Copy, Debug)]
pub struct ConfigFiles<'a> {
    pub disk: &'a dyn Disk,
    /// The working directory.
    pub directory: &'a Path,
    /// The data directory if none is named; `None` if the user has no home.
    pub default_datadir: Option<&'a Path>,
    /// Whether a file that exists and cannot be read is passed over, as in Core, and bytes that are not UTF-8 are
    /// replaced; else both are errors.
    pub is_lenient: bool,
}

/// Why there is no data directory.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum DatadirProblem {
    /// The directory that was named does not exist.
    Missing {
        text: String,
    },
    NoHome,
}

/// Why the files cannot be used.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ReadProblem {
    Conf(ConfProblem),
    Chain(ChainCombination),
}

impl From<ConfProblem> for ReadProblem {
    fn from(problem: ConfProblem) -> ReadProblem {
        ReadProblem::Conf(problem)
    }
}

impl From<ChainCombination> for ReadProblem {
    fn from(problem: ChainCombination) -> ReadProblem {
        ReadProblem::Chain(problem)
    }
}

impl ConfigFiles<'_> {
    /// The directory of all chains. If it was named, it must exist.
    pub fn datadir(&self, sources: &Sources) -> Result<PathBuf, DatadirProblem> {
        match sources.get("datadir").map(|value| value.setting.text()).filter(|text| !text.is_empty()) {
            Some(text) => {
                let path = self.directory.join(text).components().collect::<PathBuf>();
                match self.disk.kind(&path) {
                    Ok(PathKind::Directory) => Ok(path),
                    Ok(PathKind::File) | Err(_) => Err(DatadirProblem::Missing { text: text.to_owned() }),
                }
            }
            None => self.default_datadir.map(Path::to_owned).ok_or(DatadirProblem::NoHome),
        }
    }

    /// The configuration file to read; `None` with `-noconf`.
    pub fn conf(&self, sources: &Sources, datadir: &Path) -> Option<PathBuf> {
        match sources.get("conf").map(|value| &value.setting) {
            Some(Setting::Negated) => None,
            Some(setting) if !setting.text().is_empty() => Some(datadir.join(setting.text()).components().collect()),
            _ => Some(self.default_conf(datadir).unwrap_or_else(|| datadir.join(CONF_FILENAMES[0]))),
        }
    }

    /// The configuration file in a data directory.
    pub fn default_conf(&self, datadir: &Path) -> Option<PathBuf> {
        CONF_FILENAMES.into_iter().map(|name| datadir.join(name)).find(|path| self.disk.kind(path).is_ok())
    }

    /// Reads the file and those that it includes. Returns false if the file is missing and was not named.
    pub fn read(
        &self,
        conf: &Path,
        datadir: &Path,
        sources: &mut Sources,
        notices: &mut Vec<Notice>,
    ) -> Result<bool, ReadProblem> {
        if self.disk.kind(conf) == Ok(PathKind::Directory) {
            return Err(ConfProblem::IsDirectory { path: conf.to_owned() }.into());
        }
        let Some(text) = self.text(conf, sources.get("conf").is_some())? else { return Ok(false) };
        sources.add_conf(&text, conf, notices)?;
        self.include(datadir, sources, notices)?;
        Ok(true)
    }

    /// The text of a file; `None` if it is missing and was not named.
    fn text(&self, path: &Path, is_named: bool) -> Result<Option<String>, ConfProblem> {
        let unreadable = |reason: String| ConfProblem::Unreadable { path: path.to_owned(), reason };
        let bytes = match read_whole(self.disk, path, CONF_SIZE_MAX) {
            Ok(bytes) => bytes,
            Err(error) if self.is_lenient || error.kind == DiskErrorKind::NotFound => {
                return if is_named { Err(ConfProblem::NotOpened { path: path.to_owned() }) } else { Ok(None) };
            }
            Err(error) => return Err(unreadable(format!("it could not be opened ({error})"))),
        };
        if self.is_lenient {
            return Ok(Some(String::from_utf8_lossy(&bytes).into_owned()));
        }
        let text = String::from_utf8(bytes).map_err(|error| {
            let before = &error.as_bytes()[..error.utf8_error().valid_up_to()];
            unreadable(format!("line {} is not UTF-8", before.iter().filter(|byte| **byte == b'\n').count() + 1))
        })?;
        Ok(Some(text))
    }

    /// Reads the files that the file includes, one level deep, as in Core those of the chain's section first.
    fn include(&self, datadir: &Path, sources: &mut Sources, notices: &mut Vec<Notice>) -> Result<(), ReadProblem> {
        if !sources.on_command_line("includeconf").is_empty() {
            return Ok(());
        }
        let network = chain_name(sources)?;
        let sections = [network.as_str(), ""];
        let included = |section: &str| after_negation(sources.in_section(section, "includeconf")).to_vec();
        let files = sections.map(included).concat();
        let counts = sections.map(|section| sources.in_section(section, "includeconf").len());
        for value in files {
            let name = value.setting.text();
            let path: PathBuf = datadir.join(name).components().collect();
            if self.disk.kind(&path) == Ok(PathKind::Directory) {
                return Err(ConfProblem::IncludeIsDirectory { path }.into());
            }
            let missing = || ConfProblem::NotIncluded { name: name.to_owned() };
            let text = self.text(&path, false)?.ok_or_else(missing)?;
            // Core names an included file as the including file does.
            sources.add_conf(&text, Path::new(name), notices)?;
            notices.push(Notice::LogInfo(format!("Included configuration file {name}")));
        }
        let mut nested: Vec<String> = Vec::new();
        let mut add = |section: &str, skip: usize| {
            let values = sources.in_section(section, "includeconf").iter().skip(skip);
            nested.extend(values.map(|value| value.setting.text().to_owned()));
        };
        sections.iter().zip(counts).for_each(|(section, count)| add(section, count));
        let last_network = chain_name(sources)?;
        if last_network != network {
            add(&last_network, 0);
        }
        notices.extend(nested.iter().map(|name| {
            Notice::Stderr(format!(
                "warning: -includeconf cannot be used from included files; ignoring -includeconf={name}"
            ))
        }));
        Ok(())
    }
}

impl Sources {
    /// Adds the values of a file: Core's `ReadConfigStream`.
    fn add_conf(&mut self, text: &str, path: &Path, notices: &mut Vec<Notice>) -> Result<(), ConfProblem> {
        let conf = conf::parse(text)?;
        for (section, line) in conf.sections {
            if base_chain(&section).is_none() {
                self.add_unknown_section(format!("{}:{line} Section [{section}] is not recognized.", path.display()));
            }
        }
        for entry in conf.entries {
            let origin = Origin::File { path: path.to_owned(), line: entry.line };
            self.add_entry(&entry, origin, notices)?;
        }
        Ok(())
    }

    fn add_entry(&mut self, entry: &Entry, origin: Origin, notices: &mut Vec<Notice>) -> Result<(), ConfProblem> {
        let key = Key::new(&entry.key);
        if key.name == "conf" {
            return Err(ConfProblem::Conf);
        }
        if key.name == "reindex" {
            notices.push(Notice::LogWarning(
                "reindex=1 is set in the configuration file, which will significantly slow down startup. Consider removing or commenting out \
                 this option for better performance, unless there is currently a condition which makes rebuilding the indexes necessary"
                    .to_owned(),
            ));
        }
        let Some(rules) = self.rules(key.name) else {
            notices.push(Notice::LogWarning(format!("Ignoring unknown configuration value {}", entry.key)));
            return Ok(());
        };
        let setting = interpret(&key, Some(&entry.value), &rules, notices).map_err(ConfProblem::Argument)?;
        self.add(key.section.unwrap_or_default(), key.name, Value { setting, origin });
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::rules::Rules;
    use lydian_disk::SimDisk;

    /// The options of a program that includes files, and of one that does not.
    fn daemon(name: &str) -> Option<Rules> {
        ["par", "conf", "datadir", "includeconf", "signet"].into_iter().find(|known| *known == name).map(Rules::plain)
    }

    fn client(name: &str) -> Option<Rules> {
        daemon(name).filter(|rules| rules.name != "includeconf")
    }

    fn disk(files: &[(&str, &[u8])]) -> SimDisk {
        let disk = SimDisk::new(0);
        disk.create_dir(Path::new("/d")).unwrap();
        for (name, bytes) in files {
            disk.write_whole(&Path::new("/d").join(name), bytes).unwrap();
        }
        disk
    }

    /// Reads the default file; returns the value of `par`, whether there was a file, and the messages.
    fn read(
        disk: &SimDisk,
        find: fn(&str) -> Option<Rules>,
        is_lenient: bool,
    ) -> Result<(Option<String>, bool, Vec<Notice>), ReadProblem> {
        let base = Path::new("/d");
        let files = ConfigFiles { disk, directory: Path::new("/"), default_datadir: Some(base), is_lenient };
        let (mut sources, mut notices) = (Sources::new(find), Vec::new());
        let conf = files.conf(&sources, base).unwrap();
        let has_conf = files.read(&conf, base, &mut sources, &mut notices)?;
        Ok((sources.get("par").map(|value| value.setting.text().to_owned()), has_conf, notices))
    }

    #[test]
    fn files_are_included_one_level_deep() {
        let disk = disk(&[("lydian.conf", b"includeconf=one\n"), ("one", b"par=2\nincludeconf=two\n")]);
        let warning = "warning: -includeconf cannot be used from included files; ignoring -includeconf=two";
        let notices =
            [Notice::LogInfo("Included configuration file one".to_owned()), Notice::Stderr(warning.to_owned())];
        assert_eq!(read(&disk, daemon, false), Ok((Some("2".to_owned()), true, notices.to_vec())));
        disk.remove_file(Path::new("/d/one")).unwrap();
        let missing = ConfProblem::NotIncluded { name: "one".to_owned() };
        assert_eq!(read(&disk, daemon, false), Err(ReadProblem::Conf(missing)));
    }

    /// `bitcoin-cli` has no option `-includeconf`, so that it ignores the line, whether or not there is such a file.
    #[test]
    fn a_program_without_the_option_includes_nothing() {
        let disk = disk(&[("lydian.conf", b"includeconf=one\nincludeconf=none\npar=1\n"), ("one", b"par\n")]);
        let unknown = Notice::LogWarning("Ignoring unknown configuration value includeconf".to_owned());
        assert_eq!(read(&disk, client, false), Ok((Some("1".to_owned()), true, vec![unknown.clone(), unknown])));
    }

    #[test]
    fn the_file_of_core_is_read_where_ours_is_missing() {
        let par = |disk: &SimDisk| read(disk, daemon, false).unwrap();
        assert_eq!(par(&disk(&[])), (None, false, vec![]));
        assert_eq!(par(&disk(&[("bitcoin.conf", b"par=2")])).0.as_deref(), Some("2"));
        assert_eq!(par(&disk(&[("bitcoin.conf", b"par=2"), ("lydian.conf", b"par=3")])).0.as_deref(), Some("3"));
    }

    /// limit: CONF_SIZE_MAX at
    /// limit: CONF_SIZE_MAX above
    #[test]
    fn a_file_has_a_greatest_size_and_is_text() {
        let size = usize::try_from(CONF_SIZE_MAX).unwrap();
        let of_size = |size: usize| disk(&[("lydian.conf", &b"\n".repeat(size))]);
        assert_eq!(read(&of_size(size), daemon, false), Ok((None, true, vec![])));
        let error = read(&of_size(size + 1), daemon, false).unwrap_err();
        assert!(format!("{error:?}").contains("it could not be opened"), "{error:?}");
        assert_eq!(read(&of_size(size + 1), daemon, true), Ok((None, false, vec![])), "as in Core");
        let bytes = disk(&[("lydian.conf", b"par=1\n# \xff")]);
        let ReadProblem::Conf(error) = read(&bytes, daemon, false).unwrap_err() else { panic!("not of the file") };
        assert_eq!(error.to_string(), "/d/lydian.conf: line 2 is not UTF-8");
        assert_eq!(read(&bytes, daemon, true).unwrap().0.as_deref(), Some("1"), "as in Core");
    }
}
