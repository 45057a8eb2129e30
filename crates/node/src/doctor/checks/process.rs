//! Checks of what the system grants a process: open files, io_uring, the user.

use super::with_settings;
use crate::doctor::check::Answer;
use crate::doctor::facts::Facts;
use crate::doctor::procfs;
use crate::screen::commas;
use lydian_disk::limits::READER_THREADS_MAX;
use lydian_disk::probe::ring_refusal;

pub(crate) fn files(facts: &Facts<'_>) -> Answer {
    with_settings(facts, |settings| {
        // That of the host is whatever is asked for, so this is what the settings ask for.
        let wanted = settings.net.descriptors;
        let required = wanted.saturating_sub(settings.net.connections_max as u64);
        let of_node = facts.node_process().and_then(|process| {
            let (soft, _) = procfs::limit_of(process, "Max open files")?;
            Some((soft, procfs::open_files(process).len() as u64))
        });
        let limit = of_node.map_or(facts.files_max, |(soft, _)| soft);
        let open = of_node.map(|(_, open)| format!(", and the node has {} open", commas(open))).unwrap_or_default();
        let shown = if limit == u64::MAX { "not limited".to_owned() } else { format!("limited to {}", commas(limit)) };
        let words = format!("open files are {shown}; these settings use up to {}{open}", commas(wanted));
        match () {
            () if limit < required => Answer::bad(words),
            () if limit < wanted => Answer::warning(format!("{words}; fewer peers can connect")),
            () if of_node.is_some_and(|(soft, open)| open > soft / 10 * 9) => Answer::warning(words),
            () => Answer::ok(words),
        }
    })
}

pub(crate) fn ring(_: &Facts<'_>) -> Answer {
    match ring_refusal() {
        None => Answer::ok("coins are read through io_uring"),
        Some(reason) => Answer::warning(format!(
            "io_uring is refused ({reason}); coins are read by up to {READER_THREADS_MAX} threads, which is slower"
        )),
    }
}

pub(crate) fn user(facts: &Facts<'_>) -> Answer {
    let (who, user) = match facts.node_process().and_then(procfs::user_of) {
        Some(user) => ("the node runs", user),
        None => ("lydian doctor runs", rustix::process::getuid().as_raw()),
    };
    match user {
        0 => Answer::warning(format!("{who} as root, which it does not need")),
        user => Answer::ok(format!("{who} as user {user}")),
    }
}
