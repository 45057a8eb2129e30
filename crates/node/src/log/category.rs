//! Logging categories and levels, with Bitcoin Core's names. Input: the texts of `-debug`, `-debugexclude`,
//! `-loglevel`. Output: sets and thresholds, or what the text must be. Accepts every name of Core's, even if nothing of
//! ours logs under it.

use super::Level;

/// Core's names in its order; `lock` only exists in its debug builds.
pub(crate) const NAMES: [&str; 30] = [
    "net",
    "tor",
    "mempool",
    "http",
    "bench",
    "zmq",
    "walletdb",
    "rpc",
    "estimatefee",
    "addrman",
    "selectcoins",
    "reindex",
    "cmpctblock",
    "rand",
    "prune",
    "proxy",
    "mempoolrej",
    "coindb",
    "qt",
    "leveldb",
    "validation",
    "i2p",
    "ipc",
    "lock",
    "blockstorage",
    "txreconciliation",
    "scan",
    "txpackages",
    "kernel",
    "privatebroadcast",
];

/// One category: its index in [`NAMES`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Category(usize);

impl Category {
    pub(crate) const NET: Category = Category(0);
    pub(crate) const BENCH: Category = Category(4);
    pub(crate) const ZMQ: Category = Category(5);
    pub(crate) const ESTIMATEFEE: Category = Category(8);
    pub(crate) const COINDB: Category = Category(17);
    pub(crate) const VALIDATION: Category = Category(20);

    pub(crate) fn name(self) -> &'static str {
        NAMES[self.0]
    }

    pub(crate) fn find(name: &str) -> Option<Category> {
        NAMES.iter().position(|known| *known == name).map(Category)
    }
}

/// A set of categories.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Categories(u32);

impl Categories {
    pub(crate) fn bits(self) -> u32 {
        self.0
    }

    pub(crate) fn from_bits(bits: u32) -> Categories {
        Categories(bits)
    }

    /// All categories except the one that release builds of Core lack: their names, and whether they are in the set.
    pub(crate) fn list(self) -> Vec<(&'static str, bool)> {
        let all = (0..NAMES.len()).map(Category).filter(|category| category.name() != "lock");
        all.map(|category| (category.name(), self.contains(category))).collect()
    }

    /// Core's `LogCategoriesString`: the names in alphabetical order.
    pub(crate) fn names() -> String {
        let mut names: Vec<_> = Categories::default().list().into_iter().map(|(name, _)| name).collect();
        names.sort_unstable();
        names.join(", ")
    }

    pub(crate) fn contains(self, category: Category) -> bool {
        self.0 & (1 << category.0) != 0
    }

    /// `-debug`: a name; an empty text, `1` and `all` mean all categories.
    pub(crate) fn enable(&mut self, text: &str) -> Result<(), String> {
        self.0 |= bits(text)?;
        Ok(())
    }

    /// Core's warning for a category that no longer does anything.
    pub(crate) fn deprecated(name: &str) -> Option<String> {
        (name == "libevent").then(|| {
            format!(
                "The logging category `{name}` is deprecated, does nothing, and will be removed in a future version"
            )
        })
    }

    /// `-debugexclude`.
    pub(crate) fn disable(&mut self, text: &str) -> Result<(), String> {
        self.0 &= !bits(text)?;
        Ok(())
    }
}

fn bits(text: &str) -> Result<u32, String> {
    match text {
        "" | "1" | "all" => Ok(u32::MAX),
        // It no longer does anything; Core warns about it.
        "libevent" => Ok(0),
        _ => Category::find(text)
            .map(|category| 1 << category.0)
            .ok_or_else(|| format!("a logging category: {}", NAMES.join(", "))),
    }
}

/// The levels from which enabled categories are logged.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Levels {
    global: Level,
    single: Vec<(Category, Level)>,
}

impl Default for Levels {
    fn default() -> Levels {
        Levels { global: Level::Debug, single: Vec::new() }
    }
}

impl Levels {
    /// The level set last for a category, else the global one.
    pub(crate) fn of(&self, category: Category) -> Level {
        self.single.iter().rev().find(|(known, _)| *known == category).map_or(self.global, |(_, level)| *level)
    }

    /// Core's `LogLevelsString`.
    pub(crate) fn settable() -> String {
        [Level::Info, Level::Debug, Level::Trace].map(Level::name).join(", ")
    }

    /// The categories in the set whose debug lines are logged.
    pub(super) fn with_debug(&self, categories: Categories) -> Categories {
        let is_logged = |category: &Category| categories.contains(*category) && self.of(*category) <= Level::Debug;
        Categories((0..NAMES.len()).map(Category).filter(is_logged).fold(0, |bits, category| bits | 1 << category.0))
    }

    /// `-loglevel`: `debug`, or `validation:trace`.
    pub(crate) fn set(&mut self, text: &str) -> Result<(), String> {
        let level = |name: &str| {
            let settable = Level::ALL.into_iter().filter(|level| *level <= Level::Info);
            settable.into_iter().find(|level| level.name() == name)
        };
        let must =
            || "info, debug or trace, or one of these after a category and a colon (validation:trace)".to_owned();
        match text.split_once(':') {
            None => self.global = level(text).ok_or_else(must)?,
            Some((category, name)) => {
                let category = Category::find(category).ok_or_else(must)?;
                self.single.push((category, level(name).ok_or_else(must)?));
            }
        }
        Ok(())
    }
}
