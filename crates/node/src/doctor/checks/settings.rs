//! Checks of the settings: whether the node accepts them, unknown and misspelt ones, those of Bitcoin Core without
//! effect here, and those that contradict each other.

use super::with_settings;
use crate::doctor::check::Answer;
use crate::doctor::facts::Facts;
use crate::edits::edits;
use crate::settings::core::CORE_OPTIONS;
use crate::settings::table::options;
use crate::settings::{Settings, Shown};
use lydian_options::Notice;

/// The begin of the notice about an unknown option (`lydian_options`).
const UNKNOWN: &str = "Ignoring unknown configuration value ";
/// What a notice about an option of Core has.
const NO_EFFECT: &str = " has no effect: ";

pub(crate) fn settings(facts: &Facts<'_>) -> Answer {
    if let Some(refusal) = &facts.refusal {
        return Answer::bad(format!("the node refuses them: {refusal}"));
    }
    let warnings = facts.notices.iter().filter_map(|notice| match notice {
        Notice::Warning(text) | Notice::Stderr(text) => Some(text),
        Notice::LogWarning(text) if !text.starts_with(UNKNOWN) => Some(text),
        Notice::LogWarning(_) | Notice::LogInfo(_) => None,
    });
    let findings = warnings.map(Answer::warning).collect();
    Answer::worst(findings, || {
        let Some(settings) = &facts.settings else { return Answer::skipped("there are none") };
        let given = settings.shown.iter().filter(|option| option.source.is_some()).count();
        let file = match &settings.conf {
            Some(path) if settings.has_conf => format!(", file {}", path.display()),
            _ => ", no file".to_owned(),
        };
        Answer::ok(format!("the node accepts them ({given} given{file})"))
    })
}

pub(crate) fn unknown(facts: &Facts<'_>) -> Answer {
    let texts = facts.notices.iter().filter_map(|notice| match notice {
        Notice::LogWarning(text) => text.strip_prefix(UNKNOWN),
        Notice::Warning(_) | Notice::Stderr(_) | Notice::LogInfo(_) => None,
    });
    let finding = |key: &str| {
        let name = key.rsplit('.').next().unwrap_or(key);
        let hint = nearest(name).map(|near| format!(" (did you mean '{near}'?)")).unwrap_or_default();
        Answer::warning(format!("'{key}' is no option{hint}"))
    };
    Answer::worst(texts.map(finding).collect(), || Answer::ok("all options in files are known"))
}

/// The option whose name is nearest, if it is near: a slip for each four letters.
fn nearest(name: &str) -> Option<&'static str> {
    let names = options().map(|option| option.name).chain(CORE_OPTIONS.iter().map(|option| option.name));
    let near = names.map(|known| (edits(name, known), known)).min()?;
    (near.0 <= name.len().div_ceil(4)).then_some(near.1)
}

pub(crate) fn of_core(facts: &Facts<'_>) -> Answer {
    let texts = facts.notices.iter().filter_map(|notice| match notice {
        Notice::LogInfo(text) if text.contains(NO_EFFECT) => Some(text),
        Notice::LogInfo(_) | Notice::Warning(_) | Notice::Stderr(_) | Notice::LogWarning(_) => None,
    });
    Answer::worst(texts.map(Answer::warning).collect(), || {
        Answer::ok("every option of Bitcoin Core that is given has an effect here")
    })
}

/// An option that is switched off, and options that are for it alone.
const WITHOUT: &[(&str, &[&str])] = &[
    ("server", &["rpcbind", "rpcallowip", "rpcauth", "rpcuser", "rpcpassword", "rpcport", "rpcwhitelist"]),
    ("server", &["rest", "pagebind", "pageport"]),
    ("page", &["pagebind", "pageport", "pagehost", "pageactions", "pagecert", "pagekey"]),
    ("listen", &["port", "maxuploadtarget"]),
    ("dns", &["dnsseed"]),
    ("proxy", &["proxyrandomize"]),
    ("electrum", &["electrumbind", "electrumtlsbind", "electrumwsbind", "electrumwssbind", "electrumhost"]),
    ("esplora", &["esplorabind", "esploracors"]),
];

pub(crate) fn contradictions(facts: &Facts<'_>) -> Answer {
    with_settings(facts, |settings| {
        let mut findings: Vec<Answer> = settings.repeated.iter().map(Answer::warning).collect();
        for (switch, needed_by) in WITHOUT {
            let others = needed_by.iter().filter_map(|name| given(settings, name));
            let others: Vec<String> = others.filter(|one| !is_off(one)).map(|one| format!("-{}", one.name)).collect();
            if !others.is_empty() && given(settings, switch).is_some_and(is_off) {
                findings
                    .push(Answer::warning(format!("-{switch} is off, so that {} has no effect", others.join(", "))));
            }
        }
        let rpc = &settings.rpc;
        if !rpc.bind.is_empty() && rpc.allow.is_empty() {
            findings.push(Answer::warning("-rpcbind without -rpcallowip has no effect"));
        }
        if rpc.bind.is_empty() && !rpc.allow.is_empty() {
            findings.push(Answer::warning("-rpcallowip without -rpcbind has no effect: RPC listens on loopback only"));
        }
        Answer::worst(findings, || Answer::ok("no option contradicts another"))
    })
}

fn given<'a>(settings: &'a Settings, name: &str) -> Option<&'a Shown> {
    settings.shown.iter().find(|option| option.name == name && option.source.is_some())
}

fn is_off(option: &Shown) -> bool {
    option.values == ["0"]
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::settings::table::find;

    #[test]
    fn slips_have_a_suggestion_and_nonsense_has_none() {
        assert_eq!(
            ["dbcahe", "maxconections", "tx-index", "walet"].map(nearest),
            [Some("dbcache"), Some("maxconnections"), Some("txindex"), Some("wallet")]
        );
        assert_eq!(nearest("qqqqqqqqqqqq"), None);
    }

    #[test]
    fn the_table_names_options() {
        for (switch, others) in WITHOUT {
            assert!(find(switch).is_some(), "{switch}");
            others.iter().for_each(|name| assert!(find(name).is_some(), "{name}"));
        }
    }
}
