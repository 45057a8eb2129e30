//! Checks of a page: its layout, by a script of ours, and its accessibility, by axe-core.
//!
//! Input: an open page; for the second check the source of axe-core, which is not part of this checkout. Output: each
//! finding as a sentence. Cost: a few milliseconds for each hundred elements.

use crate::connection::unexpected;
use crate::error::BrowserError;
use crate::page::Page;
use serde_json::{Value, json};

const LAYOUT: &str = include_str!("layout.js");

/// Findings of axe-core below `serious` are matters of taste; `incomplete` ones need a person. Three elements of a
/// finding are listed.
const AXE: &str = "axe.run(document, {resultTypes: ['violations'], runOnly: {type: 'tag', values: \
['wcag2a', 'wcag2aa', 'wcag21a', 'wcag21aa', 'wcag22aa', 'best-practice']}}).then((result) => result.violations \
.filter((one) => one.impact === 'serious' || one.impact === 'critical') \
.flatMap((one) => one.nodes.slice(0, 3).map((node) => `${one.impact} ${one.id}: ${one.help}: ${node.html.slice(0, 160)} ` + \
`(${node.target.join(' ')}) ${(node.failureSummary || '').replace(/\\s+/g, ' ').slice(0, 300)}`)))";

impl Page {
    /// Text that is cut off or lies over other text, elements beyond the window, and controls that overlap or are
    /// covered. Empty if nothing is wrong.
    pub fn layout_findings(&self) -> Result<Vec<String>, BrowserError> {
        self.findings(LAYOUT)
    }

    /// The serious and critical findings of axe-core.
    pub fn axe_findings(&self, source: &str) -> Result<Vec<String>, BrowserError> {
        self.evaluate(&format!("{source};true"))?;
        self.findings(AXE)
    }

    fn findings(&self, script: &str) -> Result<Vec<String>, BrowserError> {
        let answer = self.evaluate(script)?;
        let list = answer.as_array().ok_or_else(|| unexpected("a check of the page", &answer))?;
        let text = |one: &Value| one.as_str().map_or_else(|| json!(one).to_string(), str::to_owned);
        Ok(list.iter().map(text).collect())
    }
}
