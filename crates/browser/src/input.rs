//! Mouse and keyboard, as a person uses them.
//!
//! Input: a CSS selector, also with the text of the element; keys by name. Invariants: a click is three events of the
//! mouse in the middle of the element, and an error if the element is missing or another one is in the way for five
//! seconds: a page that is being drawn lacks it for a moment. While a page fills with data, an element may move before
//! the mouse is there; the click is then repeated.

use crate::error::BrowserError;
use crate::page::{POLL, Page};
use serde_json::{Value, json};
use std::time::{Duration, Instant};

/// Finds the element, brings it into view, and returns its middle, or why it cannot be clicked.
const FIND: &str = r"((selector, text) => {
  const all = [...document.querySelectorAll(selector)];
  const seen = all.filter((one) => one.checkVisibility({visibilityProperty: true}));
  const element = text === null ? seen[0] : seen.find((one) => one.textContent.trim() === text);
  if (!element) return `missing (${all.length} elements, ${seen.length} visible: ` +
    seen.slice(0, 20).map((one) => one.textContent.trim().slice(0, 30)).join(' | ') + ')';
  element.scrollIntoView({block: 'center', inline: 'center', behavior: 'instant'});
  const box = element.getClientRects()[0];
  if (!box || box.width < 1 || box.height < 1) return 'it has no size';
  const [x, y] = [box.left + box.width / 2, box.top + box.height / 2];
  const top = document.elementFromPoint(x, y);
  const isOf = (one) => element.contains(one) || one.closest('label')?.control === element;
  if (!top || !(isOf(top) || top.contains(element)))
    return 'covered by ' + (top ? top.outerHTML.slice(0, 120) : 'nothing, as it is outside the window');
  removeEventListener('click', window.clickOfTest?.listener, true);
  const click = window.clickOfTest = { isMissed: true, listener: ({target}) => {
    if (target === top || isOf(target)) click.isMissed = false;
  } };
  addEventListener('click', click.listener, true);
  return [x, y];
})";
/// Whether the last click met another element than the one that [`FIND`] found; false if it opened another document.
const IS_MISSED: &str = "window.clickOfTest?.isMissed === true";
/// How often a click is repeated that missed its element.
const CLICKS: usize = 10;
/// How long a click waits for its element.
const PATIENCE: Duration = Duration::from_secs(15);

/// Name, code, virtual key code, text.
const KEYS: &[(&str, &str, u32, &str)] = &[
    ("Enter", "Enter", 13, "\r"),
    ("Tab", "Tab", 9, ""),
    ("Escape", "Escape", 27, ""),
    ("Backspace", "Backspace", 8, ""),
    ("Delete", "Delete", 46, ""),
    ("ArrowLeft", "ArrowLeft", 37, ""),
    ("ArrowUp", "ArrowUp", 38, ""),
    ("ArrowRight", "ArrowRight", 39, ""),
    ("ArrowDown", "ArrowDown", 40, ""),
    ("Home", "Home", 36, ""),
    ("End", "End", 35, ""),
    ("PageUp", "PageUp", 33, ""),
    ("PageDown", "PageDown", 34, ""),
    (" ", "Space", 32, " "),
    ("/", "Slash", 191, "/"),
];

impl Page {
    /// Clicks the first visible element of a selector.
    pub fn click(&self, selector: &str) -> Result<(), BrowserError> {
        self.click_at(selector, &Value::Null)
    }

    /// Clicks the first visible element of a selector that has this text.
    pub fn click_text(&self, selector: &str, text: &str) -> Result<(), BrowserError> {
        self.click_at(selector, &json!(text))
    }

    fn click_at(&self, selector: &str, text: &Value) -> Result<(), BrowserError> {
        let failed = |text: String| BrowserError::Element { selector: selector.to_owned(), text };
        let began = Instant::now();
        let mut clicks = 0;
        while clicks < CLICKS {
            let place = self.evaluate(&format!("{FIND}({}, {text})", json!(selector)))?;
            let (Some(x), Some(y)) = (place.get(0).and_then(Value::as_f64), place.get(1).and_then(Value::as_f64))
            else {
                if began.elapsed() < PATIENCE {
                    self.listen(POLL)?;
                    continue;
                }
                return Err(failed(place.as_str().map_or_else(|| place.to_string(), str::to_owned)));
            };
            clicks += 1;
            self.click_there(x, y)?;
            // An error means that the click ended the document.
            let is_missed = self.evaluate(IS_MISSED).is_ok_and(|is_missed| is_missed == true);
            if !is_missed {
                return Ok(());
            }
        }
        Err(failed(format!("{CLICKS} clicks missed it")))
    }

    fn click_there(&self, x: f64, y: f64) -> Result<(), BrowserError> {
        for (kind, buttons) in [("mouseMoved", 0), ("mousePressed", 1), ("mouseReleased", 0)] {
            let button = if kind == "mouseMoved" { "none" } else { "left" };
            let params = json!({"type": kind, "x": x, "y": y, "button": button, "buttons": buttons, "clickCount": 1});
            self.call("Input.dispatchMouseEvent", params)?;
        }
        Ok(())
    }

    /// Types into the element that has the focus.
    pub fn type_text(&self, text: &str) -> Result<(), BrowserError> {
        self.call("Input.insertText", json!({"text": text})).map(drop)
    }

    /// Clicks a field, replaces what it contains, and types.
    pub fn fill(&self, selector: &str, text: &str) -> Result<(), BrowserError> {
        self.click(selector)?;
        self.evaluate("document.activeElement.select?.()")?;
        self.type_text(text)
    }

    /// Presses and releases a key, named as in `KeyboardEvent.key`.
    pub fn press(&self, key: &str) -> Result<(), BrowserError> {
        let found = KEYS.iter().find(|(name, ..)| *name == key);
        let (_, code, number, text) = found.ok_or_else(|| BrowserError::Key { name: key.to_owned() })?;
        let mut params = json!({"key": key, "code": code, "windowsVirtualKeyCode": number, "type": "rawKeyDown"});
        if !text.is_empty() {
            params["type"] = json!("keyDown");
            params["text"] = json!(text);
        }
        self.call("Input.dispatchKeyEvent", params.clone())?;
        params["type"] = json!("keyUp");
        self.call("Input.dispatchKeyEvent", params).map(drop)
    }
}
