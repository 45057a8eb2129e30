//! Accessibility: axe-core finds nothing serious in any panel.
//!
//! `make test-peers` installs axe-core with npm; `LYDIAN_AXE` names its file.

use crate::busy::busy;
use crate::stage::{PATIENCE, go, panels};
use lydian_browser::{Page, Scheme};
use std::time::Duration;

#[test]
#[ignore = "needs axe-core from npm, which make test-peers installs; then: LYDIAN_AXE=~/.cache/lydian/axe-core-1/node_modules/axe-core/axe.min.js cargo test -p lydian-node --test page axe -- --ignored, which make test-peers runs"]
fn axe_finds_nothing_serious() {
    let source = std::fs::read_to_string(std::env::var("LYDIAN_AXE").unwrap()).unwrap();
    let Some(busy) = busy("axe_finds_nothing_serious") else { return };
    let mut faults = Vec::new();
    let mut check = |page: &Page, name: &str| {
        page.listen(Duration::from_millis(1_200)).unwrap();
        let findings = page.axe_findings(&source).unwrap();
        faults.extend(findings.into_iter().map(|one| format!("{name}: {one}")));
    };
    let visitor = busy.stage.browser.visitor().unwrap();
    visitor.open(&busy.stage.origin()).unwrap();
    visitor.wait_until(crate::stage::ASKS, PATIENCE).unwrap();
    check(&visitor, "login");
    let page = busy.stage.enter();
    for (width, scheme) in [(390, Scheme::Light), (1_440, Scheme::Light), (1_440, Scheme::Dark)] {
        page.set_size(width, 900, 1.0).unwrap();
        page.set_scheme(scheme, true).unwrap();
        for panel in panels(&page) {
            go(&page, &panel);
            check(&page, &format!("{panel} {width} {}", scheme.name()));
        }
        dialogs(&page, &mut |name| check(&page, &format!("{name} {width} {}", scheme.name())));
    }
    assert!(faults.is_empty(), "{faults:#?}");
}

/// Opens dialogs and what unfolds, one after another.
fn dialogs(page: &Page, check: &mut impl FnMut(&str)) {
    let wait = |is_so: &str| page.wait_until(is_so, PATIENCE).unwrap_or_else(|error| panic!("{is_so}: {error}"));
    go(page, "peers");
    wait("document.querySelector('main button.link')");
    page.click(".picker summary").unwrap();
    check("columns");
    page.click(".picker summary").unwrap();
    for button in ["Ban an address…", "Add a peer…"] {
        page.click_text("main button", button).unwrap();
        wait("document.querySelector('dialog.confirm[open]')");
        check(button);
        page.press("Escape").unwrap();
        wait("document.querySelector('dialog') === null");
    }
    page.click("main table button.link").unwrap();
    wait("document.querySelector('dialog.sheet[open]')");
    check("a peer");
    page.click_text("dialog.sheet button", "Ban…").unwrap();
    wait("document.querySelector('dialog.confirm[open]')");
    check("a ban above a peer");
    page.press("Escape").unwrap();
    wait("document.querySelector('dialog.confirm') === null");
    page.press("Escape").unwrap();
    wait("document.querySelector('dialog') === null");
    for panel in ["connect", "settings"] {
        go(page, panel);
        wait("document.querySelector('main details')");
        page.evaluate("document.querySelectorAll('main details').forEach((one) => { one.open = true; })").unwrap();
        check(&format!("all of {panel}"));
    }
}
