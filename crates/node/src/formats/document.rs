//! docs/formats/README.md. Input: [`STORES`](super::STORES). Output: the page, which `lydian -help-formats` prints.

use super::{Newer, Number, RELEASES, STORES, Store};

const HEAD: &str = "<!-- Generated from crates/node/src/formats by `make generate`. -->
# Formats

| page | contents |
|---|---|
| [files.md](files.md) | the owner of a directory, and every file that Lydian changes |
| [blk.md](blk.md) | block files |
| [index.md](index.md) | the block index, undo files, and the files next to them |
| [coins.md](coins.md) | the coin store |
| [coinstats.md](coinstats.md) | the index of `-coinstatsindex` |
| [filters.md](filters.md) | the index of `-blockfilterindex` |
| [tables.md](tables.md) | the index of `-txindex`, `-txospenderindex` and `-addressindex` |
| [shared-index.md](shared-index.md) | the index in a distributed store |
| [feed.md](feed.md) | what a node sends to front ends |
| [mempool.md](mempool.md) | `mempool.dat`, Core's format |
| [fees.md](fees.md) | `fee_estimates.dat`, Core's format |
| [electrum-bans.md](electrum-bans.md) | `electrum/banlist.json`: the bans of the Electrum server |
| [page.md](page.md) | sessions and reorganisations of the page |
| [history.md](history.md) | `history.dat`: what the page shows about the past |
| [disk.md](disk.md) | assumptions about disks; records of logs |
| [prevouts.md](prevouts.md) | the spent outputs of one block |
| [info-json.md](info-json.md), [index-json.md](index-json.md), [verify-json.md](verify-json.md) | JSON of `lydian info`, `lydian utxohash`, `lydian index`, `lydian verify` |
| [doctor.md](../doctor.md#json) | JSON of `lydian doctor` |
| [sigengine-disagreement.md](sigengine-disagreement.md) | a case in which a signature engine was wrong |
| [judge.md](judge.md), [lab-results.md](lab-results.md), [lab-electrum.md](lab-electrum.md), [lab-mempool.md](lab-mempool.md) | formats of the tests and the lab |

## The numbers of the stores

The number of a format is in the file named here. A release writes one number and reads it and the
older ones listed. A file of a newer format is refused by one sentence, which names the file, its
number and ours, before anything is written to the data directory, its log included:

```
";

const AFTER_EXAMPLE: &str = "```

Such a number is looked for at every start, also with `-reindex`, and by `lydian info` and `lydian
index`. What is cheaper to rebuild than to convert is rebuilt in the background: the indexes. While
an index is refused, the node goes on without it and does not touch its files; with `-indexrequired`
it does not start.

| store | file | number | reads | since release | a newer number | an older number | damage |
|---|---|---|---|---|---|---|---|
";

const FOOT: &str = "
Segments, sidecars and deaths of the coin store and the logs of the indexes have no numbers of their
own: the file in the table has the number of all of them.

## Releases

A release reads its own numbers and those of the release before. Each release adds a data directory
of its own to [testdata/datadirs](../../testdata/datadirs/README.md), which every later one must
open.

| release | numbers that it raised |
|---|---|
";

/// The page.
pub(crate) fn page() -> String {
    let example = lydian_coins::COINS_FORMAT.newer("chainstate/manifest", lydian_coins::COINS_FORMAT.number + 1);
    let example = example.map(|error| format!("{error}\n")).unwrap_or_default();
    let rows: String = STORES.iter().map(row).collect();
    let releases: String = RELEASES.iter().map(|release| release_row(release)).collect();
    [HEAD, &example, AFTER_EXAMPLE, &rows, FOOT, &releases].concat()
}

fn row(store: &Store) -> String {
    let Store { name, place, file, page, since, damaged, .. } = store;
    let (number, oldest) = match store.number {
        Number::Ours(format) => (format.number.to_string(), format.oldest.to_string()),
        Number::Cores { number, oldest } => (number.to_string(), oldest.to_string()),
        Number::None => ("none".to_owned(), String::new()),
    };
    let reads = match oldest.as_str() {
        "" => "-".to_owned(),
        oldest if oldest == number => number.clone(),
        oldest => format!("{oldest} to {number}"),
    };
    let newer = match store.newer {
        Newer::Refused => "refused",
        Newer::IndexRefused => "the index is refused",
        Newer::AsInCore(text) => text,
        Newer::NoNumber => "-",
    };
    let older = store.older.unwrap_or("-");
    format!(
        "| {name} | [`{}{file}`]({page}) | {number} | {reads} | {since} | {newer} | {older} | {damaged} |\n",
        place.shown()
    )
}

fn release_row(release: &str) -> String {
    let is_first = RELEASES.first() == Some(&release);
    let raised = STORES.iter().filter(|store| store.since == release).map(|store| store.name).collect::<Vec<_>>();
    match is_first {
        true => format!("| {release}, not published yet | all: the first release |\n"),
        false => format!("| {release} | {} |\n", raised.join(", ")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A new version of the program has to be added to the table, and what it changed marked in it.
    #[test]
    fn the_releases_are_those_of_the_program() {
        assert_eq!(RELEASES.last(), Some(&env!("CARGO_PKG_VERSION")));
        for store in STORES {
            assert!(RELEASES.contains(&store.since), "{}", store.name);
            let is_numbered = !matches!(store.number, Number::None);
            assert_eq!(is_numbered, store.newer != Newer::NoNumber, "{}", store.name);
            if let Number::Ours(format) = store.number {
                assert!(format.oldest <= format.number);
                assert_eq!(store.older.is_some(), format.oldest < format.number || format.number > 1, "{}", store.name);
            }
        }
    }

    #[test]
    fn the_page_has_a_row_for_each_store() {
        let page = page();
        assert!(page.contains("\nchainstate/manifest has format 2, which a newer release of Lydian reads; this one ("));
        assert!(page.contains("| coins | [`chainstate/manifest`](coins.md) | 1 | 1 | 0.1.0 | refused | - | "));
        assert_eq!(
            page.lines().filter(|line| line.starts_with("| ")).count(),
            STORES.len() + 22 + RELEASES.len() + 2 - 1
        );
    }
}
