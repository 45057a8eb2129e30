//! A wallet that subscribes to all its scripts at once, in batches over one connection.
//!
//! Input: a place, scripts, the statuses that follow from their histories. Output: seconds from the first batch sent to
//! the last one answered; an error for each script that got no status or a wrong one. Must never: count a status that
//! was not compared.

use super::client::{Client, ClientError, Place};
use super::protocol::{script_params, subscribe_method};
use crate::runs::system;
use lydian_chains::targets::Target;
use lydian_report::electrum::results::WalletLoad;
use lydian_report::results::rounded;
use serde_json::Value;
use std::sync::atomic::{AtomicBool, Ordering};

/// The second value is the first error. One status per script; `None` if it has no history.
pub fn wallet(
    place: &Place,
    targets: &[Target],
    statuses: &[Option<String>],
    batch: u32,
    interrupted: &AtomicBool,
) -> Result<(WalletLoad, Option<String>), ClientError> {
    let mut client = Client::connect(place)?;
    let method = subscribe_method(&client.protocol);
    let params: Vec<Value> = targets.iter().map(|target| script_params(target, &client.protocol)).collect();
    let size = usize::try_from(batch.max(1)).unwrap_or(usize::MAX);
    let mut answers = Vec::new();
    let start = system::now();
    for batch in params.chunks(size) {
        if interrupted.load(Ordering::Relaxed) {
            break;
        }
        answers.extend(client.batch(&method, batch)?);
    }
    let seconds = rounded(start.elapsed().as_secs_f64());
    let mut first_error = None;
    let mut errors = 0;
    for (index, target) in targets.iter().enumerate() {
        let reason = match answers.get(index) {
            Some(Ok(status)) => {
                let is_right = statuses.get(index).is_some_and(|known| status.as_str() == known.as_deref());
                (!is_right).then(|| "a status that is not its history's".to_owned())
            }
            Some(Err(fault)) => Some(fault.to_string()),
            None => Some("no answer".to_owned()),
        };
        if let Some(reason) = reason {
            errors += 1;
            first_error.get_or_insert_with(|| format!("{}: {reason}", target.scripthash));
        }
    }
    let scripts = u32::try_from(targets.len()).unwrap_or(u32::MAX);
    Ok((WalletLoad { scripts, batch, seconds, errors }, first_error))
}
