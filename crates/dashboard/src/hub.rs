//! Reads the live data once for all readers.
//!
//! Input: [`Topics`]. Output: events, each with the keys of a topic that changed; all topics as they are now, for a
//! reader that begins. A thread reads each topic at its period, and sleeps while there are no readers. A reader that
//! was away for a short time gets what it missed; any other gets everything anew.

use crate::limits::{CHANGES_KEPT, CHANGES_SIZE_MAX, CHANGES_WAITING_MAX};
use crate::ports::{Host, Topic, Topics};
use bytes::Bytes;
use lydian_stdx::{IgnorePoison, lock};
use serde_json::{Map, Value, json};
use std::collections::VecDeque;
use std::io;
use std::sync::{Arc, Condvar, Mutex};
use std::thread::{self, JoinHandle};
use std::time::Duration;
use tokio::sync::broadcast;

/// At most four changes a second.
const TICK: Duration = Duration::from_millis(250);

/// Time after which a browser connects again.
const RETRY_MILLIS: u32 = 500;

/// A change of a topic, as it is sent.
#[derive(Clone, Debug)]
pub(crate) struct Event {
    number: u64,
    /// The place of the topic.
    topic: usize,
    pub(crate) text: Bytes,
}

impl Event {
    pub(crate) fn is_for(&self, shown: &Shown) -> bool {
        shown.has(self.topic)
    }
}

/// Which topics a reader gets, by their places.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct Shown(Vec<bool>);

impl Shown {
    fn has(&self, topic: usize) -> bool {
        self.0.get(topic).copied().unwrap_or(false)
    }
}

/// What a reader that begins gets first, and the changes after that.
#[derive(Debug)]
pub(crate) struct Joined {
    pub(crate) first: Vec<Bytes>,
    pub(crate) changes: broadcast::Receiver<Event>,
}

#[derive(Debug)]
pub(crate) struct Hub {
    topics: Arc<dyn Topics>,
    host: Arc<dyn Host>,
    /// Names this process in the ids of events.
    epoch: String,
    /// Held while topics are read.
    reading: Mutex<Vec<Due>>,
    state: Mutex<State>,
    /// The number of readers, and whether the thread should end.
    readers: Mutex<(usize, bool)>,
    changed: Condvar,
}

/// When a topic was read last, and what was read.
#[derive(Clone, Debug, Default)]
struct Due {
    at_millis: Option<u64>,
    version: Option<u64>,
}

#[derive(Debug)]
struct State {
    /// The topics as they were read last.
    known: Vec<Map<String, Value>>,
    number: u64,
    recent: VecDeque<Event>,
    recent_bytes: usize,
    sender: broadcast::Sender<Event>,
}

/// A reader, until it is dropped.
#[derive(Debug)]
pub(crate) struct Reader(Arc<Hub>);

impl Drop for Reader {
    fn drop(&mut self) {
        lock(&self.0.readers).0 -= 1;
    }
}

impl Hub {
    pub(crate) fn new(topics: Arc<dyn Topics>, host: Arc<dyn Host>, epoch: String) -> Hub {
        let count = topics.all().len();
        let state = State {
            known: vec![Map::new(); count],
            number: 0,
            recent: VecDeque::new(),
            recent_bytes: 0,
            sender: broadcast::Sender::new(CHANGES_WAITING_MAX),
        };
        Hub {
            topics,
            host,
            epoch,
            reading: Mutex::new(vec![Due::default(); count]),
            state: Mutex::new(state),
            readers: Mutex::default(),
            changed: Condvar::new(),
        }
    }

    /// Starts the thread. It ends after [`Hub::end`].
    pub(crate) fn start(self: &Arc<Hub>) -> io::Result<JoinHandle<()>> {
        let hub = Arc::clone(self);
        thread::Builder::new().name("page-live".to_owned()).spawn(move || {
            while hub.wait() {
                hub.read_due();
            }
        })
    }

    pub(crate) fn end(&self) {
        lock(&self.readers).1 = true;
        self.changed.notify_all();
    }

    /// Waits for the next tick, and for a reader. Returns false at the end.
    fn wait(&self) -> bool {
        let readers = lock(&self.readers);
        let (readers, _) = self.changed.wait_timeout_while(readers, TICK, |(_, is_ended)| !*is_ended).ignore_poison();
        let readers = self.changed.wait_while(readers, |(count, is_ended)| *count == 0 && !*is_ended);
        !readers.ignore_poison().1
    }

    /// Takes a place for a reader; `None` if there are `max` already.
    pub(crate) fn reader(self: &Arc<Hub>, max: usize) -> Option<Reader> {
        let mut readers = lock(&self.readers);
        if readers.0 >= max {
            return None;
        }
        readers.0 += 1;
        drop(readers);
        self.changed.notify_all();
        Some(Reader(Arc::clone(self)))
    }

    /// The number of readers.
    #[cfg(test)]
    pub(crate) fn readers(&self) -> usize {
        lock(&self.readers).0
    }

    /// What a reader may see. `has_login`: the reader has logged in; `allows`: the methods that it may call.
    pub(crate) fn shown(&self, has_login: bool, allows: impl Fn(&str) -> bool) -> Shown {
        let is_shown =
            |topic: &Topic| (has_login || !topic.is_private) && topic.methods.iter().all(|name| allows(name));
        Shown(self.topics.all().iter().map(is_shown).collect())
    }

    /// The names of the topics that a reader gets.
    pub(crate) fn names(&self, shown: &Shown) -> Vec<&'static str> {
        let all = self.topics.all().iter().enumerate();
        all.filter(|(place, _)| shown.has(*place)).map(|(_, topic)| topic.name).collect()
    }

    /// What a reader gets first, and the changes after that. `last`: the id of the last event that the reader got. May
    /// read topics, and so block for a short time.
    pub(crate) fn join(&self, last: Option<&str>, shown: &Shown) -> Joined {
        self.read_due();
        let state = lock(&self.state);
        let changes = state.sender.subscribe();
        let missed = last.and_then(|last| self.number_of(last)).and_then(|number| state.after(number));
        let first = match missed {
            Some(events) => events.filter(|event| event.is_for(shown)).map(|event| event.text.clone()).collect(),
            None => self.everything(&state, shown),
        };
        Joined { first, changes }
    }

    /// The number of the event with this id, if it is one of this process.
    fn number_of(&self, id: &str) -> Option<u64> {
        id.strip_prefix(&self.epoch)?.strip_prefix('-')?.parse().ok()
    }

    fn everything(&self, state: &State, shown: &Shown) -> Vec<Bytes> {
        let names = self.names(shown);
        let begin = format!("retry: {RETRY_MILLIS}\nevent: begin\ndata: {}\n\n", json!({ "topics": names }));
        let known = self.topics.all().iter().zip(&state.known).enumerate().filter(|(place, _)| shown.has(*place));
        let topics = known.map(|(_, (topic, values))| self.text(topic.name, state.number, values));
        std::iter::once(Bytes::from(begin)).chain(topics).collect()
    }

    fn text(&self, name: &str, number: u64, values: &Map<String, Value>) -> Bytes {
        let data = serde_json::to_string(values).unwrap_or_else(|error| unreachable!("values are JSON: {error}"));
        Bytes::from(format!("event: {name}\nid: {}-{number}\ndata: {data}\n\n", self.epoch))
    }

    /// Reads the topics whose period is over, and sends what changed.
    fn read_due(&self) {
        let mut due = lock(&self.reading);
        let now = self.host.steady_millis();
        for (place, (topic, due)) in self.topics.all().iter().zip(due.iter_mut()).enumerate() {
            let period = u64::try_from(topic.period.as_millis()).unwrap_or(u64::MAX);
            if due.at_millis.is_some_and(|at| now.saturating_sub(at) < period) {
                continue;
            }
            due.at_millis = Some(now);
            let Some(reading) = self.topics.read(place, due.version) else { continue };
            due.version = Some(reading.version);
            let mut state = lock(&self.state);
            let Some(known) = state.known.get_mut(place) else { continue };
            let changes = changes(known, &reading.values);
            *known = reading.values;
            if !changes.is_empty() {
                let number = state.number + 1;
                let text = self.text(topic.name, number, &changes);
                state.send(Event { number, topic: place, text });
            }
        }
    }
}

impl State {
    fn send(&mut self, event: Event) {
        self.number = event.number;
        self.recent_bytes += event.text.len();
        self.recent.push_back(event.clone());
        while self.recent.len() > CHANGES_KEPT || self.recent_bytes > CHANGES_SIZE_MAX {
            let Some(old) = self.recent.pop_front() else { break };
            self.recent_bytes -= old.text.len();
        }
        // An error means that there are no readers.
        let _ = self.sender.send(event);
    }

    /// The events after one; `None` if not all of them are kept.
    fn after(&self, number: u64) -> Option<impl Iterator<Item = &Event>> {
        let first = self.recent.front().map_or(self.number + 1, |event| event.number);
        let is_kept = number <= self.number && number + 1 >= first;
        is_kept.then(|| self.recent.iter().filter(move |event| event.number > number))
    }
}

/// The keys whose values changed; a key that is gone is null.
fn changes(old: &Map<String, Value>, new: &Map<String, Value>) -> Map<String, Value> {
    let gone = old.keys().filter(|key| !new.contains_key(*key)).map(|key| (key.clone(), Value::Null));
    let changed = new.iter().filter(|(key, value)| old.get(*key) != Some(*value));
    gone.chain(changed.map(|(key, value)| (key.clone(), value.clone()))).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ports::Reading;
    use std::sync::atomic::{AtomicU64, Ordering};

    #[derive(Debug, Default)]
    struct Node {
        millis: AtomicU64,
        values: Mutex<(u64, Map<String, Value>)>,
    }

    impl Host for Node {
        fn now(&self) -> u64 {
            0
        }

        fn steady_millis(&self) -> u64 {
            self.millis.load(Ordering::Relaxed)
        }

        fn note(&self, _: String) {}

        fn debug(&self, _: String) {}
    }

    impl Topics for Node {
        fn all(&self) -> &[Topic] {
            const TOPICS: &[Topic] = &[
                Topic { name: "open", period: TICK, is_private: false, methods: &["x", "y"] },
                Topic { name: "private", period: Duration::from_secs(1), is_private: true, methods: &[] },
            ];
            TOPICS
        }

        fn read(&self, _: usize, seen: Option<u64>) -> Option<Reading> {
            let values = lock(&self.values);
            (seen != Some(values.0)).then(|| Reading { version: values.0, values: values.1.clone() })
        }
    }

    impl Node {
        fn set(&self, key: &str, value: Value) {
            let mut values = lock(&self.values);
            values.0 += 1;
            match value {
                Value::Null => values.1.remove(key),
                value => values.1.insert(key.to_owned(), value),
            };
            self.millis.fetch_add(1_000, Ordering::Relaxed);
        }
    }

    fn hub() -> (Arc<Node>, Arc<Hub>) {
        let node = Arc::<Node>::default();
        (node.clone(), Arc::new(Hub::new(node.clone(), node, "e".to_owned())))
    }

    fn join(hub: &Hub, last: Option<&str>, has_login: bool) -> Joined {
        hub.join(last, &hub.shown(has_login, |_| true))
    }

    #[test]
    fn a_reader_gets_the_topics_whose_methods_it_may_call() {
        let (node, hub) = hub();
        let of = |has_login, allowed: &[&str]| hub.shown(has_login, |name| allowed.contains(&name)).0;
        assert_eq!(of(true, &["x", "y"]), [true, true]);
        assert_eq!(of(false, &["y", "x", "z"]), [true, false]);
        assert_eq!(of(true, &["x"]), [false, true]);
        assert_eq!(of(false, &[]), [false, false]);
        node.set("a", json!(1));
        let only_private = hub.shown(true, |_| false);
        let joined = hub.join(None, &only_private);
        assert_eq!(texts(&joined.first).matches("event: ").count(), 2);
        assert!(
            texts(&joined.first).contains("{\"topics\":[\"private\"]}")
                && joined.first[1].starts_with(b"event: private")
        );
        node.set("a", json!(2));
        assert!(texts(&hub.join(Some("e-1"), &only_private).first).starts_with("event: private"), "nor what it missed");
    }

    fn texts(first: &[Bytes]) -> String {
        first.iter().map(|bytes| String::from_utf8_lossy(bytes).into_owned()).collect()
    }

    #[test]
    fn a_reader_gets_everything_and_then_changes() {
        let (node, hub) = hub();
        node.set("a", json!(1));
        let mut joined = join(&hub, None, false);
        assert_eq!(
            texts(&joined.first),
            "retry: 500\nevent: begin\ndata: {\"topics\":[\"open\"]}\n\nevent: open\nid: e-2\ndata: {\"a\":1}\n\n"
        );
        let with_login = join(&hub, None, true);
        assert!(texts(&with_login.first).contains("event: private"));
        node.set("b", json!("x"));
        node.set("a", Value::Null);
        hub.read_due();
        let [open, all] = [false, true].map(|has_login| hub.shown(has_login, |_| true));
        let events: Vec<Event> = [(); 2].map(|()| joined.changes.try_recv().unwrap()).into();
        assert_eq!(events[0].text, "event: open\nid: e-3\ndata: {\"a\":null,\"b\":\"x\"}\n\n");
        assert!(events[0].is_for(&open) && !events[1].is_for(&open) && events[1].is_for(&all));
        hub.read_due();
        assert!(joined.changes.try_recv().is_err(), "nothing changed");
    }

    #[test]
    fn topics_are_read_at_their_period() {
        let (node, hub) = hub();
        node.set("a", json!(1));
        let mut joined = join(&hub, None, true);
        lock(&node.values).0 += 1;
        lock(&node.values).1.insert("a".to_owned(), json!(2));
        hub.read_due();
        assert!(joined.changes.try_recv().is_err(), "no period is over");
        node.millis.fetch_add(250, Ordering::Relaxed);
        hub.read_due();
        assert!(joined.changes.try_recv().unwrap().text.starts_with(b"event: open\n"));
        assert!(joined.changes.try_recv().is_err());
        node.millis.fetch_add(750, Ordering::Relaxed);
        hub.read_due();
        assert!(joined.changes.try_recv().unwrap().text.starts_with(b"event: private\n"));
    }

    /// limit: CHANGES_KEPT at
    /// limit: CHANGES_KEPT above
    #[test]
    fn a_reader_that_comes_back_gets_what_it_missed() {
        let (node, hub) = hub();
        let is_everything =
            |last: &str| texts(&join(&hub, Some(last), true).first).starts_with("retry: 500\nevent: begin");
        node.set("a", json!(0));
        hub.read_due();
        node.set("a", json!(1));
        assert_eq!(texts(&join(&hub, Some("e-2"), false).first), "event: open\nid: e-3\ndata: {\"a\":1}\n\n");
        assert_eq!(texts(&join(&hub, Some("e-4"), true).first), "");
        for other in ["e-5", "f-4", "e", "", "e--1", "e-x"] {
            assert!(is_everything(other), "{other}");
        }
        for value in 0..u64::try_from(CHANGES_KEPT / 2).unwrap() {
            node.set("a", json!(value + 2));
            hub.read_due();
        }
        assert!(!is_everything("e-4"));
        assert!(is_everything("e-3"));
    }

    /// limit: CHANGES_SIZE_MAX at
    /// limit: CHANGES_SIZE_MAX above
    #[test]
    fn the_memory_of_changes_is_bounded() {
        let (node, hub) = hub();
        // Both topics change; a change is 28 or 31 bytes of frame and a text.
        let size = |bytes: usize| "x".repeat(CHANGES_SIZE_MAX / 2 - bytes);
        node.set("a", json!(size(40)));
        hub.read_due();
        assert_eq!(lock(&hub.state).recent.len(), 2);
        node.set("a", json!(size(0)));
        hub.read_due();
        assert_eq!(lock(&hub.state).recent.len(), 1);
        assert!(lock(&hub.state).recent_bytes <= CHANGES_SIZE_MAX);
    }

    /// limit: CHANGES_WAITING_MAX at
    /// limit: CHANGES_WAITING_MAX above
    #[test]
    fn a_slow_reader_notices_what_it_lost() {
        let (node, hub) = hub();
        let mut joined = join(&hub, None, true);
        let rounds = u64::try_from(CHANGES_WAITING_MAX / 2).unwrap();
        for value in 0..rounds {
            node.set("a", json!(value));
            hub.read_due();
        }
        assert!(joined.changes.try_recv().is_ok());
        for value in 0..=rounds {
            node.set("a", json!(value + rounds));
            hub.read_due();
        }
        assert!(matches!(joined.changes.try_recv(), Err(broadcast::error::TryRecvError::Lagged(_))));
    }

    /// limit: STREAMS_MAX at
    /// limit: STREAMS_MAX above
    #[test]
    fn readers_are_counted() {
        let max = crate::limits::STREAMS_MAX;
        let (_, hub) = hub();
        let thread = hub.start().unwrap();
        let mut readers: Vec<Reader> = (0..max).map(|_| hub.reader(max).unwrap()).collect();
        assert!(hub.reader(max).is_none());
        readers.pop();
        assert!(hub.reader(max).is_some());
        drop(readers);
        hub.end();
        thread.join().unwrap();
    }
}
