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

/// A unit of the repository: its text.
fn unit(name: &str) -> String {
    fs::read_to_string(format!("{}/../../contrib/systemd/{name}", env!("CARGO_MANIFEST_DIR"))).unwrap()
}

/// systemd finds no mistake in a unit, and its exposure is low. `program`: the one that it starts. False if systemd is
/// not installed.
#[allow(clippy::print_stderr, reason = "a test says what is missing")]
fn is_correct_and_hardened(name: &str, program: &str) -> bool {
    let unit = unit(name);
    assert!(unit.contains(&format!("\nExecStart={program} ")));
    let folder = Scratch::new(name);
    fs::create_dir_all(folder.path()).unwrap();
    let path = folder.path().join(name);
    // The program and its manual page are not installed here.
    let unit = unit.replace(program, env!("CARGO_BIN_EXE_lydian")).replace("man:lydian(1)", "man:ls(1)");
    fs::write(&path, unit).unwrap();
    let analyze = |arguments: &[&str]| Command::new("systemd-analyze").args(arguments).arg(&path).output();
    let Ok(verified) = analyze(&["verify", "--man=no"]) else {
        assert_ne!(std::env::var("LYDIAN_REQUIRE_SHELLS").as_deref(), Ok("1"), "systemd-analyze is not installed");
        eprintln!("not run: the test of {name}: systemd-analyze is missing; `make test` installs it");
        return false;
    };
    let said = String::from_utf8_lossy(&verified.stderr).into_owned();
    assert!(verified.status.success() && !said.contains("lydian"), "{said}");
    let exposure =
        analyze(&["security", "--offline=true", &format!("--threshold={EXPOSURE_MAX}"), "--no-pager"]).unwrap();
    assert!(exposure.status.success(), "{}", String::from_utf8_lossy(&exposure.stdout));
    true
}

#[test]
fn the_unit_is_correct_and_hardened() {
    // systemd gives such a directory to root, so that with a mode of 710 the node could not read its settings.
    assert!(
        !unit("lydian.service").contains("ConfigurationDirectory"),
        "docs/usage.md and the package make /etc/lydian"
    );
    if is_correct_and_hardened("lydian.service", "/usr/bin/lydian") {
        // The system calls that the node needs are allowed.
        let calls =
            Command::new("systemd-analyze").args(["syscall-filter", "@system-service", "@aio"]).output().unwrap();
        let calls = String::from_utf8_lossy(&calls.stdout).into_owned();
        assert!(calls.contains("io_uring_setup"), "the coin store reads with io_uring");
    }
}

/// The command of the unit of a front end is one that the program takes: with settings that are complete, it is refused
/// for the store alone.
#[test]
fn the_unit_of_a_front_end_is_correct_and_hardened() {
    is_correct_and_hardened("lydian-serve.service", "/usr/local/bin/lydian");
    let unit = unit("lydian-serve.service");
    let command = unit.lines().find_map(|line| line.strip_prefix("ExecStart=")).unwrap();
    let credentials = Scratch::new("the_unit_of_a_front_end");
    fs::create_dir_all(credentials.path()).unwrap();
    let health = lydian_oracle::free_port().unwrap();
    let settings = format!(
        "regtest=1\nindex=cassandra://127.0.0.1:1/lydian\nfeed=127.0.0.1:1\nelectrum=1\nhealthbind=127.0.0.1:{health}\n"
    );
    fs::write(credentials.path().join("serve.conf"), settings).unwrap();
    let folder = credentials.path().display().to_string();
    let mut words = command.split(' ').map(|word| word.replace("${CREDENTIALS_DIRECTORY}", &folder));
    assert_eq!(words.next().as_deref(), Some("/usr/local/bin/lydian"));
    let program = Command::new(env!("CARGO_BIN_EXE_lydian")).args(words).env_clear().output().unwrap();
    let said = String::from_utf8_lossy(&program.stderr).into_owned();
    assert_eq!(program.status.code(), Some(1), "{said}");
    assert!(said.contains(&format!("Config file: {folder}/serve.conf")), "{said}");
    assert!(said.lines().last().unwrap().starts_with("Error: -index: "), "{said}");
}
