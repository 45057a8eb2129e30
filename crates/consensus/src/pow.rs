//! Proof of work: compact targets, the work they represent, and the required target of the next block.
//!
//! Input: headers. Output: numbers. Pure; `header` contains the rules that compare them. Source: Core's pow.cpp,
//! arith_uint256.cpp (`SetCompact`, `GetCompact`) and chain.cpp (`GetBlockProof`); BIP-0094 for testnet4.

use crate::params::Params;
use crate::u256::U256;
use crate::view::HeaderView;
use lydian_primitives::{BlockHash, Header, Height};

/// A target decoded from its compact form, and whether that form is invalid.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Compact {
    pub target: U256,
    pub is_negative: bool,
    pub is_overflow: bool,
}

/// Core's `arith_uint256::SetCompact`: a mantissa of 23 bits with a sign bit, and an exponent in bytes.
pub fn expand(bits: u32) -> Compact {
    let exponent = bits >> 24;
    let mantissa = bits & 0x007f_ffff;
    let target = if exponent <= 3 {
        U256::from_u64(u64::from(mantissa >> (8 * (3 - exponent))))
    } else {
        U256::from_u64(u64::from(mantissa)).shifted_left(8 * (exponent - 3))
    };
    // If the exponent is small, Core shifts the mantissa's bytes out before it tests the mantissa.
    let tested = if exponent <= 3 { mantissa >> (8 * (3 - exponent)) } else { mantissa };
    Compact {
        target,
        is_negative: tested != 0 && bits & 0x0080_0000 != 0,
        is_overflow: tested != 0
            && (exponent > 34 || (tested > 0xff && exponent > 33) || (tested > 0xffff && exponent > 32)),
    }
}

/// Core's `arith_uint256::GetCompact`: the three most significant bytes, never with the sign bit set.
pub fn compact(target: U256) -> u32 {
    let mut size = target.bit_count().div_ceil(8);
    let word =
        if size <= 3 { target.low_u64() << (8 * (3 - size)) } else { target.shifted_right(8 * (size - 3)).low_u64() };
    let mut mantissa = u32::try_from(word & 0x00ff_ffff).unwrap_or(0);
    if mantissa & 0x0080_0000 != 0 {
        mantissa >>= 8;
        size += 1;
    }
    mantissa | size << 24
}

/// Core's `DeriveTarget`: the target, or `None` if it is invalid or above the network's limit.
pub fn derive_target(bits: u32, params: &Params) -> Option<U256> {
    let Compact { target, is_negative, is_overflow } = expand(bits);
    (!is_negative && !is_overflow && target != U256::ZERO && target <= params.pow_limit).then_some(target)
}

/// Core's `CheckProofOfWork`.
pub fn is_proof_of_work(hash: &BlockHash, bits: u32, params: &Params) -> bool {
    derive_target(bits, params).is_some_and(|target| U256::from_le_bytes(&hash.0) <= target)
}

/// [`is_proof_of_work`] for many headers: derives the target only when `bits` changes.
#[derive(Clone, Debug)]
pub struct PowCheck<'a> {
    params: &'a Params,
    bits: u32,
    target: Option<U256>,
}

impl<'a> PowCheck<'a> {
    pub fn new(params: &'a Params) -> PowCheck<'a> {
        PowCheck { params, bits: 0, target: None }
    }

    pub fn holds(&mut self, hash: &BlockHash, bits: u32) -> bool {
        if self.bits != bits {
            (self.bits, self.target) = (bits, derive_target(bits, self.params));
        }
        self.target.is_some_and(|target| U256::from_le_bytes(&hash.0) <= target)
    }
}

/// Expected number of hashes to find a block with this target, 2^256 / (target + 1): Core's `GetBlockProof`. Zero if
/// the target is invalid.
pub fn block_proof(bits: u32) -> U256 {
    let Compact { target, is_negative, is_overflow } = expand(bits);
    if is_negative || is_overflow || target == U256::ZERO {
        return U256::ZERO;
    }
    // 2^256 does not fit, but 2^256 / (t+1) is ~t / (t+1) + 1.
    let divided = target.checked_add(U256::ONE).and_then(|divisor| target.complement().checked_div(divisor));
    divided.and_then(|quotient| quotient.checked_add(U256::ONE)).unwrap_or(U256::ONE)
}

/// The compact target required for the block after `parent_height`: Core's `GetNextWorkRequired`.
///
/// Returns `None` if the view does not know a required ancestor.
pub fn next_work_required(
    header: &Header,
    parent_height: Height,
    headers: &impl HeaderView,
    params: &Params,
) -> Option<u32> {
    let interval = params.difficulty_adjustment_interval();
    let parent = headers.ancestor(parent_height)?.header;
    if (parent_height.0 + 1).is_multiple_of(interval) {
        let first = headers.ancestor(Height((parent_height.0 + 1).checked_sub(interval)?))?.header;
        return Some(retarget(&first, &parent, params));
    }
    if !params.allow_min_difficulty_blocks {
        return Some(parent.bits);
    }
    let limit = compact(params.pow_limit);
    if i64::from(header.time) > i64::from(parent.time) + params.pow_target_spacing * 2 {
        return Some(limit);
    }
    // Walk back to the last block that was not mined at the limit by the rule above.
    let mut height = parent_height;
    let mut candidate = parent;
    while height.0 != 0 && !height.0.is_multiple_of(interval) && candidate.bits == limit {
        height = Height(height.0 - 1);
        candidate = headers.ancestor(height)?.header;
    }
    Some(candidate.bits)
}

/// The target after a period that starts with `first` and ends with `last`: Core's `CalculateNextWorkRequired`.
///
/// The time covers 2,015 intervals, not 2,016. The target changes by at most a factor of 4 in either direction.
pub fn retarget(first: &Header, last: &Header, params: &Params) -> u32 {
    if params.no_retargeting {
        return last.bits;
    }
    let timespan = params.pow_target_timespan;
    let actual = (i64::from(last.time) - i64::from(first.time)).clamp(timespan / 4, timespan * 4);
    // BIP-0094: the first block of a period cannot use the minimum-difficulty rule, so its target is the real one.
    let base = if params.enforce_bip94 { first.bits } else { last.bits };
    let to_u32 = |seconds: i64| u32::try_from(seconds).unwrap_or(u32::MAX);
    let product = expand(base).target.wrapping_mul_u32(to_u32(actual));
    let target = product.checked_div(U256::from_u64(u64::from(to_u32(timespan)))).unwrap_or(params.pow_limit);
    compact(target.min(params.pow_limit))
}

/// Whether one target may follow another, for the anti-spam check of headers that are not stored: Core's
/// `PermittedDifficultyTransition`.
///
/// Without the times of the period, a retarget can be bounded only by a factor of 4 in either direction. Within a
/// period the target must not change.
pub fn permitted_difficulty_transition(params: &Params, height: Height, old_bits: u32, new_bits: u32) -> bool {
    if params.allow_min_difficulty_blocks {
        return true;
    }
    if !height.0.is_multiple_of(params.difficulty_adjustment_interval()) {
        return old_bits == new_bits;
    }
    let timespan = params.pow_target_timespan;
    // Rounds like the retarget: multiply, divide, cap at the limit and convert to the compact form.
    let after = |seconds: i64| {
        let to_u32 = |seconds: i64| u32::try_from(seconds).unwrap_or(u32::MAX);
        let product = expand(old_bits).target.wrapping_mul_u32(to_u32(seconds));
        let target = product.checked_div(U256::from_u64(u64::from(to_u32(timespan)))).unwrap_or(params.pow_limit);
        expand(compact(target.min(params.pow_limit))).target
    };
    let observed = expand(new_bits).target;
    after(timespan / 4) <= observed && observed <= after(timespan * 4)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::params::Chain;

    /// The check for many headers returns the same as the check for one, whatever was checked before.
    #[test]
    fn a_check_for_many_forgets_nothing_wrong() {
        let params = Params::new(Chain::Main);
        let mut check = PowCheck::new(&params);
        for bits in [0, 0x1d00_ffff, 0, 0x1d00_ffff, 0x1d01_0000, 0x1b04_864c, 0x0100_0000, 0x1b04_864c] {
            for hash in [BlockHash::ZERO, BlockHash([0xff; 32]), params.genesis_hash] {
                assert_eq!(check.holds(&hash, bits), is_proof_of_work(&hash, bits, &params), "{bits:08x}");
            }
        }
    }

    /// Core's pow_tests.cpp: a change up to the limit of the clamp is permitted, one beyond it is not.
    /// checklist: 60
    #[test]
    fn permitted_transitions_as_in_cores_unit_tests() {
        let params = Params::new(Chain::Main);
        let at_retarget = Height(2016 * 10);
        let permitted = |old, new| permitted_difficulty_transition(&params, at_retarget, old, new);
        assert!(permitted(0x1c05_a3f4, 0x1c01_68fd) && !permitted(0x1c05_a3f4, 0x1c01_68fc));
        assert!(permitted(0x1c38_7f6f, 0x1d00_e1fd) && !permitted(0x1c38_7f6f, 0x1d00_e1fe));
        assert!(permitted(0x1d00_ffff, 0x1d00_ffff) && !permitted(0x1d00_ffff, 0x1d01_0000));
        let within = Height(2016 * 10 + 1);
        assert!(permitted_difficulty_transition(&params, within, 0x1c05_a3f4, 0x1c05_a3f4));
        assert!(!permitted_difficulty_transition(&params, within, 0x1c05_a3f4, 0x1c05_a3f3));
        for chain in [Chain::Test, Chain::Testnet4, Chain::Regtest] {
            assert!(permitted_difficulty_transition(&Params::new(chain), within, 0x1c05_a3f4, 0x1d00_ffff));
        }
        assert!(!permitted_difficulty_transition(&Params::new(Chain::Signet), within, 0x1c05_a3f4, 0x1d00_ffff));
    }

    /// From Core's arith_uint256_tests.cpp, `bignum_SetCompact`.
    /// checklist: 25
    #[test]
    fn compact_form_as_core_reads_and_writes_it() {
        for (bits, target, back) in [
            (0x0000_0000, 0, 0),
            (0x0012_3456, 0, 0),
            (0x0100_3456, 0, 0),
            (0x0200_0056, 0, 0),
            (0x0300_0000, 0, 0),
            (0x0400_0000, 0, 0),
            (0x0092_3456, 0, 0),
            (0x0112_3456, 0x12, 0x0112_0000),
            (0x0212_3456, 0x1234, 0x0212_3400),
            (0x0312_3456, 0x12_3456, 0x0312_3456),
            (0x0412_3456, 0x1234_5600, 0x0412_3456),
            (0x0500_9234, 0x9234_0000, 0x0500_9234),
        ] {
            let read = expand(bits);
            assert_eq!(read.target, U256::from_u64(target), "{bits:08x}");
            assert!(!read.is_negative && !read.is_overflow, "{bits:08x}");
            assert_eq!(compact(read.target), back, "{bits:08x}");
        }
        assert!(expand(0x01fe_dcba).is_negative && expand(0x01fe_dcba).target == U256::from_u64(0x7e));
        assert!(expand(0x0492_3456).is_negative);
        assert!(expand(0xff12_3456).is_overflow);
        assert_eq!(compact(U256::from_u64(0x80)), 0x0200_8000);
        assert_eq!(compact(expand(0x2012_3456).target), 0x2012_3456);
    }

    /// Zero, negative, overflowing and too easy targets are never met, whatever the hash.
    /// checklist: 23, 25
    #[test]
    fn targets_out_of_range_are_refused() {
        let params = Params::new(Chain::Main);
        assert_eq!(derive_target(0x1d00_ffff, &params), Some(params.pow_limit.shifted_right(208).shifted_left(208)));
        for bits in [0, 0x0100_0000, 0x1d80_ffff, 0x0180_0001, 0xff12_3456, 0x1d01_0000, 0x2100_ffff] {
            assert_eq!(derive_target(bits, &params), None, "{bits:08x}");
            assert!(!is_proof_of_work(&BlockHash::ZERO, bits, &params), "{bits:08x}");
        }
    }

    #[test]
    fn work_of_the_genesis_block() {
        assert_eq!(block_proof(0x1d00_ffff), U256::from_u64(0x1_0001_0001));
        assert_eq!(block_proof(0x207f_ffff), U256::from_u64(2));
        assert_eq!(block_proof(0), U256::ZERO);
    }

    fn header(time: u32, bits: u32) -> Header {
        Header { version: 1, prev_block: BlockHash::ZERO, merkle_root: [0; 32], time, bits, nonce: 0 }
    }

    /// From Core's pow_tests.cpp: an ordinary retarget, the limit, and both clamps.
    /// checklist: 23
    #[test]
    fn retarget_as_in_cores_unit_tests() {
        let params = Params::new(Chain::Main);
        let next = |first_time, last_time, bits| retarget(&header(first_time, bits), &header(last_time, bits), &params);
        assert_eq!(next(1_261_130_161, 1_262_152_739, 0x1d00_ffff), 0x1d00_d86a);
        assert_eq!(next(1_231_006_505, 1_233_061_996, 0x1d00_ffff), 0x1d00_ffff);
        assert_eq!(next(1_279_008_237, 1_279_297_671, 0x1c05_a3f4), 0x1c01_68fd);
        assert_eq!(next(1_263_163_443, 1_269_211_443, 0x1c38_7f6f), 0x1d00_e1fd);
    }

    /// BIP-0094 starts from the target of the period's first block, which cannot be a minimum-difficulty block; the
    /// older rule starts from the last block's.
    /// checklist: 24
    #[test]
    fn testnet4_retargets_from_the_first_block() {
        let two_weeks = 14 * 24 * 60 * 60;
        let (first, last) = (header(0, 0x1c05_a3f4), header(two_weeks, 0x1d00_ffff));
        assert_eq!(retarget(&first, &last, &Params::new(Chain::Testnet4)), 0x1c05_a3f4);
        assert_eq!(retarget(&first, &last, &Params::new(Chain::Test)), 0x1d00_ffff);
        assert_eq!(retarget(&first, &header(two_weeks / 2, 0x1d00_ffff), &Params::new(Chain::Testnet4)), 0x1c02_d1fa);
    }
}
