//! What is logged: `-debug`, `-debugexclude`, `-loglevel`, `-shrinkdebugfile`. Input: [`Given`]. Output: the categories
//! and levels in [`LogSettings`], or the first unknown name.

use super::error::{SettingsError, ValueProblem};
use super::given::Given;
use super::settled::LogSettings;
use crate::log::{Categories, Levels};
use lydian_options::Notice;

/// Reads the options into the settings of the log.
pub(super) fn read(given: &Given<'_>, log: &mut LogSettings, notices: &mut Vec<Notice>) -> Result<(), SettingsError> {
    let mut categories = Categories::default();
    let unknown = |option, text: &str| SettingsError::from(ValueProblem::Category { option, text: text.to_owned() });
    given.list("debug", |text| match text {
        // As in Core, everything before the last of these is ignored.
        "0" | "none" => {
            categories = Categories::default();
            Ok(())
        }
        _ => {
            notices.extend(Categories::deprecated(text).map(Notice::LogWarning));
            categories.enable(text).map_err(|_| unknown("debug", text))
        }
    })?;
    given.list("debugexclude", |text| {
        notices.extend(Categories::deprecated(text).map(Notice::LogWarning));
        categories.disable(text).map_err(|_| unknown("debugexclude", text))
    })?;
    let mut levels = Levels::default();
    given.list("loglevel", |text| {
        levels.set(text).map_err(|_| {
            let (text, levels) = (text.to_owned(), Levels::settable());
            // As in Core, a colon among the first three characters does not start a level.
            match text.get(3..).is_some_and(|rest| rest.contains(':')) {
                true => ValueProblem::CategoryLevel { text, categories: Categories::names(), levels }.into(),
                false => ValueProblem::GlobalLevel { text, levels }.into(),
            }
        })
    })?;
    log.shrink = given.switch("shrinkdebugfile").unwrap_or(categories == Categories::default());
    log.categories = categories;
    log.levels = levels;
    Ok(())
}
