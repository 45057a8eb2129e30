//! The report in a real browser: headless Chromium renders it at the width of a phone and of a screen, light and dark.
//!
//! A script reads the layout: nothing is wider than the screen, every chart has a size, and every text of a chart is
//! inside it, is large enough to be read and overlaps no other. The screenshots are compared with those of an empty
//! page. Without a browser the test says so and does not run; with `LYDIAN_REQUIRE_BROWSER=1` it fails.
//! `LYDIAN_REPORT_SHOTS=DIR` keeps the page and the screenshots.

#![allow(
    clippy::unwrap_used,
    clippy::disallowed_methods,
    reason = "a test fails by panicking, and reads its own files"
)]

use crate::report_samples;
use lydian_browser::{Browser, Page, Scheme};
use lydian_oracle::Scratch;
use lydian_report::page::{Input, write};
use std::path::{Path, PathBuf};

/// The minimum height of legible text, in CSS pixels.
const TEXT_HEIGHT_MIN: f64 = 9.0;
/// Of the window, in CSS pixels.
const HEIGHT: u32 = 3_000;
const BLANK: &str = "<!doctype html><title>blank</title>";

/// What the layout of the page is.
const PROBE: &str = r#"(() => {
  const answer = {width: innerWidth, scroll: document.documentElement.scrollWidth, wide: [], charts: 0, empty: [], outside: [], overlaps: [], least: 99, tables: 0};
  for (const element of document.querySelectorAll('body *')) {
    const box = element.getBoundingClientRect();
    if (box.right > innerWidth + 0.5 && !element.closest('.box') && box.width > 0) answer.wide.push(element.tagName + ' ' + element.textContent.slice(0, 30));
  }
  for (const svg of document.querySelectorAll('figure svg')) {
    if (getComputedStyle(svg).display === 'none') continue;
    const frame = svg.getBoundingClientRect();
    answer.charts += 1;
    if (frame.width < 200 || frame.height < 60) answer.empty.push(svg.parentElement.id);
    const texts = [...svg.querySelectorAll('text')].map(text => ({text: text.textContent, box: text.getBoundingClientRect(),
      size: parseFloat(text.getAttribute('font-size')) * frame.width / svg.viewBox.baseVal.width}));
    for (const {text, box, size} of texts) {
      answer.least = Math.min(answer.least, size);
      if (box.left < frame.left - 0.5 || box.right > frame.right + 0.5 || box.top < frame.top - 1 || box.bottom > frame.bottom + 1)
        answer.outside.push(svg.parentElement.id + ': ' + text);
    }
    texts.forEach((one, index) => texts.slice(index + 1).forEach(other => {
      const across = Math.min(one.box.right, other.box.right) - Math.max(one.box.left, other.box.left);
      const down = Math.min(one.box.bottom, other.box.bottom) - Math.max(one.box.top, other.box.top);
      if (across > 1 && down > 4) answer.overlaps.push(svg.parentElement.id + ': ' + one.text + ' | ' + other.text);
    }));
  }
  answer.tables = document.querySelectorAll('table').length;
  answer.page = getComputedStyle(document.body).backgroundColor;
  answer.ink = getComputedStyle(document.body).color;
  return answer;
})()"#;

/// Opens a file in a window of this width.
fn open(page: &Page, width: u32, system: Scheme, file: &Path) {
    page.set_size(width, HEIGHT, 1.0).unwrap();
    page.set_scheme(system, false).unwrap();
    page.open(&format!("file://{}", file.canonicalize().unwrap().display())).unwrap();
}

/// Width and height of a PNG image.
fn size_of(png: &[u8]) -> (u32, u32) {
    assert_eq!(png.get(..8), Some(&b"\x89PNG\r\n\x1a\n"[..]));
    let number = |at: usize| u32::from_be_bytes(png[at..at + 4].try_into().unwrap());
    (number(16), number(20))
}

/// The page with a colour scheme selected by its switch; `auto` is that of the reader's system.
fn with_scheme(page: &str, scheme: &str) -> String {
    let chosen = page.replacen("id=\"scheme-auto\" checked", "id=\"scheme-auto\"", 1);
    let from = format!("id=\"scheme-{scheme}\"");
    assert!(chosen.contains(&from));
    chosen.replacen(&from, &format!("{from} checked"), 1)
}

fn list(answer: &serde_json::Value, name: &str) -> Vec<String> {
    answer[name].as_array().unwrap().iter().map(|text| text.as_str().unwrap().to_owned()).collect()
}

#[test]
fn a_browser_shows_the_report_whole_on_phones_and_screens_in_light_and_dark() {
    let Some(browser) = Browser::start(&[]).unwrap() else { return };
    let tab = browser.page().unwrap();
    let scratch = Scratch::new("report-browser");
    let shots = std::env::var_os("LYDIAN_REPORT_SHOTS").map_or_else(|| scratch.path().join("shots"), PathBuf::from);
    std::fs::create_dir_all(scratch.path()).unwrap();
    std::fs::create_dir_all(&shots).unwrap();
    let inputs = [
        Input::Runs(Box::new(report_samples::reindex())),
        Input::Runs(Box::new(report_samples::sync_with_everything())),
        Input::Electrum(Box::new(report_samples::electrum())),
    ];
    let written = write(&inputs, &shots.join("report")).unwrap();
    let page = std::fs::read_to_string(&written[0]).unwrap();
    let charts = written.iter().filter(|path| path.extension().is_some_and(|end| end == "svg")).count();
    let opened = page.replace("<details>", "<details open>");
    let file = |name: &str, text: &str| {
        let path = scratch.path().join(format!("{name}.html"));
        std::fs::write(&path, text).unwrap();
        path
    };
    // Width, scheme selected by the switch, scheme of the reader's system.
    for (width, switch, system) in [
        (390, "light", Scheme::Light),
        (390, "auto", Scheme::Dark),
        (1_280, "auto", Scheme::Light),
        (1_280, "dark", Scheme::Light),
        (1_280, "light", Scheme::Dark),
    ] {
        let scheme = if switch == "auto" { system.name() } else { switch };
        let name = format!("{width}-{scheme}");
        open(&tab, width, system, &file("probe", &with_scheme(&opened, switch)));
        let answer = tab.evaluate(PROBE).unwrap();
        let findings = tab.layout_findings().unwrap();
        assert!(findings.is_empty(), "{name}: {findings:#?}");
        assert_eq!(answer["width"], width, "{name}: another width than asked for");
        assert!(answer["scroll"].as_u64() <= Some(width.into()), "{name}: {answer}");
        for finding in ["wide", "empty", "outside", "overlaps"] {
            let found = list(&answer, finding);
            assert!(found.is_empty(), "{name}, {finding}: {found:#?}");
        }
        assert!(answer["least"].as_f64() >= Some(TEXT_HEIGHT_MIN), "{name}: text of {} pixels", answer["least"]);
        assert_eq!(answer["charts"], charts, "{name}");
        let colors = [&answer["page"], &answer["ink"]].map(|color| color.as_str().unwrap().to_owned());
        let expect = if scheme == "light" {
            ["rgb(246, 247, 249)", "rgb(23, 24, 28)"]
        } else {
            ["rgb(18, 19, 22)", "rgb(242, 243, 245)"]
        };
        assert_eq!(colors, expect, "{name}");
        let picture = |name: &str, text: &str| {
            open(&tab, width, system, &file(name, text));
            tab.screenshot(&shots.join(format!("{name}.png")), false).unwrap()
        };
        let full = picture(&name, &with_scheme(&page, switch));
        assert_eq!(size_of(&full), (width, HEIGHT), "{name}");
        let empty = picture(&format!("{width}-blank"), BLANK);
        assert!(full.len() > 8 * empty.len(), "{name}: {} bytes, an empty page has {}", full.len(), empty.len());
    }
    assert_eq!(tab.take_problems().unwrap(), Vec::<String>::new());
}
