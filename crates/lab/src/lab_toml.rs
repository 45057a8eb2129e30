//! `lab.toml`: the paths of programs that are in no package registry, additional arguments for programs, and forks of a
//! node.
//!
//! Input: the file given by `--config`, else `lab.toml` in the current directory, else `~/.config/lydian/lab.toml`;
//! without any of them everything is empty. Output: paths and arguments by name, and an additional node for each
//! `[[fork]]`. Invariants: accepted entries name known systems, and no name twice; an error names file and line. A
//! program that does not exist yet is an error only for a command that needs it. The library itself must never search
//! for the file, so that tests do not depend on a user's file.

use crate::error::LabError;
use crate::limits::LAB_TOML_BYTES_MAX;
use lydian_disk::{RealDisk, read_whole};
use lydian_report::systems::{self, Role, SYSTEMS};
use serde::Deserialize;
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::OnceLock;
use toml::Spanned;

const FILE: &str = "lab.toml";
/// The usual name for the base of a fork of Bitcoin Core.
const CORE: &str = "core";
const BITCOIND: &str = "bitcoind";
/// The value of a fork's `chain`.
const OWN: &str = "own";
/// Blocks that a fork with its own chain mines if its entry has no `blocks`: one period of difficulty adjustment.
const OWN_BLOCKS: u32 = 2_016;

/// An additional node, based on one that the lab knows.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Fork {
    /// Its name in `--nodes`, in results and in tables.
    pub name: String,
    /// The kind that determines its options.
    pub base: &'static str,
    pub program: Program,
    /// With `chain = "own"`: how many blocks it mines for itself, since it accepts no others.
    pub own_blocks: Option<u32>,
    /// Arguments for every start.
    pub args: Vec<String>,
}

/// A program by path.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Program {
    path: PathBuf,
    /// File and line of its entry: `lab.toml:3`.
    entry: String,
}

impl Program {
    /// Fails if it is not built yet.
    pub fn path(&self) -> Result<&Path, LabError> {
        let missing =
            || LabError::NotInstalled(format!("{}: there is no such file: {}", self.entry, self.path.display()));
        self.path.is_file().then_some(self.path.as_path()).ok_or_else(missing)
    }
}

/// The contents of the file.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct LabFile {
    /// `None` if there is no file.
    pub path: Option<PathBuf>,
    paths: BTreeMap<String, Program>,
    args: BTreeMap<String, Vec<String>>,
    forks: Vec<Fork>,
}

static ACTIVE: OnceLock<LabFile> = OnceLock::new();
static EMPTY: LabFile = LabFile { path: None, paths: BTreeMap::new(), args: BTreeMap::new(), forks: Vec::new() };

/// The file of this process: empty until [`activate`] was called.
pub fn active() -> &'static LabFile {
    ACTIVE.get().unwrap_or(&EMPTY)
}

/// Sets the file of this process, before any adapter is created; a second call has no effect.
pub fn activate(file: LabFile) {
    let _ = ACTIVE.set(file);
}

/// How many blocks the node mines for itself, if it is a fork with its own chain.
pub fn own_blocks(name: &str) -> Option<u32> {
    active().fork(name.split(':').next().unwrap_or(name))?.own_blocks
}

/// The kind of a node by its name in `--nodes`: without its label, and for a fork its base.
pub fn base_kind(name: &str) -> &str {
    let kind = name.split(':').next().unwrap_or(name);
    active().fork(kind).map_or(kind, |fork| fork.base)
}

impl LabFile {
    /// Loads the given file, which must exist, or the first one of the usual places.
    pub fn load(given: Option<&Path>) -> Result<LabFile, LabError> {
        let path = match given {
            Some(path) if !path.is_file() => {
                return Err(LabError::Usage(format!("--config {}: there is no such file", path.display())));
            }
            Some(path) => path.to_owned(),
            None => match places().into_iter().find(|path| path.is_file()) {
                Some(path) => path,
                None => return Ok(LabFile::default()),
            },
        };
        let bytes = read_whole(&RealDisk, &path, LAB_TOML_BYTES_MAX)?;
        let text = String::from_utf8(bytes)
            .map_err(|_| LabError::Usage(format!("{}: it is not UTF-8 text", path.display())))?;
        LabFile::parse(&text, &path)
    }

    /// Parses the text of a file; relative paths are relative to the file's directory.
    pub fn parse(text: &str, path: &Path) -> Result<LabFile, LabError> {
        let entry = |offset: usize| {
            let line = text.as_bytes().iter().take(offset).filter(|byte| **byte == b'\n').count() + 1;
            format!("{}:{line}", path.display())
        };
        let at = |offset: usize, what: &str| LabError::Usage(format!("{}: {what}", entry(offset)));
        let form: Form = toml::from_str(text)
            .map_err(|error| at(error.span().map_or(0, |span| span.start), error.message().trim()))?;
        let folder = path.parent().unwrap_or(Path::new(""));
        let reader = Reader { at: &at, entry: &entry, folder };
        let mut file = LabFile { path: Some(path.to_owned()), ..LabFile::default() };
        for fork in form.fork {
            let fork = reader.fork(fork, &file)?;
            file.forks.push(fork);
        }
        for (name, value) in form.paths {
            reader.known(&name)?;
            file.paths.insert(name.into_inner(), reader.program(&value));
        }
        for (name, value) in form.args {
            reader.startable(&name)?;
            file.args.insert(name.into_inner(), value);
        }
        Ok(file)
    }

    /// The path of the program of this kind, if the file has one; fails if that program does not exist.
    pub fn path_of(&self, kind: &str) -> Result<Option<&Path>, LabError> {
        self.paths.get(kind).map(Program::path).transpose()
    }

    /// What is wrong with the program of this kind or fork, if the file has one that does not exist.
    pub fn missing(&self, name: &str) -> Option<String> {
        let program = self.fork(name).map(|fork| &fork.program).or_else(|| self.paths.get(name))?;
        program.path().err().map(|error| error.to_string())
    }

    /// The additional arguments of this kind.
    pub fn args_of(&self, kind: &str) -> &[String] {
        self.args.get(kind).map_or(&[], Vec::as_slice)
    }

    pub fn forks(&self) -> &[Fork] {
        &self.forks
    }

    pub fn fork(&self, name: &str) -> Option<&Fork> {
        self.forks.iter().find(|fork| fork.name == name)
    }
}

/// The places searched for the file.
fn places() -> Vec<PathBuf> {
    let set = |name| std::env::var_os(name).filter(|value| !value.is_empty()).map(PathBuf::from);
    let home = set("XDG_CONFIG_HOME").or_else(|| set("HOME").map(|home| home.join(".config")));
    [Some(PathBuf::from(FILE)), home.map(|folder| folder.join("lydian").join(FILE))].into_iter().flatten().collect()
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Form {
    #[serde(default)]
    paths: BTreeMap<Spanned<String>, Spanned<PathBuf>>,
    #[serde(default)]
    args: BTreeMap<Spanned<String>, Vec<String>>,
    #[serde(default)]
    fork: Vec<ForkForm>,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct ForkForm {
    name: Spanned<String>,
    base: Spanned<String>,
    path: Spanned<PathBuf>,
    chain: Option<Spanned<String>>,
    blocks: Option<Spanned<u32>>,
    #[serde(default)]
    args: Vec<String>,
}

struct Reader<'a> {
    /// Makes an error for a byte offset.
    at: &'a dyn Fn(usize, &str) -> LabError,
    /// File and line of a byte offset.
    entry: &'a dyn Fn(usize) -> String,
    folder: &'a Path,
}

impl Reader<'_> {
    /// Checks that a name is a system with a program.
    fn known(&self, name: &Spanned<String>) -> Result<(), LabError> {
        if SYSTEMS.iter().any(|system| system.kind == name.get_ref()) {
            return Ok(());
        }
        let mut known: Vec<&str> = Vec::new();
        for kind in SYSTEMS.iter().map(|system| system.kind) {
            if !known.contains(&kind) {
                known.push(kind);
            }
        }
        Err((self.at)(name.span().start, &format!("{} is none of {}", name.get_ref(), known.join(", "))))
    }

    /// Checks that a name is a system that the lab starts as a node.
    fn startable(&self, name: &Spanned<String>) -> Result<(), LabError> {
        let kinds = systems::kinds(Role::Node);
        if kinds.contains(&name.get_ref().as_str()) {
            return Ok(());
        }
        let text = format!("{} is none of {}; a fork has its `args` in its entry", name.get_ref(), kinds.join(", "));
        Err((self.at)(name.span().start, &text))
    }

    fn program(&self, path: &Spanned<PathBuf>) -> Program {
        Program { path: self.folder.join(path.get_ref()), entry: (self.entry)(path.span().start) }
    }

    fn fork(&self, form: ForkForm, file: &LabFile) -> Result<Fork, LabError> {
        let name = form.name.get_ref();
        let wrong = |what: String| Err((self.at)(form.name.span().start, &what));
        // The name is used in `KIND:LABEL`, in `NAME=VALUE`, in lists and in file names.
        let is_plain = |byte: u8| byte.is_ascii_alphanumeric() || byte == b'-' || byte == b'_';
        if name.is_empty() || !name.bytes().all(is_plain) {
            return wrong(format!("fork {name:?}: a name is made of letters, digits, - and _"));
        }
        if name == CORE || SYSTEMS.iter().any(|system| system.kind == name) {
            return wrong(format!("fork {name}: the lab has a system of that name; choose another"));
        }
        if file.fork(name).is_some() {
            return wrong(format!("fork {name}: an earlier fork has that name"));
        }
        let base = if form.base.get_ref() == CORE { BITCOIND } else { form.base.get_ref().as_str() };
        let Some(base) = systems::kinds(Role::Node).into_iter().find(|kind| *kind == base) else {
            let kinds = systems::kinds(Role::Node).join(", ");
            let text = format!("fork {name}: base = {base:?} is none of {CORE}, {kinds}");
            return Err((self.at)(form.base.span().start, &text));
        };
        let own_blocks = self.own_blocks(&form)?;
        Ok(Fork { name: name.clone(), base, program: self.program(&form.path), own_blocks, args: form.args })
    }

    fn own_blocks(&self, form: &ForkForm) -> Result<Option<u32>, LabError> {
        let name = form.name.get_ref();
        match (&form.chain, &form.blocks) {
            (Some(chain), _) if chain.get_ref() != OWN => {
                let text = format!("fork {name}: chain = {:?} is unknown; the only value is {OWN:?}", chain.get_ref());
                Err((self.at)(chain.span().start, &text))
            }
            (None, Some(blocks)) => {
                let text = format!("fork {name}: blocks = {} needs chain = {OWN:?}", blocks.get_ref());
                Err((self.at)(blocks.span().start, &text))
            }
            (Some(_), Some(blocks)) if *blocks.get_ref() == 0 => Err((self.at)(
                blocks.span().start,
                &format!("fork {name}: blocks = 0: it must mine at least one block"),
            )),
            (Some(_), blocks) => Ok(Some(blocks.as_ref().map_or(OWN_BLOCKS, |blocks| *blocks.get_ref()))),
            (None, None) => Ok(None),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use lydian_disk::Disk;

    fn parse(text: &str) -> Result<LabFile, String> {
        LabFile::parse(text, Path::new("dir/lab.toml")).map_err(|error| error.to_string())
    }

    fn refused(text: &str, line: u32, word: &str) {
        let error = parse(text).unwrap_err();
        assert!(error.starts_with(&format!("dir/lab.toml:{line}: ")) && error.contains(word), "{text}\n{error}");
    }

    /// A file that exists on every machine that runs the tests.
    fn program() -> String {
        std::env::current_exe().unwrap().display().to_string()
    }

    #[test]
    fn paths_arguments_and_forks() {
        let text = format!(
            "[paths]\ngocoin = {0:?}\nfulcrum = {0:?}\n[args]\nknots = [\"-blocksxor=0\"]\n\
             [[fork]]\nname = \"b3chaind\"\nbase = \"core\"\npath = {0:?}\nargs = [\"-x=1\"]\n\
             [[fork]]\nname = \"mine\"\nbase = \"lydian\"\npath = {0:?}\n",
            program()
        );
        let file = parse(&text).unwrap();
        assert_eq!(file.path_of("gocoin").unwrap(), Some(Path::new(&program())));
        assert_eq!(file.path_of("mako").unwrap(), None);
        assert_eq!(file.args_of("knots"), ["-blocksxor=0".to_owned()].as_slice());
        let fork = file.fork("b3chaind").unwrap();
        assert_eq!((fork.base, fork.args.as_slice()), ("bitcoind", ["-x=1".to_owned()].as_slice()));
        assert_eq!(file.forks().len(), 2);
        assert_eq!(parse("").unwrap().forks(), []);
    }

    #[test]
    fn errors_name_file_and_line() {
        refused("[paths]\n\nbitcion = \"x\"\n", 3, "bitcion is none of bitcoind, knots");
        refused("[path]\n", 1, "unknown field `path`");
        refused("[paths]\ngocoin = 7\n", 2, "invalid type");
        refused("[paths]\ngocoin = \"a\"\ngocoin = \"b\"\n", 3, "duplicate key");
        refused("[args]\nelectrs = []\n", 2, "electrs is none of bitcoind");
        refused("\n[[fork]\n", 2, "");
    }

    /// Regression: one program that was not built yet ended every command, whichever nodes it named.
    #[test]
    fn a_program_that_does_not_exist_is_an_error_only_where_it_is_needed() {
        let fork = "[[fork]]\nname = \"mine\"\nbase = \"core\"\npath = \"bin/mine\"\n";
        let file = parse(&format!("[paths]\ngocoin = \"not-there\"\nfulcrum = {:?}\n{fork}", program())).unwrap();
        assert!(file.path_of("fulcrum").unwrap().is_some());
        let error = file.path_of("gocoin").unwrap_err();
        assert!(
            matches!(&error, LabError::NotInstalled(text) if text == "dir/lab.toml:2: there is no such file: dir/not-there")
        );
        let error = file.fork("mine").unwrap().program.path().unwrap_err().to_string();
        assert_eq!(error, "dir/lab.toml:7: there is no such file: dir/bin/mine");
    }

    #[test]
    fn forks_have_names_of_their_own() {
        let fork = |name: &str, more: &str| format!("[[fork]]\nname = {name:?}\npath = {:?}\n{more}\n", program());
        let core = "base = \"core\"";
        refused(&fork("bitcoind", core), 2, "the lab has a system of that name");
        refused(&fork("core", core), 2, "the lab has a system of that name");
        refused(&fork("a:b", core), 2, "letters, digits");
        refused(&fork("", core), 2, "letters, digits");
        refused(&(fork("twice", core) + &fork("twice", core)), 6, "an earlier fork has that name");
        refused(&fork("x", "base = \"electrs\""), 4, "none of core, bitcoind");
        refused(&fork("x", "base = \"core\"\narg = []"), 5, "unknown field `arg`");
        refused(&fork("x", ""), 1, "missing field `base`");
        refused("[[fork]]\nname = \"x\"\nbase = \"core\"\nchain = \"own\"\n", 1, "missing field `path`");
    }

    #[test]
    fn a_fork_with_its_own_chain_mines_one_period_of_blocks_unless_told_otherwise() {
        let fork = |more: &str| format!("[[fork]]\nname = \"x\"\nbase = \"core\"\npath = {:?}\n{more}\n", program());
        let blocks = |more: &str| parse(&fork(more)).unwrap().forks()[0].own_blocks;
        assert_eq!(blocks(""), None);
        assert_eq!(blocks("chain = \"own\""), Some(2_016));
        assert_eq!(blocks("blocks = 120\nchain = \"own\""), Some(120));
        refused(&fork("chain = \"main\""), 5, "fork x: chain = \"main\" is unknown; the only value is \"own\"");
        refused(&fork("blocks = 5"), 5, "fork x: blocks = 5 needs chain = \"own\"");
        refused(&fork("chain = \"own\"\nblocks = 0"), 6, "at least one block");
        refused(&fork("chain = \"own\"\nblocks = -1"), 6, "invalid value");
    }

    /// limit: LAB_TOML_BYTES_MAX at
    /// limit: LAB_TOML_BYTES_MAX above
    #[test]
    fn a_file_has_a_limit() {
        let scratch = lydian_oracle::Scratch::new("lab-toml");
        RealDisk.create_dir(scratch.path()).unwrap();
        let path = scratch.path().join("lab.toml");
        let write = |bytes: Vec<u8>| RealDisk.write_whole(&path, &bytes).unwrap();
        let limit = usize::try_from(LAB_TOML_BYTES_MAX).unwrap();
        write(vec![b'\n'; limit]);
        assert_eq!(LabFile::load(Some(&path)).unwrap().path.as_deref(), Some(path.as_path()));
        write(vec![b'\n'; limit + 1]);
        assert!(LabFile::load(Some(&path)).is_err());
        write(vec![0xff]);
        assert!(LabFile::load(Some(&path)).unwrap_err().to_string().contains("not UTF-8"));
    }

    #[test]
    fn a_file_that_is_asked_for_must_be_there() {
        let error = LabFile::load(Some(Path::new("/not/there.toml"))).unwrap_err().to_string();
        assert_eq!(error, "--config /not/there.toml: there is no such file");
    }
}
