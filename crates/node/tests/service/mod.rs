//! The messages to a service manager over a real socket, and the unit of systemd.

use crate::Place;
use lydian_oracle::Scratch;
use rustix::process::{Pid, Signal, kill_process};
use std::fs;
use std::os::unix::net::UnixDatagram;
use std::process::{Command, Stdio};
use std::time::Duration;

/// Longer than a start takes on a busy machine.
const PATIENCE: Duration = Duration::from_secs(120);

#[test]
fn a_service_manager_is_told_of_start_state_and_end() {
    let place = Place::new("service");
    let path = place.directory.join("notify");
    let socket = UnixDatagram::bind(&path).unwrap();
    socket.set_read_timeout(Some(PATIENCE)).unwrap();
    let mut child = place
        .command(&["-printtoconsole=0"])
        .env("NOTIFY_SOCKET", &path)
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn()
        .unwrap();
    let next = || {
        let mut bytes = [0; 4096];
        let count = socket.recv(&mut bytes).unwrap();
        String::from_utf8(bytes[..count].to_vec()).unwrap()
    };
    let find = |wanted: &str| {
        loop {
            let message = next();
            if message.lines().any(|line| line == wanted) {
                return message;
            }
        }
    };
    find("READY=1");
    // The thread of the display sends it every five seconds.
    let alive = find("WATCHDOG=1");
    let status = alive.lines().find_map(|line| line.strip_prefix("STATUS="));
    assert!(status.is_some_and(|status| !status.is_empty()), "{alive}");
    kill_process(Pid::from_child(&child), Signal::TERM).unwrap();
    find("STOPPING=1");
    assert!(child.wait().unwrap().success());
}

/// The highest exposure that `systemd-analyze security` may find, in tenths.
const EXPOSURE_MAX: &str = "15";

#[test]
#[allow(clippy::print_stderr, reason = "a test says what is missing")]
fn the_unit_is_correct_and_hardened() {
    let unit =
        fs::read_to_string(concat!(env!("CARGO_MANIFEST_DIR"), "/../../contrib/systemd/lydian.service")).unwrap();
    // systemd gives such a directory to root, so that with a mode of 710 the node could not read its settings.
    assert!(!unit.contains("ConfigurationDirectory"), "docs/usage.md and the package make /etc/lydian");
    let folder = Scratch::new("the_unit");
    fs::create_dir_all(folder.path()).unwrap();
    let path = folder.path().join("lydian.service");
    // The program and its manual page are not installed here.
    let unit = unit.replace("/usr/bin/lydian", env!("CARGO_BIN_EXE_lydian")).replace("man:lydian(1)", "man:ls(1)");
    fs::write(&path, unit).unwrap();
    let analyze = |arguments: &[&str]| Command::new("systemd-analyze").args(arguments).arg(&path).output();
    let Ok(verified) = analyze(&["verify", "--man=no"]) else {
        assert_ne!(std::env::var("LYDIAN_REQUIRE_SHELLS").as_deref(), Ok("1"), "systemd-analyze is not installed");
        eprintln!("not run: the_unit_is_correct_and_hardened: systemd-analyze is missing; `make test` installs it");
        return;
    };
    let said = String::from_utf8_lossy(&verified.stderr).into_owned();
    assert!(verified.status.success() && !said.contains("lydian"), "{said}");
    let exposure =
        analyze(&["security", "--offline=true", &format!("--threshold={EXPOSURE_MAX}"), "--no-pager"]).unwrap();
    assert!(exposure.status.success(), "{}", String::from_utf8_lossy(&exposure.stdout));
    // The options that the unit gives are options of the program, and the system calls that it needs are allowed.
    let calls = Command::new("systemd-analyze").args(["syscall-filter", "@system-service", "@aio"]).output().unwrap();
    assert!(String::from_utf8_lossy(&calls.stdout).contains("io_uring_setup"), "the coin store reads with io_uring");
}
