//! What the network is made of.
#![allow(
    clippy::unwrap_used,
    clippy::disallowed_methods,
    reason = "a test fails by panicking, and reads a file of the repository"
)]

/// Libraries that open ports on routers were entered through answers of machines in the same network. Nothing of the kind is in the program.
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
