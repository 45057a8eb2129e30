//! Options that change the rules of a test chain: `-testactivationheight`, `-vbparams`, `-signetchallenge`, `-test`.
//! Input: [`Given`]. Output: [`Params`] of the chain, or the first error, in Core's words and order
//! (`chainparams.cpp`).

use super::error::{SettingsError, ValueProblem};
use super::given::Given;
use super::settled::TestOptions;
use super::values;
use lydian_consensus::{Chain, DeploymentError, Params};
use lydian_options::{Notice, Sources};

/// The one deployment whose parameters can be set.
const TESTDUMMY: &str = "testdummy";

/// The rules of the chain with the given options: Core's `SelectParams`.
pub(super) fn params(chain: Chain, sources: &Sources, notices: &mut Vec<Notice>) -> Result<Params, SettingsError> {
    let given = Given::new(sources);
    let mut params = Params::new(chain);
    if chain == Chain::Signet
        && let Some(challenge) = signet_challenge(&given)?
    {
        let digits = lydian_primitives::to_hex(&challenge);
        notices.push(Notice::LogInfo(format!("Signet with challenge {digits}")));
        params = params.with_signet_challenge(challenge);
    }
    if chain == Chain::Regtest && given.core_all("test").contains(&"bip94") {
        params.enforce_bip94 = true;
    }
    // A malformed setting is reported before one that the chain does not permit.
    let mut refused = None;
    for setting in given.core_all("testactivationheight") {
        params = keep(params.clone().with_activation_height(setting), params, &mut refused)?;
    }
    for setting in given.core_all("vbparams") {
        params = keep(params.clone().with_version_bits(setting), params, &mut refused)?;
        if chain != Chain::Main {
            let bits = params.testdummy;
            notices.push(Notice::LogInfo(format!(
                "Setting version bits activation parameters for {TESTDUMMY} to start={}, timeout={}, min_activation_height={}",
                bits.start_time, bits.timeout, bits.min_activation_height
            )));
        }
    }
    match refused {
        Some(error) => Err(error.into()),
        None => Ok(params),
    }
}

/// Returns the changed rules. If only the chain forbids the change, returns the old rules and keeps the error for
/// later.
fn keep(
    changed: Result<Params, DeploymentError>,
    old: Params,
    refused: &mut Option<DeploymentError>,
) -> Result<Params, DeploymentError> {
    match changed {
        Err(error @ DeploymentError::Mainnet { .. }) => {
            refused.get_or_insert(error);
            Ok(old)
        }
        changed => changed,
    }
}

fn signet_challenge(given: &Given<'_>) -> Result<Option<Vec<u8>>, ValueProblem> {
    match given.core_all("signetchallenge")[..] {
        [] => Ok(None),
        [text] => match values::bytes(text) {
            Some(challenge) => Ok(Some(challenge)),
            None => Err(ValueProblem::SignetChallengeHex { text: text.to_owned() }),
        },
        _ => Err(ValueProblem::SignetChallengeCount),
    }
}

/// `-test`: Core's `TEST_OPTIONS_DOC`, and `secondopinion_lies`.
pub(super) fn test_options(
    chain: Chain,
    given: &Given<'_>,
    notices: &mut Vec<Notice>,
) -> Result<TestOptions, SettingsError> {
    let mut options = TestOptions::default();
    for text in given.core_all("test") {
        if chain != Chain::Regtest {
            return Err(SettingsError::TestOption);
        }
        match text {
            "addrman" => options.deterministic_addrman = true,
            "reindex_after_failure_noninteractive_yes" => options.reindex_after_failure = true,
            "secondopinion_lies" => options.second_opinion_lies = true,
            "bip94" => {}
            _ => notices.push(Notice::Warning(format!("Unrecognised option \"{text}\" provided in -test=<option>."))),
        }
    }
    Ok(options)
}
