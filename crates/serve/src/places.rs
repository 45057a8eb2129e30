//! [`Places`]: limits the number of open connections.
//!
//! Input: addresses of new connections. Output: a [`Place`], or a refusal.
//!
//! An address that is not allowed gets one of a few separate places, so that it receives its 403. Some places are
//! reserved for loopback, and one address may only use a part of the rest. If no place is free, a new connection
//! replaces the oldest connection that has not sent a correct password yet, so half-open connections cannot lock
//! clients out. Cost: a walk over the connections if no place is free, otherwise two map lookups.

use crate::allow::Subnet;
use crate::bans::{Ban, BanError, Bans};
use crate::connection::{Client, Connection};
use crate::event::Log;
use crate::limits::{
    CONNECTIONS_FOR_LOOPBACK, CONNECTIONS_MAX, CONNECTIONS_NOT_ALLOWED_MAX, CONNECTIONS_PER_ADDRESS_MAX,
};
use lydian_stdx::lock;
use std::collections::{BTreeMap, HashMap};
use std::net::IpAddr;
use std::sync::{Arc, Mutex, MutexGuard};
use std::time::Duration;
use tokio::time::Instant;

/// Addresses that are counted together: one IPv4 address, or an IPv6 /64 network.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) struct Group {
    address: IpAddr,
    is_local: bool,
}

impl Group {
    pub(crate) fn of(address: IpAddr) -> Group {
        Group::of_client(address, address.to_canonical().is_loopback())
    }

    /// `is_local`: the client is on this machine, which a proxy cannot claim.
    pub(crate) fn of_client(address: IpAddr, is_local: bool) -> Group {
        let address = match address.to_canonical() {
            IpAddr::V6(address) if !address.is_loopback() => {
                IpAddr::V6((u128::from(address) & (u128::MAX << 64)).into())
            }
            address => address,
        };
        Group { address, is_local }
    }

    fn of_connection(connection: &Connection) -> Group {
        Group::of_client(connection.address.ip(), connection.is_local)
    }
}

/// The places of a server.
#[derive(Debug)]
pub(crate) struct Places {
    open: Mutex<Open>,
    /// For the connections.
    log: Arc<dyn Log>,
}

#[derive(Debug, Default)]
struct Open {
    next: u64,
    /// By id, so the oldest is first.
    connections: BTreeMap<u64, Arc<Connection>>,
    of_group: HashMap<Group, usize>,
    not_allowed: usize,
    bans: Bans,
}

/// A connection's place, until this is dropped.
#[derive(Debug)]
pub(crate) struct Place {
    places: Arc<Places>,
    pub(crate) connection: Arc<Connection>,
}

impl Drop for Place {
    fn drop(&mut self) {
        self.places.lock().remove(self.connection.id);
    }
}

impl Places {
    pub(crate) fn new(log: Arc<dyn Log>) -> Places {
        Places { open: Mutex::default(), log }
    }

    fn lock(&self) -> MutexGuard<'_, Open> {
        lock(&self.open)
    }

    /// Number of open connections.
    pub(crate) fn count(&self) -> usize {
        self.lock().connections.len()
    }

    /// Takes a place for a new connection.
    pub(crate) fn take(self: &Arc<Places>, client: Client) -> Option<Place> {
        let mut open = self.lock();
        if !client.is_local && open.bans.cover(client.address.ip(), Instant::now()) {
            return None;
        }
        open.make_room(Group::of_client(client.address.ip(), client.is_local), client.is_allowed)?;
        let connection = open.add(client, Arc::clone(&self.log));
        Some(Place { places: Arc::clone(self), connection })
    }

    /// Closes a connection. Returns whether it was open.
    pub(crate) fn close(&self, id: u64) -> bool {
        self.lock().connections.get(&id).inspect(|connection| connection.close()).is_some()
    }

    /// Ends the oldest connections that are not ending yet, each once it has answered, up to this number. Returns how
    /// many they were.
    pub(crate) fn leave(&self, count: usize) -> usize {
        let open = self.lock();
        let staying = open.connections.values().filter(|connection| !connection.is_leaving());
        staying.take(count).map(|connection| connection.leave()).count()
    }

    /// Closes the connections of a subnet and refuses new ones, but not those of clients on this machine.
    pub(crate) fn ban(&self, subnet: Subnet, time: Duration) -> Result<(), BanError> {
        let mut open = self.lock();
        open.bans.add(subnet, time, Instant::now())?;
        let of_subnet =
            |connection: &&Arc<Connection>| !connection.is_local && subnet.contains(connection.address.ip());
        open.connections.values().filter(of_subnet).for_each(|connection| connection.close());
        Ok(())
    }

    pub(crate) fn unban(&self, subnet: &Subnet) -> bool {
        self.lock().bans.remove(subnet, Instant::now())
    }

    pub(crate) fn bans(&self) -> Vec<Ban> {
        self.lock().bans.list(Instant::now())
    }

    pub(crate) fn clear_bans(&self) {
        self.lock().bans.clear();
    }

    /// Closes connections that do not read their answers, to free `bytes` bytes. `waited`: how long those bytes have
    /// been needed.
    pub(crate) fn close_unread(&self, bytes: usize, waited: Duration) {
        let open = self.lock();
        let unread: Vec<_> = open.connections.values().filter(|connection| connection.unread() > 0).collect();
        let answers: Vec<_> = unread.iter().map(|connection| (connection.still_for(), connection.unread())).collect();
        for index in to_close(&answers, bytes, waited) {
            unread[index].close();
        }
    }
}

/// Selects unread answers to drop, given as (time since the last byte was read or written, bytes): the longest stalled
/// first, until enough is freed. If no client is stalled, but bytes have been needed for [`PATIENCE`], selects the
/// largest answer.
fn to_close(answers: &[(Duration, usize)], bytes: usize, waited: Duration) -> Vec<usize> {
    let mut still: Vec<usize> = (0..answers.len()).filter(|index| answers[*index].0 >= STILL_MAX).collect();
    still.sort_by_key(|index| std::cmp::Reverse(answers[*index].0));
    let mut freed = 0;
    still.retain(|index| {
        let is_needed = freed < bytes;
        freed += answers[*index].1;
        is_needed
    });
    if still.is_empty() && waited >= PATIENCE {
        still.extend((0..answers.len()).max_by_key(|index| answers[*index].1));
    }
    still
}

/// A client that has read nothing of its answer for this long may be disconnected when others need the memory.
const STILL_MAX: Duration = Duration::from_secs(1);

/// Time for which bytes must have been needed before a client that does read is disconnected.
const PATIENCE: Duration = Duration::from_secs(5);

impl Open {
    /// Ensures that a place is free. Returns `None` if that is impossible.
    fn make_room(&mut self, group: Group, is_allowed: bool) -> Option<()> {
        if !is_allowed {
            if self.not_allowed < CONNECTIONS_NOT_ALLOWED_MAX {
                return Some(());
            }
            return self.close_oldest(|connection| !connection.is_allowed);
        }
        let allowed = self.connections.len() - self.not_allowed;
        if group.is_local {
            if allowed < CONNECTIONS_MAX {
                return Some(());
            }
            return self.close_oldest(|connection| connection.is_allowed);
        }
        if self.of_group.get(&group).copied().unwrap_or(0) >= CONNECTIONS_PER_ADDRESS_MAX {
            return self.close_oldest(|connection| Group::of_connection(connection) == group);
        }
        let of_loopback: usize = self.of_group.iter().filter(|(group, _)| group.is_local).map(|(_, count)| count).sum();
        let is_free = allowed - of_loopback < CONNECTIONS_MAX - CONNECTIONS_FOR_LOOPBACK && allowed < CONNECTIONS_MAX;
        if is_free {
            return Some(());
        }
        self.close_oldest(|connection| connection.is_allowed && !connection.is_local)
    }

    /// Closes the oldest matching connection that has not sent a correct password.
    fn close_oldest(&mut self, is_one: impl Fn(&Connection) -> bool) -> Option<()> {
        let connection = self.connections.values().find(|connection| !connection.has_user() && is_one(connection))?;
        connection.close();
        let id = connection.id;
        self.remove(id);
        Some(())
    }

    fn add(&mut self, client: Client, log: Arc<dyn Log>) -> Arc<Connection> {
        self.next += 1;
        let connection = Arc::new(Connection::new(self.next, client, log));
        self.connections.insert(self.next, Arc::clone(&connection));
        match client.is_allowed {
            true => *self.of_group.entry(Group::of_connection(&connection)).or_default() += 1,
            false => self.not_allowed += 1,
        }
        connection
    }

    /// Does nothing if the place has already been given to another connection.
    fn remove(&mut self, id: u64) {
        let Some(connection) = self.connections.remove(&id) else { return };
        if !connection.is_allowed {
            self.not_allowed -= 1;
            return;
        }
        let group = Group::of_connection(&connection);
        if let Some(count) = self.of_group.get_mut(&group) {
            *count -= 1;
            if *count == 0 {
                self.of_group.remove(&group);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::event::Silent;
    use crate::proxy::Sender;

    const REMOTE: &str = "192.0.2.1:5";

    fn places() -> Arc<Places> {
        Arc::new(Places::new(Arc::new(Silent)))
    }

    fn take(places: &Arc<Places>, address: &str, is_allowed: bool) -> Option<Place> {
        places.take(Client::direct(address.parse().unwrap(), is_allowed))
    }

    /// Sends a correct password on the connection.
    fn log_in(place: &Place) {
        place.connection.set_user(b"Basic YTpi", "a");
    }

    /// 2,048 half-open connections used to lock every client out, including half-open ones of addresses that are not
    /// allowed. Now a new connection replaces the oldest one without a user, and only connections with a user keep
    /// their places.
    ///
    /// limit: CONNECTIONS_MAX at
    /// limit: CONNECTIONS_MAX above
    #[test]
    fn half_open_connections_lock_no_client_out() {
        let places = places();
        let mut half_open: Vec<_> = (0..CONNECTIONS_MAX).map(|_| take(&places, "127.0.0.1:5", true).unwrap()).collect();
        let mut users: Vec<_> = (0..CONNECTIONS_MAX)
            .map(|_| {
                let place = take(&places, "127.0.0.1:6", true).unwrap();
                log_in(&place);
                place
            })
            .collect();
        assert_eq!(places.lock().connections.len(), CONNECTIONS_MAX);
        assert!(take(&places, "127.0.0.1:7", true).is_none(), "connections with a user stay");
        half_open.clear();
        assert_eq!(places.lock().connections.len(), CONNECTIONS_MAX, "places are returned only once");
        users.pop();
        assert!(take(&places, "127.0.0.1:7", true).is_some());
    }

    /// limit: CONNECTIONS_PER_ADDRESS_MAX at
    /// limit: CONNECTIONS_PER_ADDRESS_MAX above
    #[test]
    fn one_address_has_a_part_of_the_places() {
        let places = places();
        for address in [REMOTE, "[2001:db8::1]:5"] {
            let held: Vec<_> =
                (0..CONNECTIONS_PER_ADDRESS_MAX).map(|_| take(&places, address, true).unwrap()).collect();
            held.iter().for_each(log_in);
            assert!(take(&places, address, true).is_none());
            assert!(take(&places, "192.0.2.2:5", true).is_some());
        }
        assert_eq!(Group::of("2001:db8::1".parse().unwrap()), Group::of("2001:db8::2:1".parse().unwrap()));
        assert_eq!(Group::of("::ffff:1.2.3.4".parse().unwrap()), Group::of("1.2.3.4".parse().unwrap()));
        assert_ne!(Group::of("::1".parse().unwrap()), Group::of("::2".parse().unwrap()));
    }

    /// limit: CONNECTIONS_FOR_LOOPBACK at
    /// limit: CONNECTIONS_FOR_LOOPBACK above
    #[test]
    fn places_are_kept_for_loopback() {
        let places = places();
        let of_others = CONNECTIONS_MAX - CONNECTIONS_FOR_LOOPBACK;
        let address = |index: usize| format!("198.51.{}.{}:5", index / 200, index % 200);
        let held: Vec<_> = (0..of_others).map(|index| take(&places, &address(index), true).unwrap()).collect();
        held.iter().for_each(log_in);
        assert!(take(&places, "203.0.113.1:5", true).is_none());
        let of_loopback: Vec<_> =
            (0..CONNECTIONS_FOR_LOOPBACK).map(|_| take(&places, "[::1]:5", true).unwrap()).collect();
        of_loopback.iter().for_each(log_in);
        assert!(take(&places, "127.0.0.2:5", true).is_none());
    }

    /// A header of a proxy that names a loopback address gives none of the places that are kept for it.
    #[test]
    fn places_of_loopback_are_not_for_clients_of_proxies() {
        let places = places();
        let of_proxy = |text: &str| {
            let sender = Sender::Client(text.parse().unwrap());
            places.take(Client::of_proxy("127.0.0.1:5".parse().unwrap(), sender))
        };
        let held: Vec<_> = (0..CONNECTIONS_PER_ADDRESS_MAX).map(|_| of_proxy("127.0.0.1:5").unwrap()).collect();
        held.iter().for_each(log_in);
        assert!(of_proxy("127.0.0.1:5").is_none(), "it has the part of one distant address");
        assert!(held.iter().all(|place| !place.connection.is_local && place.connection.is_allowed));
        assert!(of_proxy("192.0.2.1:5").is_some());
        let address = "127.0.0.1:5".parse().unwrap();
        let of = |sender| Client::of_proxy(address, sender);
        assert!(of(Sender::Itself).is_local && !of(Sender::Unknown).is_local);
    }

    /// Whether the connection is to be closed.
    async fn is_closing(place: &Place) -> bool {
        tokio::time::timeout(Duration::from_millis(50), place.connection.closed()).await.is_ok()
    }

    #[tokio::test]
    async fn banned_clients_lose_their_places() {
        let (places, hour) = (places(), Duration::from_secs(3_600));
        let banned = take(&places, REMOTE, true).unwrap();
        let [other, local] = ["192.0.3.1:5", "127.0.0.1:5"].map(|address| take(&places, address, true).unwrap());
        for text in ["192.0.2.0/24", "127.0.0.0/8"] {
            assert_eq!(places.ban(Subnet::parse(text, false).unwrap(), hour), Ok(()));
        }
        assert!(is_closing(&banned).await && !is_closing(&other).await && !is_closing(&local).await);
        assert!(take(&places, REMOTE, true).is_none() && take(&places, "192.0.2.200:1", true).is_none());
        assert!(take(&places, "192.0.3.1:5", true).is_some() && take(&places, "127.0.0.1:5", true).is_some());
        // Behind a proxy, no header makes a client one of this machine.
        let sender = Sender::Client("127.0.0.1:5".parse().unwrap());
        assert!(places.take(Client::of_proxy(REMOTE.parse().unwrap(), sender)).is_none());
        assert_eq!(places.bans().len(), 2);
        assert!(places.unban(&Subnet::parse("192.0.2.0/24", false).unwrap()) && take(&places, REMOTE, true).is_some());
        places.clear_bans();
        assert!(places.bans().is_empty());
        // One connection, by its number.
        assert!(places.close(other.connection.id) && is_closing(&other).await);
        let id = other.connection.id;
        drop(other);
        assert!(!places.close(id));
    }

    /// limit: CONNECTIONS_NOT_ALLOWED_MAX at
    /// limit: CONNECTIONS_NOT_ALLOWED_MAX above
    #[test]
    fn addresses_that_may_not_call_take_no_place_of_others() {
        let places = places();
        let held: Vec<_> = (0..CONNECTIONS_MAX).filter_map(|_| take(&places, REMOTE, false)).collect();
        assert_eq!(held.len(), CONNECTIONS_MAX, "each takes the place of the oldest");
        assert_eq!(places.lock().connections.len(), CONNECTIONS_NOT_ALLOWED_MAX);
        let allowed: Vec<_> = (0..CONNECTIONS_MAX).map(|_| take(&places, "127.0.0.1:5", true).unwrap()).collect();
        assert_eq!(allowed.len(), CONNECTIONS_MAX);
    }

    /// The clients that have been stalled longest are disconnected first, and no more clients than needed.
    #[test]
    fn clients_that_do_not_read_are_cut_off() {
        let seconds = Duration::from_secs;
        let answers = [(seconds(2), 10), (seconds(0), 500), (seconds(9), 10), (seconds(3), 10)];
        assert_eq!(to_close(&answers, 1, seconds(0)), [2]);
        assert_eq!(to_close(&answers, 11, seconds(0)), [2, 3]);
        assert_eq!(to_close(&answers, 1_000, seconds(9)), [2, 3, 0]);
        let all_read = [(seconds(0), 10), (seconds(0), 500)];
        assert_eq!(to_close(&all_read, 1, seconds(0)), [0; 0], "they are given time");
        assert_eq!(to_close(&all_read, 1, PATIENCE), [1]);
        assert_eq!(to_close(&[], 1, PATIENCE), [0; 0]);
        let places = places();
        let place = take(&places, REMOTE, true).unwrap();
        std::thread::sleep(Duration::from_millis(20));
        let made_in = place.connection.age();
        let unread = place.connection.count_unread(10);
        assert_eq!(place.connection.unread(), 10);
        // It waits for its client from the moment it exists, however long it took to be made.
        let still_for = place.connection.still_for();
        assert!(still_for <= place.connection.age() - made_in + Duration::from_millis(1), "{still_for:?}");
        drop(unread);
        assert_eq!(place.connection.unread(), 0);
    }
}
