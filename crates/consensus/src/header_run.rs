//! [`HeaderRun`]: the facts that the rules need about the ancestors of the next header, updated as a chain of headers
//! grows, so that checking a header need not walk back.
//!
//! Input: a view of the chain up to a parent, then one header at a time. Output: the result of
//! [`check_header_in_chain`], in a tenth of the time. Invariant: both return the same (a property test compares them on
//! every network). Cost: 11 ancestor lookups at the start, then one for each retarget period. Reads no clock and stores
//! nothing.

use crate::header::{HeaderFacts, check_facts, version_floor};
use crate::limits::MEDIAN_TIME_SPAN;
use crate::params::Params;
use crate::pow::{compact, retarget};
use crate::rule::{Rule, Violation};
use crate::view::HeaderView;
use lydian_primitives::{Header, Height};

const SPAN: usize = MEDIAN_TIME_SPAN as usize;

/// The facts about the end of a chain of headers.
#[derive(Clone, Debug)]
pub struct HeaderRun {
    last: Header,
    height: Height,
    /// The times of the last headers, as a ring: `times[height % 11]`.
    times: [u32; SPAN],
    /// The same times, sorted; only the first `count` are valid.
    sorted: [u32; SPAN],
    count: usize,
    /// The target of the last header that was not mined at the limit by the test networks' minimum-difficulty rule.
    /// `None` if the view does not go back that far.
    walked_bits: Option<u32>,
    limit_bits: u32,
}

impl HeaderRun {
    /// Starts from the chain that ends at `height` of the view. Returns `None` if the view does not know that header.
    pub fn at(height: Height, headers: &impl HeaderView, params: &Params) -> Option<HeaderRun> {
        let last = headers.ancestor(height)?.header;
        let limit_bits = compact(params.pow_limit);
        let (times, sorted) = ([0; SPAN], [0; SPAN]);
        let mut run = HeaderRun { last, height, times, sorted, count: 0, walked_bits: None, limit_bits };
        let lowest = (height.0 + 1).saturating_sub(MEDIAN_TIME_SPAN);
        for at in lowest..=height.0 {
            // A view may begin above this height and does not know the headers below.
            if let Some(ancestor) = headers.ancestor(Height(at)) {
                run.push_time(Height(at), ancestor.header.time);
            }
        }
        if params.allow_min_difficulty_blocks {
            let interval = params.difficulty_adjustment_interval();
            let (mut at, mut bits) = (height, Some(last.bits));
            while at.0 != 0 && !at.0.is_multiple_of(interval) && bits == Some(limit_bits) {
                at = Height(at.0 - 1);
                bits = headers.ancestor(at).map(|ancestor| ancestor.header.bits);
            }
            run.walked_bits = bits;
        }
        Some(run)
    }

    pub fn height(&self) -> Height {
        self.height
    }

    /// Checks the next header: Core's `ContextualCheckBlockHeader`. `headers` is used at retargets only.
    pub fn check(
        &self,
        header: &Header,
        headers: &impl HeaderView,
        now: i64,
        params: &Params,
    ) -> Result<(), Violation> {
        let height = Height(self.height.0 + 1);
        let required = self.required_bits(header, headers, params).ok_or(Violation::of(Rule::PrevBlkNotFound))?;
        check_facts(&HeaderFacts {
            header: *header,
            required_bits: required,
            median_time_past: i64::from(self.sorted[self.count / 2]),
            parent_time: i64::from(self.last.time),
            is_period_start: height.0.is_multiple_of(params.difficulty_adjustment_interval()),
            now,
            version_floor: version_floor(height, params),
            enforce_bip94: params.enforce_bip94,
        })
    }

    /// Core's `GetNextWorkRequired`; see [`crate::pow::next_work_required`].
    fn required_bits(&self, header: &Header, headers: &impl HeaderView, params: &Params) -> Option<u32> {
        let interval = params.difficulty_adjustment_interval();
        let next = self.height.0 + 1;
        if next.is_multiple_of(interval) {
            let first = headers.ancestor(Height(next.checked_sub(interval)?))?.header;
            return Some(retarget(&first, &self.last, params));
        }
        if !params.allow_min_difficulty_blocks {
            return Some(self.last.bits);
        }
        if i64::from(header.time) > i64::from(self.last.time) + params.pow_target_spacing * 2 {
            return Some(self.limit_bits);
        }
        self.walked_bits
    }

    /// Appends a header that was checked.
    pub fn push(&mut self, header: &Header, params: &Params) {
        self.height = Height(self.height.0 + 1);
        self.last = *header;
        self.push_time(self.height, header.time);
        let is_period_start = self.height.0.is_multiple_of(params.difficulty_adjustment_interval());
        if is_period_start || header.bits != self.limit_bits {
            self.walked_bits = Some(header.bits);
        }
    }

    /// Adds a time in place of the one eleven headers before.
    fn push_time(&mut self, height: Height, time: u32) {
        let slot = (height.0 % MEDIAN_TIME_SPAN) as usize;
        let mut at = self.count;
        if self.count == SPAN {
            let old = self.times[slot];
            at = self.sorted.iter().position(|sorted| *sorted == old).unwrap_or(0);
            self.sorted.copy_within(at + 1.., at);
            at = SPAN - 1;
        } else {
            self.count += 1;
        }
        self.times[slot] = time;
        while at > 0 && self.sorted[at - 1] > time {
            self.sorted[at] = self.sorted[at - 1];
            at -= 1;
        }
        self.sorted[at] = time;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::header::check_header_in_chain;
    use crate::params::Chain;
    use crate::view::Ancestor;
    use lydian_primitives::BlockHash;
    use proptest::prelude::*;

    struct Model(Vec<Header>);

    impl HeaderView for Model {
        fn ancestor(&self, height: Height) -> Option<Ancestor> {
            let header = *self.0.get(height.0 as usize)?;
            Some(Ancestor { hash: BlockHash::ZERO, header })
        }
    }

    /// Adds the header if the plain check accepts it. The run must return the same result, wherever it was started.
    fn step(model: &mut Model, run: &mut HeaderRun, header: Header, now: i64, params: &Params) {
        let parent = Height(u32::try_from(model.0.len()).unwrap() - 1);
        let plain = check_header_in_chain(&header, parent, model, now, params);
        assert_eq!(run.check(&header, model, now, params), plain.map(|_| ()), "at {parent}");
        if plain.is_ok() {
            model.0.push(header);
            run.push(&header, params);
        }
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(40))]

        /// Chains over several retargets: times that jump and go back, minimum difficulty, wrong targets and versions.
        /// The run is rebuilt at some heights, as at the start of a batch.
        /// checklist: 22, 23, 24
        #[test]
        fn says_what_the_plain_check_says(chain in 0..5usize, seed: u64, steps in 1_500..5_000u32) {
            let params = Params::new(Chain::ALL[chain]);
            let genesis = *params.genesis_block().parse().unwrap().header();
            let mut model = Model(vec![genesis]);
            let mut run = HeaderRun::at(Height(0), &model, &params).unwrap();
            let mut state = seed | 1;
            let mut random = move |below: u64| {
                state ^= state << 13;
                state ^= state >> 7;
                state ^= state << 17;
                state % below
            };
            for _ in 0..steps {
                let last = *model.0.last().unwrap();
                let time = match random(12) {
                    0 => last.time.wrapping_add(1_201 + u32::try_from(random(9_000)).unwrap()),
                    1 => last.time.wrapping_sub(u32::try_from(random(1_500)).unwrap()),
                    _ => last.time.wrapping_add(u32::try_from(random(700)).unwrap()),
                };
                let mut header = Header { time, version: 4, ..last };
                let parent = Height(u32::try_from(model.0.len()).unwrap() - 1);
                header.bits = crate::pow::next_work_required(&header, parent, &model, &params).unwrap();
                match random(40) {
                    0 => header.bits = last.bits,
                    1 => header.bits = run.limit_bits,
                    2 => header.version = i32::try_from(random(5)).unwrap() - 1,
                    _ => {}
                }
                let now = if random(50) == 0 { i64::from(time) - 7_201 } else { i64::from(u32::MAX) };
                step(&mut model, &mut run, header, now, &params);
                if random(200) == 0 {
                    let height = run.height();
                    run = HeaderRun::at(height, &model, &params).unwrap();
                }
            }
            prop_assert!(model.0.len() > 1_000, "{} headers were taken", model.0.len());
        }
    }
}
