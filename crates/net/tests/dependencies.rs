//! The libraries that the network depends on.
#![allow(
    clippy::unwrap_used,
    clippy::disallowed_methods,
    reason = "a test fails by panicking, and reads a file of the repository"
)]

/// Libraries that open ports on routers had vulnerabilities that machines in the local network could exploit with
/// crafted answers. The program contains no such library.
/// checklist: 76
#[test]
fn nothing_speaks_to_routers() {
    let lock = std::fs::read_to_string(concat!(env!("CARGO_MANIFEST_DIR"), "/../../Cargo.lock")).unwrap();
    let names: Vec<_> = lock.lines().filter_map(|line| line.strip_prefix("name = ")).collect();
    assert!(names.contains(&"\"tokio\"") && names.len() > 50, "the list is read");
    for word in ["upnp", "igd", "natpmp", "pcp"] {
        assert!(names.iter().all(|name| !name.contains(word)), "{word}: {names:?}");
    }
}
