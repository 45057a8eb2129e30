//! Every panel on a phone, a tablet and a screen, light and dark: nothing is cut off, overlaps or is covered, no error.
//!
//! `LYDIAN_PAGE_SHOTS=DIR` keeps a picture of each.

use crate::busy::busy;
use crate::stage::{PATIENCE, Stage, expect_no_problems, go, panels};
use lydian_browser::{Page, Scheme};
use std::path::PathBuf;
use std::time::Duration;

const SIZES: [(u32, u32); 3] = [(390, 844), (768, 1_024), (1_440, 900)];

/// Topics have arrived and are drawn.
const SETTLE: Duration = Duration::from_millis(1_200);

fn shots() -> Option<PathBuf> {
    let folder = std::env::var_os("LYDIAN_PAGE_SHOTS").map(PathBuf::from)?;
    std::fs::create_dir_all(&folder).unwrap();
    Some(folder)
}

fn look(page: &Page, name: &str, faults: &mut Vec<String>) {
    page.listen(SETTLE).unwrap();
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
    for (width, height) in SIZES {
        page.set_size(width, height, 1.0).unwrap();
        for scheme in [Scheme::Light, Scheme::Dark] {
            page.set_scheme(scheme, width == 390).unwrap();
            for panel in panels(&page) {
                go(&page, &panel);
                look(&page, &format!("{panel}-{width}-{}", scheme.name()), &mut faults);
            }
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
            look(&page, &format!("login-{width}-{}", scheme.name()), &mut faults);
        }
    }
    assert!(faults.is_empty(), "{faults:#?}");
    expect_no_problems(&page, "login");
}

/// Everything is reached and used by keyboard alone.
#[test]
fn the_page_is_used_by_keyboard() {
    let Some(stage) = Stage::start("the_page_is_used_by_keyboard", &[]) else { return };
    stage.mine(3, 1);
    let page = stage.enter();
    page.press("Tab").unwrap();
    assert_eq!(page.text("document.activeElement.className").unwrap(), "skip", "the first stop leads to the content");
    let focus = "({name: document.activeElement.dataset.panel ?? '', outline: getComputedStyle(document.activeElement).outlineStyle})";
    let mut reached = Vec::new();
    for _ in 0..60 {
        page.press("Tab").unwrap();
        let at = page.evaluate(focus).unwrap();
        if let Some(name) = at["name"].as_str().filter(|name| !name.is_empty()) {
            assert_ne!(at["outline"], "none", "the focus is visible: {name}");
            reached.push(name.to_owned());
        }
    }
    for panel in panels(&page) {
        assert!(reached.contains(&panel), "{panel}: {reached:?}");
    }
    page.evaluate("document.querySelector('#nav a[data-panel=sync]').focus()").unwrap();
    page.press("Enter").unwrap();
    page.wait_until("document.querySelector('main .panel.sync')", PATIENCE).unwrap();
    expect_no_problems(&page, "keyboard");
}
