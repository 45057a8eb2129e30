//! Header rules.
//!
//! Input: a header, a view of its ancestors ([`HeaderView`]) and the current time as a value. Output: the header's
//! height, or the first rule it breaks. Pure: reads no clock and stores nothing.

use crate::limits::{MAX_FUTURE_BLOCK_TIME, MAX_TIMEWARP};
use crate::params::{Deployment, Params};
use crate::pow::{is_proof_of_work, next_work_required};
use crate::rule::{Check, Rule, Violation, first_broken};
use crate::view::HeaderView;
use lydian_primitives::{BlockHash, Header, Height};

/// The facts about a header in the context of its chain, gathered once.
#[derive(Clone, Copy, Debug)]
pub struct HeaderFacts {
    pub header: Header,
    pub required_bits: u32,
    pub median_time_past: i64,
    pub parent_time: i64,
    pub is_period_start: bool,
    /// Seconds since 1970 by the caller's clock.
    pub now: i64,
    pub version_floor: i32,
    pub enforce_bip94: bool,
}

/// The checks of Core's `ContextualCheckBlockHeader`, in Core's order.
pub const HEADER_IN_CHAIN_CHECKS: &[Check<HeaderFacts>] = &[
    Check { rule: Rule::BadDiffbits, holds: |facts| facts.header.bits == facts.required_bits },
    Check { rule: Rule::TimeTooOld, holds: |facts| i64::from(facts.header.time) > facts.median_time_past },
    Check { rule: Rule::TimeTimewarpAttack, holds: is_no_timewarp },
    Check { rule: Rule::TimeTooNew, holds: |facts| i64::from(facts.header.time) <= facts.now + MAX_FUTURE_BLOCK_TIME },
    Check { rule: Rule::BadVersion, holds: |facts| facts.header.version >= facts.version_floor },
];

fn is_no_timewarp(facts: &HeaderFacts) -> bool {
    let is_bound = facts.enforce_bip94 && facts.is_period_start;
    !is_bound || i64::from(facts.header.time) >= facts.parent_time - MAX_TIMEWARP
}

/// A header's hash MUST NOT exceed its target. Core's `CheckBlockHeader`.
pub fn check_header(header: &Header, hash: &BlockHash, params: &Params) -> Result<(), Violation> {
    if is_proof_of_work(hash, header.bits, params) { Ok(()) } else { Err(Violation::of(Rule::HighHash)) }
}

/// Checks a header against its ancestors. `headers` answers up to its parent, at `parent_height`.
///
/// An ancestor that the view does not know counts as a missing parent: a node knows all of them.
pub fn check_header_in_chain(
    header: &Header,
    parent_height: Height,
    headers: &impl HeaderView,
    now: i64,
    params: &Params,
) -> Result<Height, Violation> {
    let facts =
        header_facts(header, parent_height, headers, now, params).ok_or(Violation::of(Rule::PrevBlkNotFound))?;
    check_facts(&facts)?;
    Ok(Height(parent_height.0 + 1))
}

pub(crate) fn check_facts(facts: &HeaderFacts) -> Result<(), Violation> {
    let Some(rule) = first_broken(HEADER_IN_CHAIN_CHECKS, facts) else { return Ok(()) };
    let version = (rule == Rule::BadVersion).then_some(facts.header.version);
    Err(Violation { version, ..Violation::of(rule) })
}

/// The same check without ancestors: every fact that depends on them is assumed to be in the header's favour.
pub(crate) fn check_header_without_ancestors(
    header: &Header,
    height: Height,
    now: i64,
    params: &Params,
) -> Result<(), Violation> {
    check_facts(&HeaderFacts {
        header: *header,
        required_bits: header.bits,
        median_time_past: i64::MIN,
        parent_time: 0,
        is_period_start: false,
        now,
        version_floor: version_floor(height, params),
        enforce_bip94: params.enforce_bip94,
    })
}

fn header_facts(
    header: &Header,
    parent_height: Height,
    headers: &impl HeaderView,
    now: i64,
    params: &Params,
) -> Option<HeaderFacts> {
    let height = Height(parent_height.0 + 1);
    Some(HeaderFacts {
        header: *header,
        required_bits: next_work_required(header, parent_height, headers, params)?,
        median_time_past: headers.median_time_past(parent_height)?,
        parent_time: i64::from(headers.ancestor(parent_height)?.header.time),
        is_period_start: height.0.is_multiple_of(params.difficulty_adjustment_interval()),
        now,
        version_floor: version_floor(height, params),
        enforce_bip94: params.enforce_bip94,
    })
}

/// The lowest version allowed at this height. Before BIP-0034 any version is allowed, even a negative one.
pub fn version_floor(height: Height, params: &Params) -> i32 {
    [(Deployment::Cltv, 4), (Deployment::Dersig, 3), (Deployment::HeightInCoinbase, 2)]
        .into_iter()
        .find(|(deployment, _)| params.is_active(*deployment, height))
        .map_or(i32::MIN, |(_, floor)| floor)
}
