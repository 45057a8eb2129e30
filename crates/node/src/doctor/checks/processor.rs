//! Checks of the processor: the kernels that verify signatures, their self-test, and their speed against the benchmark.

use crate::clock::thread_cpu;
use crate::doctor::check::Answer;
use crate::doctor::facts::Facts;
use lydian_curve::{
    Check, ChooseError, Chosen, Engine, PublicKeyBytes, Reference, TestScheme, TestSignature, TestSigner, choose_seeded,
};
use std::time::Duration;

/// Instructions that kernels of signatures and hashes use, as far as this processor has them.
fn features() -> Vec<&'static str> {
    let mut found = Vec::new();
    #[cfg(target_arch = "x86_64")]
    {
        let known = [
            ("SHA", is_x86_feature_detected!("sha")),
            ("AVX2", is_x86_feature_detected!("avx2")),
            ("AVX-512F", is_x86_feature_detected!("avx512f")),
            ("AVX-512 IFMA", is_x86_feature_detected!("avx512ifma")),
        ];
        found.extend(known.into_iter().filter_map(|(name, is_there)| is_there.then_some(name)));
    }
    #[cfg(target_arch = "aarch64")]
    {
        let known = [
            ("NEON", std::arch::is_aarch64_feature_detected!("neon")),
            ("SHA2", std::arch::is_aarch64_feature_detected!("sha2")),
        ];
        found.extend(known.into_iter().filter_map(|(name, is_there)| is_there.then_some(name)));
    }
    found
}

pub(crate) fn kernels(facts: &Facts<'_>) -> Answer {
    let wanted = facts.settings.as_ref().map_or("auto", |settings| settings.sigengine);
    let features = match features()[..] {
        [] => "no instructions for kernels".to_owned(),
        ref some => some.join(", "),
    };
    judge(wanted, choose_seeded(wanted, [0; 32], thread_cpu), &features)
}

/// The engine that every processor can run; it computes several signatures together, but without wide instructions.
const SCALAR: &str = "scalar";

/// The answer for the engine that was chosen, or for the reason why there is none.
fn judge(wanted: &str, chosen: Result<Chosen, ChooseError>, features: &str) -> Answer {
    match chosen {
        Err(ChooseError::SelfTestFailed) => Answer::bad(format!("{wanted} failed its self-test ({features})")),
        Err(error) => Answer::bad(format!("-sigengine={wanted}: {error} ({features})")),
        Ok(chosen) if !chosen.failed.is_empty() => {
            Answer::bad(format!("{} failed the self-test ({features})", chosen.failed.join(", ")))
        }
        Ok(chosen) if !chosen.slower.is_empty() => {
            let (name, slower) = (chosen.engine.name(), chosen.slower.join(", "));
            Answer::ok(format!("{name} passed its self-test, and is faster here than {slower} ({features})"))
        }
        Ok(chosen) if wanted == "auto" && [SCALAR, Reference.name()].contains(&chosen.engine.name()) => {
            let name = chosen.engine.name();
            Answer::warning(format!(
                "{name} verifies signatures: nothing faster can run on this processor ({features})"
            ))
        }
        Ok(chosen) => Answer::ok(format!("{} passed its self-test ({features})", chosen.engine.name())),
    }
}

/// How many times as fast as libsecp256k1 a kernel verifies ECDSA signatures, in hundredths: the row of 1,024 checks in
/// docs/benchmarks/lanes.md.
const FACTORS: [(&str, u64); 3] = [("ifma512", 897), ("ifma256", 470), ("avx2", 228)];

/// Checks in one measurement, and measurements of which the fastest counts.
const CHECKS: u16 = 512;
const ROUNDS: usize = 3;

pub(crate) fn speed(facts: &Facts<'_>) -> Answer {
    let wanted = facts.settings.as_ref().map_or("auto", |settings| settings.sigengine);
    let Ok(chosen) = choose_seeded(wanted, [0; 32], thread_cpu) else {
        return Answer::skipped("no kernel was chosen (check kernels)");
    };
    let name = chosen.engine.name();
    let Some((_, expected)) = FACTORS.iter().find(|(kernel, _)| *kernel == name) else {
        return Answer::skipped(format!("the benchmarks have no figure to compare {name} with"));
    };
    let checks = checks();
    let (Some(kernel), Some(reference)) = (fastest(chosen.engine.as_ref(), &checks), fastest(&Reference, &checks))
    else {
        return Answer::bad(format!("{name} rejects valid signatures"));
    };
    compare(name, kernel, reference, *expected)
}

/// The answer for the times of all checks; `expected` is the factor of the benchmark, in hundredths.
fn compare(name: &str, kernel: Duration, reference: Duration, expected: u64) -> Answer {
    let factor = u64::try_from(reference.as_nanos() * 100 / kernel.as_nanos().max(1)).unwrap_or(u64::MAX);
    let each = kernel.as_nanos() / u128::from(CHECKS);
    let words = format!(
        "{name} takes {}.{} us for a signature, {}.{} times as fast as libsecp256k1; the benchmark has {}.{}",
        each / 1_000,
        each % 1_000 / 100,
        factor / 100,
        factor % 100 / 10,
        expected / 100,
        expected % 100 / 10
    );
    if factor < expected / 2 { Answer::warning(words) } else { Answer::ok(words) }
}

/// Valid ECDSA checks with different keys.
fn checks() -> Vec<Check> {
    let signer = TestSigner::library();
    let secrets: Vec<[u8; 32]> = (1..=CHECKS)
        .map(|number| {
            let mut secret = [1; 32];
            secret[..2].copy_from_slice(&number.to_be_bytes());
            secret
        })
        .collect();
    let keys = signer.public_keys(&secrets);
    let wanted: Vec<TestSignature> = secrets
        .iter()
        .zip(&keys)
        .filter_map(|(secret, key)| {
            let key = (*key)?;
            Some(TestSignature { secret: *secret, key, message: key.x, scheme: TestScheme::Ecdsa })
        })
        .collect();
    let signatures = signer.sign(&wanted);
    let check = |(wanted, signature): (&TestSignature, Option<[u8; 64]>)| {
        let key = PublicKeyBytes::new(&wanted.key.compressed())?;
        Some(Check::Ecdsa { key, message: wanted.message, signature: signature? })
    };
    wanted.iter().zip(signatures).filter_map(check).collect()
}

/// The shortest processor time for all checks; `None` if one is rejected.
fn fastest(engine: &dyn Engine, checks: &[Check]) -> Option<Duration> {
    let mut verdicts = vec![false; checks.len()];
    let times = (0..ROUNDS).map(|_| {
        let start = thread_cpu();
        engine.verify(checks, &mut verdicts);
        thread_cpu().saturating_sub(start)
    });
    let least = times.min();
    if verdicts.iter().all(|verdict| *verdict) { least } else { None }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::doctor::check::Level;

    #[test]
    fn the_checks_are_valid_for_every_engine() {
        let checks = checks();
        assert_eq!(checks.len(), usize::from(CHECKS));
        for engine in lydian_curve::engines() {
            assert!(fastest(engine.as_ref(), &checks).is_some(), "{}", engine.name());
        }
        let Check::Ecdsa { key, message, .. } = checks[0] else { panic!("an ECDSA check") };
        assert_eq!(fastest(&Reference, &[Check::Ecdsa { key, message, signature: [1; 64] }]), None);
    }

    /// A kernel that computes wrongly here, or one that is named and cannot run.
    #[test]
    fn a_kernel_that_fails_is_bad_and_a_slow_one_is_a_warning() {
        let chosen = |name: &str, failed: &[&'static str]| {
            let engine = lydian_curve::engines().into_iter().find(|engine| engine.name() == name).unwrap();
            Ok(Chosen { engine, failed: failed.to_vec(), slower: Vec::new() })
        };
        let failed = judge("auto", chosen("reference", &["avx2"]), "AVX2");
        assert_eq!(failed, Answer::bad("avx2 failed the self-test (AVX2)"));
        let named = judge("avx2", Err(ChooseError::SelfTestFailed), "AVX2");
        assert_eq!(named, Answer::bad("avx2 failed its self-test (AVX2)"));
        let lacks = judge("ifma512", Err(ChooseError::Unavailable), "AVX2");
        assert!(lacks.level == Level::Bad && lacks.text.starts_with("-sigengine=ifma512: This CPU lacks"), "{lacks:?}");
        for name in [SCALAR, "reference"] {
            assert_eq!(judge("auto", chosen(name, &[]), "SHA").level, Level::Warning, "{name}");
            assert_eq!(judge(name, chosen(name, &[]), "SHA").level, Level::Ok, "{name} was asked for");
        }
        // Regression test: this was a warning, although `auto` had measured both on a processor with NEON.
        let measured = chosen(SCALAR, &[]).map(|chosen| Chosen { slower: vec!["neon"], ..chosen });
        let expected = Answer::ok("scalar passed its self-test, and is faster here than neon (NEON)");
        assert_eq!(judge("auto", measured, "NEON"), expected);
    }

    #[test]
    fn a_kernel_below_half_of_the_benchmark_is_slow() {
        let level = |kernel_us| {
            let times = (Duration::from_micros(kernel_us), Duration::from_micros(1_000));
            compare("avx2", times.0, times.1, 200).level
        };
        assert_eq!([500, 1_000, 1_011].map(level), [Level::Ok, Level::Ok, Level::Warning]);
    }

    #[test]
    fn factors_are_those_of_the_benchmark() {
        let page = include_str!("../../../../../docs/benchmarks/lanes.md");
        let row = page.lines().find(|line| line.starts_with("| ECDSA, 1,024 |")).unwrap();
        let documented: Vec<&str> = row.split("(**").skip(1).map(|rest| rest.split("**)").next().unwrap()).collect();
        let ours = FACTORS.map(|(_, factor)| format!("{}.{:02}", factor / 100, factor % 100));
        assert_eq!(documented, ours);
    }
}
