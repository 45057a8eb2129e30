//! The report in a real browser: headless Chromium renders it at the width of a phone and of a screen, light and dark.
//!
//! A script in a copy of the page reports the layout: nothing is wider than the screen, every chart has a size, and
//! every text of a chart is inside it, is large enough to be read and overlaps no other. The screenshots are compared
//! with those of an empty page. Without a browser the test says so and does not run; with `LYDIAN_REQUIRE_BROWSER=1` it
//! fails. `LYDIAN_REPORT_SHOTS=DIR` keeps the page and the screenshots.

#![allow(
    clippy::unwrap_used,
    clippy::disallowed_methods,
    reason = "a test fails by panicking, and reads its own files"
)]

use crate::report_samples;
use lydian_oracle::Scratch;
use lydian_report::page::{Input, write};
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

const BROWSERS: [&str; 4] = ["chromium", "chromium-browser", "google-chrome", "google-chrome-stable"];
/// The minimum height of legible text, in CSS pixels.
const TEXT_HEIGHT_MIN: f64 = 9.0;

/// Sends one line of JSON to the enclosing page.
const PROBE: &str = r#"<script>
addEventListener('load', () => {
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
  parent.postMessage('PROBE' + JSON.stringify(answer) + 'END', '*');
});
</script>"#;

/// A page around the report: the browser cannot make a window as narrow as a phone, but a frame can have any width. The
/// answer becomes the title of this page.
fn framed(width: u32, page: &Path) -> String {
    let name = page.file_name().unwrap().to_str().unwrap();
    format!(
        "<!doctype html><title>none</title><style>body{{margin:0}}iframe{{border:0;display:block}}</style>\
         <script>addEventListener('message', event => document.title = event.data)</script>\
         <iframe src=\"{name}\" width={width} height=3000></iframe>"
    )
}

fn browser() -> Option<PathBuf> {
    let folders = std::env::var_os("PATH").unwrap_or_default();
    let paths = std::env::split_paths(&folders).flat_map(|folder| BROWSERS.map(|name| folder.join(name)));
    let found = paths.into_iter().find(|path| path.is_file());
    if found.is_none() {
        let text = "NOT RUN: no browser; apt-get install chromium\n";
        assert!(std::env::var_os("LYDIAN_REQUIRE_BROWSER").is_none_or(|value| value != "1"), "{text}");
        std::io::stderr().write_all(text.as_bytes()).unwrap();
    }
    found
}

/// A browser with its own profile.
struct Browser<'a> {
    program: PathBuf,
    scratch: &'a Scratch,
    shots: PathBuf,
}

impl Browser<'_> {
    fn run(&self, size: (u32, u32), what: &[&str], page: &Path) -> String {
        let output = Command::new(&self.program)
            .args(["--headless", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage", "--hide-scrollbars"])
            .args(["--no-first-run", "--disable-background-networking", "--disable-component-update"])
            .arg(format!("--user-data-dir={}", self.scratch.path().join("profile").display()))
            .arg(format!("--window-size={},{}", size.0, size.1))
            .args(what)
            .arg(format!("file://{}", page.canonicalize().unwrap().display()))
            .stdin(Stdio::null())
            .stderr(Stdio::null())
            .output()
            .unwrap();
        String::from_utf8_lossy(&output.stdout).into_owned()
    }

    /// Opens a page in a frame with these browser options; returns what the browser prints.
    fn show(&self, width: u32, what: &[&str], page: &Path) -> String {
        let frame = page.with_extension("frame.html");
        std::fs::write(&frame, framed(width, page)).unwrap();
        self.run((width, 3_000), what, &frame)
    }

    /// `system`: the colour scheme of the reader's system.
    fn probe(&self, width: u32, system: &str, page: &Path) -> serde_json::Value {
        let dark: &[&str] = if system == "dark" { &["--force-dark-mode"] } else { &[] };
        let dump = self.show(width, &[&["--dump-dom"], dark].concat(), page);
        let answer = dump.split_once("PROBE").and_then(|(_, rest)| rest.split_once("END"));
        let answer = answer.unwrap_or_else(|| panic!("the browser gave no answer: {dump:.300}")).0;
        serde_json::from_str(&answer.replace("&amp;", "&").replace("&lt;", "<").replace("&gt;", ">")).unwrap()
    }

    /// The bytes of the screenshot, which is stored in the folder of screenshots.
    fn picture(&self, width: u32, name: &str, page: &Path) -> Vec<u8> {
        let path = self.shots.join(format!("{name}.png"));
        self.show(width, &[&format!("--screenshot={}", path.display())], page);
        std::fs::read(&path).unwrap()
    }
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
    let Some(program) = browser() else { return };
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
    let browser = Browser { program, scratch: &scratch, shots };
    // The page's own policy would block the probe.
    let policy = "default-src 'none'; style-src 'unsafe-inline'";
    assert!(page.contains(policy));
    let probed = page.replacen(policy, "default-src 'none'; style-src 'unsafe-inline'; script-src 'unsafe-inline'", 1);
    let probed = probed.replace("<details>", "<details open>").replacen("</head>", &format!("{PROBE}</head>"), 1);
    let file = |name: &str, text: &str| {
        let path = scratch.path().join(format!("{name}.html"));
        std::fs::write(&path, text).unwrap();
        path
    };
    let blank = file("blank", "<!doctype html><meta name=viewport content='width=device-width'><title>blank</title>");
    // Width, scheme selected by the switch, scheme of the reader's system.
    for (width, switch, system) in [
        (390, "light", "light"),
        (390, "auto", "dark"),
        (1_280, "auto", "light"),
        (1_280, "dark", "light"),
        (1_280, "light", "dark"),
    ] {
        let scheme = if switch == "auto" { system } else { switch };
        let name = format!("{width}-{scheme}");
        let answer = browser.probe(width, system, &file("probe", &with_scheme(&probed, switch)));
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
        let picture = browser.picture(width, &name, &file(&name, &with_scheme(&page, scheme)));
        assert_eq!(size_of(&picture), (width, 3_000), "{name}");
        let empty = browser.picture(width, &format!("{width}-blank"), &blank);
        assert!(picture.len() > 8 * empty.len(), "{name}: {} bytes, an empty page has {}", picture.len(), empty.len());
    }
}
