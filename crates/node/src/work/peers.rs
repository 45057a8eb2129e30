//! The node among its peers, from the end of what lay here until it is told to stop. Input: a session, an engine, the display. Output: what was done
//! meanwhile. Tells, once, what catching up with the peers has cost.

use super::failure::Failure;
use super::finish;
use super::watcher::Watcher;
use crate::clock::Stopwatch;
use crate::display::{Display, Doing, Figures, Style};
use crate::net;
use crate::run::Session;
use crate::serve::Serving;
use lydian_engine::{Engine, Observer};
use lydian_net::{Network, ValidationEnd};
use std::sync::Arc;

/// Blocks behind the peers from which on a node catches up; what is less comes one by one.
const CATCHING_UP_BLOCKS: u32 = 12;

/// Talks to peers until the node is told to stop.
pub(super) fn stay(
    session: &Session<'_>,
    engine: &Arc<Engine>,
    server: Option<&Serving>,
    watcher: &Arc<Watcher>,
    observer: Arc<dyn Observer + Send>,
    style: Style,
    display: Display,
) -> Result<Figures, Failure> {
    let began = Began { figures: figures(session, engine, None), watch: Stopwatch::start() };
    let network = net::start(session, engine, observer).map_err(Failure::Network)?;
    if let Some(server) = server {
        server.has_peers(&network);
    }
    if session.settings.net.is_wanted() {
        display.tell(Doing::Syncing(engine.shared_meter(), look(watcher, &network)));
    } else {
        display.clear();
        finish::tell_waiting(session, style);
    }
    let (mut is_behind, mut is_told) = (false, false);
    let end = net::wait(session, engine, &network, &mut || {
        watcher.aims_at(engine.best_header_height());
        let sync = watcher.look(network.figures().get());
        is_behind |= sync.blocks_left() >= CATCHING_UP_BLOCKS;
        if is_behind && !is_told && sync.is_in_step() {
            is_told = true;
            display.around(|| finish::tell_sync(session, engine, &began.since(session, engine), style));
        }
    });
    session.announce_shutdown();
    drop((network, display));
    let figures = began.since(session, engine);
    if is_behind && !is_told {
        finish::tell_sync(session, engine, &figures, style);
    }
    match end {
        Some(ValidationEnd::Failed(error)) => Err(error.into()),
        Some(ValidationEnd::Stopped) | None => Ok(figures),
    }
}

/// Gives looks at the node among its peers, for as long as somebody asks.
fn look(watcher: &Arc<Watcher>, network: &Network) -> crate::display::Look {
    let (watcher, figures) = (Arc::clone(watcher), Arc::clone(network.figures()));
    Arc::new(move || watcher.look(figures.get()))
}

/// What had been done when the network began.
#[derive(Debug)]
struct Began {
    figures: Figures,
    watch: Stopwatch,
}

impl Began {
    fn since(&self, session: &Session<'_>, engine: &Engine) -> Figures {
        figures(session, engine, Some(&self.watch)).since(&self.figures)
    }
}

fn figures(session: &Session<'_>, engine: &Engine, watch: Option<&Stopwatch>) -> Figures {
    let (wall_seconds, cpu_seconds) = watch.map_or((0.0, 0.0), |watch| {
        let seconds = watch.seconds();
        (seconds.wall_seconds, seconds.cpu_seconds.unwrap_or_default())
    });
    Figures::new(&engine.progress(), session.settings.threads, wall_seconds, cpu_seconds)
}
