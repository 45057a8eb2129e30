//! What this program was built from, and what it uses on this machine. Input: the build, the CPU. Output: lines for
//! `-version` and the log.

use crate::clock::thread_cpu;
use lydian_options::build;

/// The optional features of this build.
const FEATURES: &[(&str, bool)] =
    &[("cassandra", cfg!(feature = "cassandra")), ("second-opinion", cfg!(feature = "second-opinion"))];

/// Commit, compiler, target and features, in one line.
pub(crate) fn line() -> String {
    let features: Vec<&str> = FEATURES.iter().filter(|(_, is_on)| *is_on).map(|(name, _)| *name).collect();
    let features = if features.is_empty() { "none".to_owned() } else { features.join(", ") };
    format!("{}; features: {features}", build::line())
}

/// The signature kernels of this machine, the fastest first, with the one that `-sigengine=auto` uses. Cost: its
/// self-test, about 30 ms.
pub(crate) fn kernels() -> String {
    let chosen = lydian_curve::choose_seeded("auto", [0; 32], thread_cpu).ok();
    let failed = chosen.as_ref().map(|chosen| chosen.failed.clone()).unwrap_or_default();
    let chosen = chosen.map(|chosen| chosen.engine.name());
    let named = lydian_curve::engines().into_iter().map(|engine| match engine.name() {
        name if chosen == Some(name) => format!("{name} (chosen)"),
        name if failed.contains(&name) => format!("{name} (failed its self-test)"),
        name => name.to_owned(),
    });
    format!("Signature kernels: {}", named.collect::<Vec<_>>().join(", "))
}
