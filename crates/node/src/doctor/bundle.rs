//! `lydian doctor --bundle FILE`: what helps others to help, in one file. Input: the report, the settings, the log.
//! Output: a zstd-compressed tar archive of texts, without secrets, addresses of peers, and wallets' addresses and
//! transactions ([`Redactor`]).
//!
//! Invariants: a file that exists is not replaced; the archive appears as a whole or not at all; the text of an option
//! that names another machine, a secret or a command is not in it.

use super::facts::Facts;
use super::procfs;
use super::redact::Redactor;
use super::report::Report;
use super::tar::Archive;
use crate::client::COOKIE_SIZE_MAX;
use crate::clock::now;
use crate::screen::Screen;
use crate::settings::{Settings, Shown};
use lydian_disk::{Disk, DiskErrorKind, OwnDir, OwnFile, Proof, read_whole};
use std::fmt::Write as _;
use std::path::Path;

/// The file that `--bundle` names.
pub(crate) const BUNDLE_FILES: &[OwnFile] = &[OwnFile { name: "*", proof: Proof::Option }];

/// Bytes of the end of the log.
const LOG_BYTES: u64 = 1 << 20;

/// Columns of the report.
const WIDTH: usize = 100;

/// The level of zstd.
const LEVEL: i32 = 9;

/// Options whose values name other machines, users or what strangers may do. Their values are not shown.
const PRIVATE: &[&str] = &[
    "addnode",
    "bind",
    "connect",
    "electrumbanner",
    "electrumbind",
    "electrumdonation",
    "electrumhost",
    "electrumpeer",
    "electrumproxy",
    "electrumtlsbind",
    "electrumwsbind",
    "electrumwssbind",
    "esplorabind",
    "externalip",
    "feedbind",
    "onion",
    "pagebind",
    "pagehost",
    "proxy",
    "rpcallowip",
    "rpcbind",
    "rpcwhitelist",
    "seednode",
    "signetseednode",
    "uacomment",
    "whitebind",
    "whitelist",
];

/// Lines of the log that repeat the settings.
const SETTINGS_LINES: [&str; 3] = ["Config file arg:", "Command-line arg:", "Setting file arg:"];

/// Checks that the file may be written, before anything is asked.
pub(crate) fn refuse_existing(disk: &dyn Disk, path: &Path) -> Result<(), String> {
    let shown = path.display();
    match disk.kind(path) {
        Err(error) if error.kind == DiskErrorKind::NotFound => {}
        Err(error) if error.kind != DiskErrorKind::NotAFile => return Err(format!("--bundle: {error}")),
        Ok(_) | Err(_) => return Err(format!("--bundle: {shown} exists and is not replaced: choose another name")),
    }
    match path.parent() {
        Some(parent) if !parent.is_dir() => Err(format!("--bundle: there is no directory {}", parent.display())),
        _ => Ok(()),
    }
}

/// Writes the archive.
pub(crate) fn write(facts: &Facts<'_>, report: &Report, path: &Path) -> Result<(), String> {
    let redactor = redactor(facts);
    let mut archive = Archive::default();
    let time = now();
    for (name, text) in texts(facts, report) {
        archive.add(&format!("lydian-doctor/{name}"), redactor.text(&text).as_bytes(), time);
    }
    let packed = zstd::bulk::compress(&archive.finish(), LEVEL).map_err(|error| format!("--bundle: {error}"))?;
    refuse_existing(facts.disk, path)?;
    let written = OwnDir::of(path, BUNDLE_FILES).replace(facts.disk, path, &packed);
    written.map_err(|error| format!("--bundle: {error}"))
}

/// The files of the archive.
fn texts(facts: &Facts<'_>, report: &Report) -> Vec<(&'static str, String)> {
    let mut texts = vec![
        ("report.txt", report.text(&Screen::without_color(), WIDTH)),
        ("report.json", report.json()),
        ("versions.txt", versions()),
    ];
    if let Some(settings) = &facts.settings {
        texts.push(("settings.txt", settings_text(settings)));
        texts.push(("debug.log", log_tail(facts, settings)));
    }
    texts
}

/// The secrets of the settings, of the cookie, and the values of private options.
fn redactor(facts: &Facts<'_>) -> Redactor {
    let Some(settings) = &facts.settings else { return Redactor::default() };
    let rpc = &settings.rpc;
    let mut secrets: Vec<String> = rpc.auth.iter().map(|auth| auth.0.clone()).collect();
    secrets.extend([rpc.user.0.clone(), rpc.password.0.clone()]);
    // The user, the salt and the hash also each for itself.
    let parts: Vec<String> = rpc.auth.iter().flat_map(|auth| auth.0.split([':', '$'])).map(str::to_owned).collect();
    secrets.extend(parts);
    let cookie = rpc.cookie.as_ref().and_then(|path| read_whole(facts.disk, path, COOKIE_SIZE_MAX).ok());
    let cookie = cookie.map(|bytes| String::from_utf8_lossy(&bytes).trim().to_owned()).unwrap_or_default();
    secrets.extend(cookie.split(':').filter(|part| *part != "__cookie__").map(str::to_owned));
    for option in settings.shown.iter().filter(|option| is_private(option)) {
        // A host also without its port.
        let hosts = option.values.iter().filter_map(|value| value.rsplit_once(':').map(|(host, _)| host.to_owned()));
        secrets.extend(hosts.filter(|host| !is_local(host)));
        secrets.extend(option.values.iter().filter(|value| !is_local(value)).cloned());
    }
    Redactor::new(secrets)
}

fn is_private(option: &Shown) -> bool {
    option.is_secret || PRIVATE.contains(&option.name)
}

/// What every machine has, and what only switches something on or off.
fn is_local(value: &str) -> bool {
    ["127.0.0.1", "localhost", "0.0.0.0", "[::", "::", "set"].iter().any(|local| value.starts_with(local))
}

/// The options that are given, with their values unless these are private.
fn settings_text(settings: &Settings) -> String {
    let mut text = String::new();
    for option in settings.shown.iter().filter(|option| option.source.is_some()) {
        let values = match is_private(option) {
            true => format!("[{} not shown]", option.values.len()),
            false => option.values.join(", "),
        };
        // Writing to a string cannot fail.
        let _ = writeln!(text, "{}={values} ({})", option.name, option.source.as_deref().unwrap_or_default());
    }
    text
}

/// The last lines of the log, without those that repeat the settings.
fn log_tail(facts: &Facts<'_>, settings: &Settings) -> String {
    let Some(path) = &settings.log.file else { return "there is no log (-nodebuglogfile)\n".to_owned() };
    let read = facts.disk.open(path).and_then(|file| {
        let start = file.size().saturating_sub(LOG_BYTES);
        let mut bytes = vec![0; usize::try_from(file.size() - start).unwrap_or(0)];
        file.read_at(start, &mut bytes)?;
        Ok((start > 0, bytes))
    });
    let (is_cut, bytes) = match read {
        Ok(read) => read,
        Err(error) => return format!("{error}\n"),
    };
    let text = String::from_utf8_lossy(&bytes);
    // The first line of a part may have lost its begin, and with it what makes a secret known.
    let lines = text.lines().skip(usize::from(is_cut));
    let kept = lines.filter(|line| !SETTINGS_LINES.iter().any(|begin| line.contains(begin)));
    kept.fold(String::new(), |text, line| text + line + "\n")
}

/// The program, the kernel and the processor.
fn versions() -> String {
    let kernel = procfs::text("/proc/sys/kernel/osrelease").unwrap_or_default();
    let cpus = procfs::text("/proc/cpuinfo").unwrap_or_default();
    let cpu = cpus.lines().find_map(|line| line.strip_prefix("model name")).unwrap_or_default();
    let (system, architecture) = (std::env::consts::OS, std::env::consts::ARCH);
    format!(
        "{}\nkernel {}\n{system} {architecture}\nprocessor {}\n",
        crate::version(),
        kernel.trim(),
        cpu.trim_start_matches(['\t', ':', ' '])
    )
}
