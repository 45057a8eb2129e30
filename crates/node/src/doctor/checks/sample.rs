//! The check of a random sample of the files: records of coins and pages of indexes by their checksums, blocks by their
//! merkle roots.
//!
//! Cost: 32 records, 32 pages and the records of up to 4 block files, within two seconds.

use super::with_directory;
use crate::clock::now_nanos;
use crate::doctor::check::Answer;
use crate::doctor::facts::Facts;
use crate::settings::Settings;
use lydian_chain::{BlockFile, BlockFiles, ReadError, find_block_files};
use lydian_disk::DiskErrorKind;
use lydian_stdx::saturating_usize;

const RECORDS: usize = 32;
const BLOCK_FILES: usize = 4;
const BLOCKS_OF_EACH: usize = 4;

/// No further block file is begun after this time.
const TIME_MAX_NS: u64 = 2_000_000_000;

pub(crate) fn sample(facts: &Facts<'_>) -> Answer {
    with_directory(facts, |settings| {
        let mut random = |below| facts.below(below);
        let coins = lydian_coins::sample(facts.disk, &settings.coins(), RECORDS, &mut random);
        let pages = lydian_index::sample(facts.disk, &settings.datadir, &settings.params, RECORDS, &mut random);
        let blocks = blocks(facts, settings);
        let damaged = |what: &str, words: String| Answer::bad(format!("{what}: {words}"));
        let findings: Vec<Answer> = [
            coins.as_ref().err().map(|error| damaged("coins (-reindex-chainstate)", error.to_string())),
            pages.as_ref().err().map(|error| damaged("indexes (lydian index drop tables)", error.to_string())),
            blocks.as_ref().err().map(|error| damaged("blocks (-reindex)", error.clone())),
        ]
        .into_iter()
        .flatten()
        .collect();
        let counts = (coins.ok().flatten().unwrap_or(0), pages.unwrap_or(0), blocks.unwrap_or(0));
        Answer::worst(findings, || match counts {
            (0, 0, 0) => Answer::skipped("there are no coins, indexes and blocks yet"),
            (coins, pages, blocks) => Answer::ok(format!(
                "{coins} records of coins, {pages} pages of indexes and {blocks} blocks are as they were written"
            )),
        })
    })
}

/// Reads random blocks of random files, and returns their number.
fn blocks(facts: &Facts<'_>, settings: &Settings) -> Result<usize, String> {
    let files = match find_block_files(facts.disk, &settings.blocks) {
        Ok(files) => files,
        Err(ReadError::NoBlockFiles { .. }) => return Ok(0),
        Err(ReadError::Disk(error)) if error.kind == DiskErrorKind::NotFound => return Ok(0),
        Err(error) => return Err(error.to_string()),
    };
    let begin = now_nanos();
    let mut count = 0;
    for _ in 0..BLOCK_FILES.min(files.len()) {
        if now_nanos() - begin > TIME_MAX_NS {
            break;
        }
        let file = files[saturating_usize(facts.below(files.len() as u64))].clone();
        count += match blocks_of(facts, settings, file) {
            // A running node has pruned it.
            Err(ReadError::Disk(error)) if error.kind == DiskErrorKind::NotFound && facts.is_running() => 0,
            read => read.map_err(|error| error.to_string())??,
        };
    }
    Ok(count)
}

fn blocks_of(facts: &Facts<'_>, settings: &Settings, file: BlockFile) -> Result<Result<usize, String>, ReadError> {
    let path = file.path.clone();
    let mut files = BlockFiles::new(facts.disk, vec![file]);
    let records = files.scan(settings.params.magic, &mut |_, _| {})?.records;
    let count = BLOCKS_OF_EACH.min(records.len());
    for _ in 0..count {
        let record = &records[saturating_usize(facts.below(records.len() as u64))];
        let block = files.read(record)?.block;
        if block.merkle_root() != block.header().merkle_root {
            let words = format!(
                "{}:{}: the transactions of a block are not those of its header",
                path.display(),
                record.offset
            );
            return Ok(Err(words));
        }
    }
    Ok(Ok(count))
}
