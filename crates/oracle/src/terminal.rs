//! A program on a terminal of its own, for tests that type. The terminal is made by `script` (util-linux).

use std::io::{Read, Write};
use std::path::Path;
use std::process::{Child, ChildStdin, Command, Stdio};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

/// Longer than anything a shell does on a busy machine.
const PATIENCE: Duration = Duration::from_secs(60);

#[derive(Debug)]
pub struct Terminal {
    child: Child,
    keys: ChildStdin,
    shown: Arc<Mutex<Vec<u8>>>,
}

impl Terminal {
    /// Starts a command of `sh` on a new terminal, with `home` as the user's folder.
    ///
    /// # Panics
    ///
    /// If it does not start.
    #[allow(
        clippy::unwrap_used,
        clippy::disallowed_methods,
        reason = "a test fails by panicking, and makes its folder"
    )]
    pub fn start(command: &str, home: &Path) -> Terminal {
        std::fs::create_dir_all(home).unwrap();
        let mut child = Command::new("script")
            .args(["--quiet", "--return", "--command", command, "/dev/null"])
            .current_dir(home)
            .env("HOME", home)
            .env("TERM", "dumb")
            .env_remove("INPUTRC")
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .spawn()
            .unwrap();
        let keys = child.stdin.take().unwrap();
        let mut output = child.stdout.take().unwrap();
        let shown = Arc::new(Mutex::new(Vec::new()));
        let to = Arc::clone(&shown);
        std::thread::spawn(move || {
            let mut part = [0; 4096];
            while let Ok(count @ 1..) = output.read(&mut part) {
                to.lock().unwrap().extend(&part[..count]);
            }
        });
        Terminal { child, keys, shown }
    }

    /// Types text; `\t` is the key Tab and `\n` the key Enter.
    #[allow(clippy::unwrap_used, reason = "a test fails by panicking")]
    pub fn type_keys(&mut self, text: &str) {
        self.keys.write_all(text.as_bytes()).and_then(|()| self.keys.flush()).unwrap();
    }

    /// Everything that was shown so far.
    #[allow(clippy::unwrap_used, reason = "a test fails by panicking")]
    pub fn shown(&self) -> String {
        String::from_utf8_lossy(&self.shown.lock().unwrap()).into_owned()
    }

    /// Waits until this is shown `count` times.
    ///
    /// # Panics
    ///
    /// If it is not shown within a minute.
    #[allow(clippy::disallowed_methods, reason = "a test gives up after a minute")]
    pub fn wait_for(&self, text: &str, count: usize) {
        let began = Instant::now();
        while self.shown().matches(text).count() < count {
            assert!(began.elapsed() < PATIENCE, "no {text:?} in {:?}", self.shown());
            std::thread::sleep(Duration::from_millis(20));
        }
    }
}

impl Drop for Terminal {
    fn drop(&mut self) {
        // It may have ended.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// Whether a shell of this name is installed.
pub fn is_installed(program: &str) -> bool {
    Command::new(program).arg("--version").stdout(Stdio::null()).stderr(Stdio::null()).status().is_ok()
}

/// Checks that a shell with the completions of `program`, an absolute path, completes lines: each pair is what is typed
/// and a part of what follows. In `home` lie the files to complete. bash and zsh complete on a terminal, when Tab is
/// typed; fish lists its candidates.
///
/// # Panics
///
/// If a line is not completed, or if the shell is missing and `LYDIAN_REQUIRE_SHELLS` is 1.
#[allow(clippy::print_stderr, reason = "a test says what is missing")]
pub fn check_completions(shell: &str, program: &Path, home: &Path, lines: &[(&str, &str)]) {
    let folder = program.parent().unwrap_or(Path::new("/")).display();
    let name = program.file_name().unwrap_or_default().to_string_lossy();
    if Command::new(shell).arg("--version").stdout(Stdio::null()).stderr(Stdio::null()).status().is_err() {
        assert!(!is_required(), "{shell} is not installed");
        eprintln!("not run: completions in {shell}, which is not installed; `make test` installs it");
        return;
    }
    let (command, load) = match shell {
        "fish" => return check_in_fish(&format!("{folder}"), &name, home, lines),
        "bash" => ("bash --norc --noprofile -i", format!("source <({name} completions bash)")),
        _ => ("zsh -f -i", format!("autoload -U compinit && compinit -u -D && source <({name} completions zsh)")),
    };
    let mut terminal = Terminal::start(&format!("PATH={folder}:$PATH exec {command}"), home);
    // The word is not in what is typed.
    terminal.type_keys(&format!("{load}; echo rea''dy\n"));
    terminal.wait_for("ready", 1);
    for (typed, completed) in lines {
        let before = terminal.shown().matches(completed).count();
        terminal.type_keys(&format!("{typed}\t"));
        terminal.wait_for(completed, before + 1);
        // Control-U removes the line.
        terminal.type_keys("\u{15}\n");
    }
}

#[allow(clippy::unwrap_used, reason = "a test fails by panicking")]
fn check_in_fish(folder: &str, name: &str, home: &Path, lines: &[(&str, &str)]) {
    for (typed, completed) in lines {
        // fish completes options with two hyphens.
        let typed = typed.replace(" -", " --");
        let commands = format!("set -x PATH {folder} $PATH; {name} completions fish | source; complete -C '{typed}'");
        let output = Command::new("fish")
            .args(["--no-config", "-c", &commands])
            .current_dir(home)
            .env("HOME", home)
            .output()
            .unwrap();
        let candidates = String::from_utf8_lossy(&output.stdout).into_owned();
        // fish lists words, without those before.
        let wanted = completed.split(' ').next_back().unwrap_or_default().trim_end_matches('=');
        assert!(candidates.contains(wanted), "{typed}: no {wanted} in {candidates}");
    }
}

fn is_required() -> bool {
    std::env::var("LYDIAN_REQUIRE_SHELLS").is_ok_and(|value| value == "1")
}

/// Lets `mandoc` read a manual page.
///
/// # Panics
///
/// If `mandoc` complains, or if it is missing and `LYDIAN_REQUIRE_SHELLS` is 1.
#[allow(
    clippy::unwrap_used,
    clippy::disallowed_methods,
    clippy::print_stderr,
    reason = "a test fails by panicking, makes its own file, and says what is missing"
)]
pub fn lint_manual_page(text: &str, folder: &Path) {
    let path = folder.join("page.1");
    std::fs::create_dir_all(folder).and_then(|()| std::fs::write(&path, text)).unwrap();
    match Command::new("mandoc").args(["-T", "lint"]).arg(&path).output() {
        Ok(output) => assert!(
            output.status.success() && output.stdout.is_empty(),
            "{}{}",
            String::from_utf8_lossy(&output.stdout),
            String::from_utf8_lossy(&output.stderr)
        ),
        Err(_) => {
            assert!(!is_required(), "mandoc is not installed");
            eprintln!("not run: mandoc is not installed; `make test` installs it");
        }
    }
}
