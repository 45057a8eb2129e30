//! Gives the crate the compiler and the target of this build. The commit comes from the environment
//! (`LYDIAN_COMMIT`, which `make build` sets): so a build from an archive without `.git` works, and a commit compiles
//! nothing again where the variable is not set.

use std::env;
use std::process::Command;

fn main() {
    println!("cargo::rerun-if-changed=build.rs");
    let compiler = env::var("RUSTC").unwrap_or_else(|_| "rustc".to_owned());
    let output = Command::new(compiler).arg("--version").output().ok().filter(|output| output.status.success());
    let version = output.and_then(|output| String::from_utf8(output.stdout).ok());
    println!("cargo::rustc-env=LYDIAN_TOOLCHAIN={}", version.as_deref().map_or("rustc of unknown version", str::trim));
    println!("cargo::rustc-env=LYDIAN_TARGET={}", env::var("TARGET").unwrap_or_default());
}
