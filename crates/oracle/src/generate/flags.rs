//! Random flag sets: those of consensus by age, Core's policy, and any other set that Core's code accepts.

use super::random::Random;
use lydian_script::Flags;

/// The flags of blocks, with one more rule at each step.
const ERAS: [Flags; 8] = [
    Flags::NONE,
    Flags::P2SH,
    Flags(Flags::P2SH.0 | Flags::DERSIG.0),
    Flags(Flags::P2SH.0 | Flags::DERSIG.0 | Flags::CHECKLOCKTIMEVERIFY.0),
    Flags(Flags::P2SH.0 | Flags::DERSIG.0 | Flags::CHECKLOCKTIMEVERIFY.0 | Flags::CHECKSEQUENCEVERIFY.0),
    Flags(Flags::MANDATORY.0 & !Flags::TAPROOT.0),
    Flags::MANDATORY,
    // The set that Core uses for nearly every block, whatever its age.
    Flags(Flags::P2SH.0 | Flags::WITNESS.0 | Flags::TAPROOT.0),
];

/// Returns a legal set, mostly one with effect today.
pub fn random_flags(random: &mut Random) -> Flags {
    match random.below(10) {
        0..3 => Flags::MANDATORY,
        3 | 4 => random.pick(&ERAS),
        5 => Flags::STANDARD,
        6 => legal(Flags(Flags::STANDARD.0 & !any(random, 15).0), random),
        7 => legal(Flags(Flags::MANDATORY.0 | any(random, 15).0), random),
        _ => {
            let percent = random.pick(&[15, 50, 85]);
            legal(any(random, percent), random)
        }
    }
}

/// Includes each flag with this probability.
fn any(random: &mut Random, percent: usize) -> Flags {
    let chosen = Flags::ALL.iter().filter(|_| random.chance(percent));
    chosen.fold(Flags::NONE, |set, (_, flag)| set | *flag)
}

/// Makes a set legal by Core's rule, either by adding or by removing flags.
pub(super) fn legal(mut flags: Flags, random: &mut Random) -> Flags {
    if random.chance(70) {
        if flags.contains(Flags::CLEANSTACK) {
            flags |= Flags::WITNESS;
        }
        if flags.contains(Flags::WITNESS) {
            flags |= Flags::P2SH;
        }
        return flags;
    }
    if !flags.contains(Flags::P2SH) {
        flags = flags.without(Flags::WITNESS);
    }
    if !flags.contains(Flags::WITNESS) {
        flags = flags.without(Flags::CLEANSTACK);
    }
    flags
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sets_are_legal_and_reach_every_flag() {
        let mut random = Random::new(3, "flags");
        let mut seen = Flags::NONE;
        for _ in 0..1000 {
            let flags = random_flags(&mut random);
            assert!(flags.is_legal(), "{flags}");
            seen |= flags;
        }
        assert!(Flags::ALL.iter().all(|(_, flag)| seen.contains(*flag)));
        assert!(ERAS.iter().all(|flags| flags.is_legal()));
    }
}
