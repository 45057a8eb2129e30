//! Every panel on a phone, a tablet and a screen, light and dark: nothing is cut off, overlaps or is covered, no error.
//!
//! `LYDIAN_PAGE_SHOTS=DIR` keeps a picture of each.

use crate::busy::busy;
use crate::stage::{PATIENCE, Stage, expect_no_problems, go, panels, script};
use lydian_browser::{Page, Scheme};
use lydian_primitives::to_hex;
use serde_json::json;
use std::path::PathBuf;
use std::time::Duration;

const SIZES: [(u32, u32); 4] = [(390, 844), (768, 1_024), (1_440, 900), (1_920, 1_080)];

/// Topics have arrived and are drawn; charts are drawn again in other colours.
const SETTLE: Duration = Duration::from_millis(900);
const SETTLE_COLOURS: Duration = Duration::from_millis(300);

fn shots() -> Option<PathBuf> {
    let folder = std::env::var_os("LYDIAN_PAGE_SHOTS").map(PathBuf::from)?;
    std::fs::create_dir_all(&folder).unwrap();
    Some(folder)
}

fn look(page: &Page, name: &str, settle: Duration, faults: &mut Vec<String>) {
    page.listen(settle).unwrap();
    if let Some(folder) = shots() {
        page.screenshot(&folder.join(format!("{name}.png")), true).unwrap();
    }
    let findings = page.layout_findings().unwrap();
    faults.extend(findings.into_iter().map(|one| format!("{name}: {one}")));
    faults.extend(page.take_problems().unwrap().into_iter().map(|one| format!("{name}: {one}")));
}

#[test]
fn every_panel_fits_on_phones_and_screens_in_light_and_dark() {
    let Some(busy) = busy("every_panel_fits") else { return };
    let page = busy.stage.enter();
    let mut faults = Vec::new();
    // The panels, and a block, a transaction and an address in the explorer.
    let tip = busy.stage.call("getbestblockhash", &json!([]));
    let tip = tip.as_str().unwrap();
    let tx = busy.stage.call("getrawmempool", &json!([]))[0].as_str().unwrap().to_owned();
    let address = busy.stage.call("decodescript", &json!([to_hex(&script(1))]))["address"].as_str().unwrap().to_owned();
    let mut views: Vec<(String, String)> = panels(&page).into_iter().map(|panel| (panel.clone(), panel)).collect();
    for (name, query) in
        [("block", format!("block={tip}")), ("transaction", format!("tx={tx}")), ("address", format!("q={address}"))]
    {
        views.push((name.to_owned(), format!("explorer?{query}")));
    }
    for (width, height) in SIZES {
        page.set_size(width, height, 1.0).unwrap();
        for (name, view) in &views {
            page.set_scheme(Scheme::Light, width == 390).unwrap();
            page.evaluate(&format!("location.hash = '#/{view}'")).unwrap();
            page.wait_until("document.querySelector('main .panel')?.childElementCount > 0", PATIENCE).unwrap();
            look(&page, &format!("{name}-{width}-light"), SETTLE, &mut faults);
            page.set_scheme(Scheme::Dark, width == 390).unwrap();
            look(&page, &format!("{name}-{width}-dark"), SETTLE_COLOURS, &mut faults);
        }
    }
    page.set_size(390, 844, 1.0).unwrap();
    page.click("#menu").unwrap();
    if let Some(folder) = shots() {
        page.screenshot(&folder.join("menu-390.png"), false).unwrap();
    }
    page.click("#nav a[data-panel=sync]").unwrap();
    page.wait_until("document.querySelector('main .panel.sync') && !document.querySelector('#nav.open')", PATIENCE)
        .unwrap();
    assert!(faults.is_empty(), "{faults:#?}");
}

#[test]
fn the_login_fits_too() {
    let Some(stage) = Stage::start("the_login_fits_too", &[]) else { return };
    let page = stage.browser.visitor().unwrap();
    let mut faults = Vec::new();
    for (width, height) in SIZES {
        page.set_size(width, height, 1.0).unwrap();
        for scheme in [Scheme::Light, Scheme::Dark] {
            page.set_scheme(scheme, false).unwrap();
            page.open(&stage.origin()).unwrap();
            page.wait_until(crate::stage::ASKS, PATIENCE).unwrap();
            look(&page, &format!("login-{width}-{}", scheme.name()), SETTLE_COLOURS, &mut faults);
        }
    }
    assert!(faults.is_empty(), "{faults:#?}");
    expect_no_problems(&page, "login");
}

/// Controls that a mouse can use now, and those with the focus while Tab goes once around the page.
const CONTROLS: &str = "(() => {
  const controls = 'a[href], button, input, select, textarea, summary, [tabindex=\"0\"]';
  window.controls = [...document.querySelectorAll(controls)].filter((one) => !one.disabled && one.closest('[inert]') === null && one.checkVisibility({visibilityProperty: true}));
  window.missed = new Set(window.controls);
  return window.controls.length;
})()";
const REACHED: &str = "(() => {
  const at = document.activeElement;
  const style = getComputedStyle(at);
  const isSeen = at === document.body || at.localName === 'main' || style.outlineStyle !== 'none';
  window.missed.delete(at);
  return [window.missed.size, isSeen ? '' : at.outerHTML.slice(0, 200)];
})()";

/// Every control of every panel is reached by Tab, with a visible focus, and used by keyboard.
#[test]
fn the_page_is_used_by_keyboard() {
    let Some(busy) = busy("the_page_is_used_by_keyboard") else { return };
    let page = busy.stage.enter();
    page.press("Tab").unwrap();
    assert_eq!(page.text("document.activeElement.className").unwrap(), "skip", "the first stop leads to the content");
    for panel in panels(&page) {
        go(&page, &panel);
        page.listen(SETTLE).unwrap();
        let count = page.evaluate(CONTROLS).unwrap().as_u64().unwrap();
        page.evaluate("document.body.focus()").unwrap();
        // Rows that come meanwhile have stops of their own.
        for _ in 0..count * 2 + 20 {
            page.press("Tab").unwrap();
            let at = page.evaluate(REACHED).unwrap();
            assert_eq!(at[1], "", "{panel}: the focus is visible");
            if at[0] == 0 {
                break;
            }
        }
        let missed = "[...window.missed].filter((one) => one.isConnected).map((one) => one.outerHTML.slice(0, 120))";
        let missed = page.evaluate(missed).unwrap();
        assert_eq!(missed, json!([]), "{panel}: not reached by Tab, of {count} controls");
    }
    page.evaluate("document.querySelector('#nav a[data-panel=peers]').focus()").unwrap();
    page.press("Enter").unwrap();
    page.wait_until("document.querySelector('main .panel.peers button.link')", PATIENCE).unwrap();
    // A dialog opens, keeps the focus inside, closes by Escape, and gives it back.
    page.evaluate("document.querySelector('main button.link').focus()").unwrap();
    page.press("Enter").unwrap();
    page.wait_until("document.querySelector('dialog.sheet[open]')", PATIENCE).unwrap();
    for _ in 0..12 {
        page.press("Tab").unwrap();
        let is_inside = "document.activeElement === document.body || document.activeElement.closest('dialog') !== null";
        assert_eq!(page.evaluate(is_inside).unwrap(), true, "the focus stays in the dialog");
    }
    page.press("Escape").unwrap();
    page.wait_until(
        "document.querySelector('dialog') === null && document.activeElement.matches('button.link')",
        PATIENCE,
    )
    .unwrap();
    expect_no_problems(&page, "keyboard");
}

/// With `prefers-reduced-motion` nothing moves by itself; without it the bars do.
#[test]
fn nothing_moves_for_readers_who_asked_for_less_motion() {
    let Some(stage) = Stage::start("nothing_moves", &[]) else { return };
    stage.mine(3, 1);
    let page = stage.enter();
    let moving = "[...document.querySelectorAll('*')].filter((one) => { const style = getComputedStyle(one); \
        return parseFloat(style.transitionDuration) > 0 || style.animationName !== 'none'; }).length";
    for (reduced, expected) in [(true, false), (false, true)] {
        page.set_scheme(Scheme::Light, reduced).unwrap();
        let mut count = 0;
        for panel in panels(&page) {
            go(&page, &panel);
            count += page.evaluate(moving).unwrap().as_u64().unwrap();
        }
        assert_eq!(count > 0, expected, "reduced: {reduced}, {count} elements move");
    }
    expect_no_problems(&page, "motion");
}
