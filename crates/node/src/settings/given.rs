//! [`Given`]: the values of options whose meaning depends on other options, by name. Input: [`Sources`] with the chain
//! selected. Output: typed values, or the first error. The requested type must be that of the table.

use super::error::SettingsError;
use super::net::NetProblem;
use super::table::{Opt, find};
use lydian_options::{Kind, Setting, Sources, Value, switch};
use std::path::PathBuf;

/// Typed access to options by name. The requested type must be that of the table.
pub(super) struct Given<'a>(&'a Sources);

impl<'a> Given<'a> {
    pub(super) fn new(sources: &'a Sources) -> Given<'a> {
        Given(sources)
    }

    pub(super) fn switch(&self, name: &'static str) -> Option<bool> {
        let _ = option(name, |kind| kind == Kind::Switch);
        self.0.get(name).map(|value| switch(value.setting.text()))
    }

    /// The value as Core reads it, clamped to the limits of the table.
    pub(super) fn integer(&self, name: &'static str) -> Option<i64> {
        let option = option(name, |kind| matches!(kind, Kind::Integer { .. }));
        self.0.get(name).map(|value| option.clamped(value.setting.text()))
    }

    /// Returns `default` if the option is missing or its value is empty, `None` if it is negated.
    pub(super) fn path(&self, name: &'static str, default: Option<&str>) -> Option<PathBuf> {
        let _ = option(name, |kind| kind == Kind::Path);
        match self.0.get(name).map(|value| &value.setting) {
            Some(Setting::Negated) => None,
            Some(setting) if !setting.text().is_empty() => Some(PathBuf::from(setting.text())),
            _ => default.map(PathBuf::from),
        }
    }

    /// All values that count and are not empty.
    pub(super) fn texts(&self, name: &'static str) -> Vec<String> {
        let _ = option(name, |_| true);
        self.0.texts(name)
    }

    /// Any text; `None` if the option is missing.
    pub(super) fn text(&self, name: &'static str) -> Option<String> {
        let _ = option(name, |_| true);
        self.0.get(name).map(|value| value.setting.text().to_owned())
    }

    /// The value of an option that may have no effect here.
    pub(super) fn core(&self, name: &str) -> Option<&'a str> {
        self.0.get(name).map(|value| value.setting.text())
    }

    /// All its values that count.
    pub(super) fn core_all(&self, name: &str) -> Vec<&'a str> {
        self.0.list(name).into_iter().map(|value| value.setting.text()).collect()
    }

    /// Whether the option is given in any way, also negated: Core's `IsArgSet`.
    pub(super) fn is_set(&self, name: &'static str) -> bool {
        self.0.get(name).is_some()
    }

    /// Core's `IsArgNegated`.
    pub(super) fn is_negated(&self, name: &'static str) -> bool {
        let _ = option(name, |_| true);
        self.0.get(name).is_some_and(|value| value.setting == Setting::Negated)
    }

    /// The value that counts, or Core's error for it.
    pub(super) fn net_one<T>(
        &self,
        name: &'static str,
        parse: impl Fn(&str) -> Result<T, NetProblem>,
    ) -> Result<Option<T>, SettingsError> {
        self.one(name, |text| parse(text).map_err(SettingsError::from))
    }

    /// All values that count, or Core's error for the first invalid one.
    pub(super) fn net_list<T>(
        &self,
        name: &'static str,
        parse: impl Fn(&str) -> Result<T, NetProblem>,
    ) -> Result<Vec<T>, SettingsError> {
        self.list(name, |text| parse(text).map_err(SettingsError::from))
    }

    pub(super) fn one<T>(
        &self,
        name: &'static str,
        parse: impl Fn(&str) -> Result<T, SettingsError>,
    ) -> Result<Option<T>, SettingsError> {
        let _ = option(name, |_| true);
        self.0.get(name).map(|value| parse(value.setting.text())).transpose()
    }

    pub(super) fn list<T>(
        &self,
        name: &'static str,
        mut parse: impl FnMut(&str) -> Result<T, SettingsError>,
    ) -> Result<Vec<T>, SettingsError> {
        let _ = option(name, |_| true);
        let read = |value: &Value| parse(value.setting.text());
        self.0.list(name).into_iter().map(read).collect()
    }
}

/// The table's entry. Asking for an option that is not in the table, or for another type, is a bug.
fn option(name: &str, fits: impl Fn(Kind) -> bool) -> &'static Opt {
    match find(name) {
        Some(option) if fits(option.kind) => option,
        _ => panic!("-{name} is not of this kind in the table"),
    }
}
