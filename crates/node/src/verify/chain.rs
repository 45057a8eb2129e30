//! Verifies a set of block files. Input: the files of one chain. Output: a [`ChainItem`]: every block in height order
//! through the plain validator, and a sentence for each irregularity.

use super::Context;
use super::plan::BlockSet;
use crate::clock::Stopwatch;
use crate::limits::VIOLATIONS_MAX;
use crate::progress::Progress;
use crate::report::{Broken, ChainItem, Tip, Totals, Utxo, Verdict};
use crate::screen::count;
use lydian_chain::{BlockFiles, BlockIndex, Ordered, Placed, ReadError};
use lydian_consensus::{PlainValidator, Rejected, Rule, Violation};
use lydian_primitives::BlockHash;
use std::collections::BTreeMap;

pub(super) fn verify_set(
    context: &Context<'_>,
    set: &BlockSet,
    progress: &mut Progress,
) -> Result<ChainItem, ReadError> {
    let watch = Stopwatch::start();
    let params = context.params(set.chain);
    let mut files = BlockFiles::new(context.disk, set.files.clone());
    let mut index = files.scan(params.magic, &mut |path, found| {
        progress.begin(&format!("{}: reading headers of {} ({found} blocks so far)", set.chain, path.display()), 1);
    })?;
    let ordered = index.order(params.genesis_hash);
    let mut run = Run {
        set,
        files,
        index,
        ordered,
        validator: PlainValidator::new(params),
        violations: Vec::new(),
        violations_left_out: 0,
        blocks_not_verified: 0,
        accepted: 0,
        damaged: BTreeMap::new(),
        of_the_bytes: BTreeMap::new(),
        notes: Vec::new(),
    };
    run.validate(context.now, progress)?;
    Ok(run.finish(watch))
}

struct Run<'a> {
    set: &'a BlockSet,
    files: BlockFiles<'a>,
    index: BlockIndex,
    ordered: Ordered,
    validator: PlainValidator,
    violations: Vec<Broken>,
    violations_left_out: u64,
    blocks_not_verified: u64,
    /// Blocks that broke no rule when they were added.
    accepted: u64,
    /// Records that do not parse; a later copy of the same block may replace them.
    damaged: BTreeMap<BlockHash, String>,
    /// Violations, by index, that concern the bytes of a record and not the block with this hash.
    of_the_bytes: BTreeMap<BlockHash, usize>,
    notes: Vec<String>,
}

impl Run<'_> {
    fn validate(&mut self, now: u32, progress: &mut Progress) -> Result<(), ReadError> {
        let blocks = std::mem::take(&mut self.ordered.blocks);
        let found = count(blocks.len() as u64, "block");
        progress.begin(&format!("{}: validating {found}", self.set.chain), blocks.len() as u64);
        for (done, placed) in blocks.iter().enumerate() {
            progress.advance(done as u64);
            let block = match self.files.read(&placed.record) {
                Ok(read) => {
                    self.notes.extend(read.remark.map(|remark| remark.to_string()));
                    read.block
                }
                Err(error @ (ReadError::Parse { .. } | ReadError::Changed { .. })) => {
                    self.damaged.insert(placed.record.hash, error.to_string());
                    continue;
                }
                Err(error) => return Err(error),
            };
            match self.validator.accept_block(block, now) {
                Ok(accepted) => {
                    self.accepted += 1;
                    self.heal(&accepted.hash);
                    for (hash, violation) in accepted.invalid {
                        self.accepted = self.accepted.saturating_sub(1);
                        if let Some(other) = blocks.iter().find(|other| other.record.hash == hash) {
                            self.broken(other, &violation)?;
                        }
                    }
                }
                // The genesis block, and repeated copies.
                Err(Rejected::Duplicate | Rejected::DuplicateInvalid) => {}
                Err(Rejected::Violation(violation)) => match violation.rule {
                    // The parent is in the files, or the block would not be in this order; so it is the parent that is
                    // invalid.
                    Rule::PrevBlkNotFound | Rule::BadPrevblk => self.blocks_not_verified += 1,
                    _ => self.broken(placed, &violation)?,
                },
            }
        }
        self.ordered.blocks = blocks;
        Ok(())
    }

    /// An intact copy of a block came after a damaged one: the damage was in the bytes, not in the block.
    fn heal(&mut self, hash: &BlockHash) {
        if let Some(sentence) = self.damaged.remove(hash) {
            self.notes.push(format!("{sentence}; a later copy is whole"));
        }
        if let Some(at) = self.of_the_bytes.remove(hash) {
            let broken = self.violations.remove(at);
            self.of_the_bytes.values_mut().filter(|index| **index > at).for_each(|index| *index -= 1);
            let Broken { file, offset, block, reject_reason, .. } = broken;
            self.notes.push(format!(
                "{file}:{offset}: this copy of block {block} is damaged ({reject_reason}); a later copy is whole"
            ));
        }
    }

    fn broken(&mut self, placed: &Placed, violation: &Violation) -> Result<(), ReadError> {
        if self.violations.len() == VIOLATIONS_MAX {
            self.violations_left_out += 1;
            return Ok(());
        }
        // The validator has consumed the block; read it again to name transaction and prevout.
        let block = self.files.read(&placed.record)?.block;
        if violation.rule.is_of_the_bytes() {
            self.of_the_bytes.insert(placed.record.hash, self.violations.len());
        }
        let file = self.index.path_of(&placed.record).display().to_string();
        self.violations.push(Broken::new(violation, &block, Some(placed.height.0), file, placed.record.offset));
        Ok(())
    }

    fn finish(self, watch: Stopwatch) -> ChainItem {
        let (mut unreadable, mut notes) = (Vec::new(), Vec::new());
        for remark in &self.index.remarks {
            let list = if remark.kind.is_loss() { &mut unreadable } else { &mut notes };
            list.push(remark.to_string());
        }
        notes.extend(self.notes);
        unreadable.extend(self.damaged.into_values());
        unreadable.extend(self.ordered.missing_parents.iter().map(ToString::to_string));
        if self.index.records.is_empty()
            && let Some(first) = self.set.files.first()
        {
            let path = first.path.display();
            unreadable.push(format!("{path}: there is no block of {} in {}", self.set.chain, files_text(self.set)));
        }
        let is_broken = !self.violations.is_empty();
        let verdict = match (is_broken, self.set.is_expected_invalid) {
            (true, false) | (false, true) => Verdict::Invalid,
            _ if !unreadable.is_empty() => Verdict::Unreadable,
            _ => Verdict::Valid,
        };
        let (height, hash) = self.validator.tip();
        ChainItem {
            verdict,
            is_expected_invalid: self.set.is_expected_invalid,
            chain: self.set.chain.name(),
            files: self.set.files.iter().map(|file| file.path.display().to_string()).collect(),
            records: self.index.records.len() as u64,
            tip: Tip { height: height.0, hash: hash.to_string() },
            utxo: Utxo {
                coins: self.validator.coin_count() as u64,
                hash_serialized_3: BlockHash(self.validator.hash_serialized_3()).to_string(),
                muhash: BlockHash(self.validator.muhash()).to_string(),
            },
            totals: Totals::from(self.validator.stats()),
            violations: self.violations,
            violations_left_out: self.violations_left_out,
            blocks_not_verified: self.blocks_not_verified,
            blocks_off_chain: self.accepted.saturating_sub(u64::from(height.0)),
            unreadable,
            notes,
            notes_left_out: self.index.remarks_left_out as u64,
            seconds: watch.seconds(),
        }
    }
}

fn files_text(set: &BlockSet) -> String {
    match set.files.len() {
        1 => "this file".to_owned(),
        more => format!("this file or the {} beside it", more - 1),
    }
}
