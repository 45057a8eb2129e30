//! What this program was built from. Constants of the build; the same for every program of Lydian.

/// The commit, if the environment of the build named it (`LYDIAN_COMMIT`); `make build` does.
pub fn commit() -> Option<&'static str> {
    option_env!("LYDIAN_COMMIT").filter(|commit| !commit.is_empty())
}

/// The compiler: the line of `rustc --version`.
pub fn toolchain() -> &'static str {
    env!("LYDIAN_TOOLCHAIN")
}

/// The target triple.
pub fn target() -> &'static str {
    env!("LYDIAN_TARGET")
}

/// One line with all of these.
pub fn line() -> String {
    let commit = commit().unwrap_or("unknown (built without `make build`)");
    format!("Build: commit {commit}, {}, {}", toolchain(), target())
}

#[cfg(test)]
mod tests {
    #[test]
    fn the_line_names_compiler_and_target() {
        let line = super::line();
        let architecture = std::env::consts::ARCH;
        assert!(line.starts_with("Build: commit ") && line.contains(", rustc "), "{line}");
        assert!(super::target().starts_with(architecture), "{line}");
    }
}
