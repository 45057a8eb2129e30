//! Costs: the CPU time and the bytes that each subnet uses, and the limits on them.
//!
//! Input: the method of each request, the bytes of requests and answers, the CPU time of answers, the deleted blocks
//! that answers need; the time. Output: how long a client waits for its next answer, how many threads work on its
//! batch, or the end of its session.
//!
//! A unit is about 5,000 bytes of answers (50 entries of a history), or 1 ms of CPU time. All sessions of an IPv4 /24
//! or an IPv6 /48 have one sum, which falls by [`DECAY_PER_SECOND`] units, so that more connections give nothing
//! more. Clients on this machine have none.
//!
//! Invariants: the sum of a subnet outlives its sessions; the number of sums is bounded. The clock comes in through
//! [`Clock`]. Cost: a lock and two system calls for each request of a distant client.

use crate::fault::{Fault, code};
use crate::limits::ACCOUNTS_MAX;
use lydian_query::{Allowance, Payer};
use lydian_stdx::lock;
use std::collections::HashMap;
use std::fmt;
use std::net::IpAddr;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

/// The clocks of the program.
pub trait Clock: fmt::Debug + Send + Sync {
    /// The time since some start; it never goes backwards.
    fn now(&self) -> Duration;

    /// The CPU time of the current thread.
    fn thread_cpu(&self) -> Duration;
}

/// Thousandths of a unit.
pub(crate) type Points = u64;

const UNIT: Points = 1_000;

/// Of a request whose method has no other cost in the table of methods, and of a line that is no request.
pub(crate) const REQUEST: Points = UNIT / 10;

/// Of a connection: its TLS handshake is answered by other threads.
const CONNECTION: Points = UNIT;

/// Bytes for a unit.
const BYTES_PER_UNIT: u64 = 5_000;

/// Of a deleted block that a request waits for, if it comes: a peer sends 2 to 4 MB, and other wallets wait for their
/// turn.
const FETCHED_BLOCK: Points = 100 * UNIT;

/// Units by which a sum falls.
const DECAY_PER_SECOND: u64 = 2;

/// The longest wait for an answer.
const DELAY_MAX: Duration = Duration::from_millis(2_500);

/// Above these sums, in units, the clients of a subnet are served more slowly, and their sessions end. 0: never.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CostLimits {
    pub soft: u32,
    pub hard: u32,
}

impl Default for CostLimits {
    /// To subscribe to 3,000 scripts costs less than the first.
    fn default() -> CostLimits {
        CostLimits { soft: 1_000, hard: 10_000 }
    }
}

fn units(limit: u32) -> Points {
    u64::from(limit) * UNIT
}

impl CostLimits {
    /// Whether a sum ends sessions.
    fn is_over(&self, sum: Points) -> bool {
        self.hard > 0 && sum > units(self.hard)
    }

    /// How far a sum is above the soft limit, in thousandths of the way to the hard one, or of another soft limit.
    fn excess(&self, sum: Points) -> u64 {
        if self.soft == 0 || sum <= units(self.soft) {
            return 0;
        }
        let way = match self.hard.checked_sub(self.soft) {
            Some(way) if way > 0 => units(way),
            _ => units(self.soft),
        };
        ((sum - units(self.soft)).saturating_mul(1_000) / way).min(1_000)
    }

    /// The wait before an answer.
    fn delay(&self, sum: Points) -> Duration {
        let millis = u64::try_from(DELAY_MAX.as_millis()).unwrap_or(0) * self.excess(sum) / 1_000;
        Duration::from_millis(millis)
    }

    /// The threads that answer a batch, of so many.
    fn threads(&self, sum: Points, threads: usize) -> usize {
        let left = usize::try_from(1_000 - self.excess(sum)).unwrap_or(0);
        threads.saturating_mul(left).div_ceil(1_000).max(1)
    }
}

fn of_bytes(bytes: usize) -> Points {
    u64::try_from(bytes).unwrap_or(u64::MAX).saturating_mul(UNIT) / BYTES_PER_UNIT
}

fn of_cpu(time: Duration) -> Points {
    u64::try_from(time.as_micros()).unwrap_or(u64::MAX).saturating_mul(UNIT) / 1_000
}

/// The addresses with one sum.
fn subnet(address: IpAddr) -> IpAddr {
    match address.to_canonical() {
        IpAddr::V4(address) => IpAddr::V4((u32::from(address) & (u32::MAX << 8)).into()),
        IpAddr::V6(address) => IpAddr::V6((u128::from(address) & (u128::MAX << 80)).into()),
    }
}

/// The sum of a subnet.
#[derive(Debug, Default)]
struct Account(Mutex<Sum>);

#[derive(Debug, Default)]
struct Sum {
    points: Points,
    /// When it had these.
    at: Duration,
}

impl Account {
    /// The sum after an addition.
    fn add(&self, now: Duration, points: Points) -> Points {
        let mut sum = lock(&self.0);
        let millis = u64::try_from(now.saturating_sub(sum.at).as_millis()).unwrap_or(u64::MAX);
        // Whole milliseconds, so that frequent additions do not lose the rest.
        sum.at = sum.at.saturating_add(Duration::from_millis(millis));
        sum.points = sum.points.saturating_sub(millis.saturating_mul(DECAY_PER_SECOND * UNIT / 1_000));
        sum.points = sum.points.saturating_add(points);
        sum.points
    }
}

/// The sums of all subnets.
#[derive(Debug)]
pub(crate) struct Accounts {
    clock: Arc<dyn Clock>,
    of_subnets: Mutex<HashMap<IpAddr, Arc<Account>>>,
    /// Of all subnets for which there is no room.
    of_others: Arc<Account>,
}

impl Accounts {
    pub(crate) fn new(clock: Arc<dyn Clock>) -> Accounts {
        Accounts { clock, of_subnets: Mutex::default(), of_others: Arc::default() }
    }

    fn account(&self, address: IpAddr) -> Arc<Account> {
        let subnet = subnet(address);
        let mut accounts = lock(&self.of_subnets);
        if !accounts.contains_key(&subnet) && accounts.len() >= ACCOUNTS_MAX {
            let now = self.clock.now();
            accounts.retain(|_, account| Arc::strong_count(account) > 1 || account.add(now, 0) > 0);
            if accounts.len() >= ACCOUNTS_MAX {
                return Arc::clone(&self.of_others);
            }
        }
        Arc::clone(accounts.entry(subnet).or_default())
    }

    /// The meter of a new session; `is_local`: its client is on this machine.
    pub(crate) fn meter(&self, address: IpAddr, is_local: bool) -> Meter {
        let account = (!is_local).then(|| self.account(address));
        let meter = Meter { clock: Arc::clone(&self.clock), account, counts: Arc::default() };
        meter.charge(CONNECTION);
        meter
    }
}

/// What a session had.
#[derive(Debug, Default)]
struct Counts {
    requests: AtomicU64,
    bytes_received: AtomicU64,
    bytes_sent: AtomicU64,
    points: AtomicU64,
}

/// What a session costs.
#[derive(Debug)]
pub(crate) struct Meter {
    clock: Arc<dyn Clock>,
    /// `None` if it costs nothing.
    account: Option<Arc<Account>>,
    counts: Arc<Counts>,
}

/// Takes deleted blocks to the account of a session, before they are fetched.
#[derive(Debug)]
struct Bill {
    clock: Arc<dyn Clock>,
    account: Arc<Account>,
    counts: Arc<Counts>,
    limits: CostLimits,
}

impl Payer for Bill {
    /// Refuses a block that would end the session.
    fn pay(&self) -> Result<(), String> {
        let now = self.clock.now();
        let sum = self.account.add(now, 0);
        if self.limits.is_over(sum.saturating_add(FETCHED_BLOCK)) {
            let (block, sum, hard) = (FETCHED_BLOCK / UNIT, sum.div_ceil(UNIT), self.limits.hard);
            return Err(format!(
                "the answer needs a deleted block, which costs {block} units: answers to your network cost {sum}, and \
                 the limit is {hard}; the sum falls by {DECAY_PER_SECOND} a second"
            ));
        }
        self.counts.points.fetch_add(FETCHED_BLOCK, Ordering::Relaxed);
        self.account.add(now, FETCHED_BLOCK);
        Ok(())
    }

    fn take_back(&self) {
        self.counts.points.fetch_sub(FETCHED_BLOCK, Ordering::Relaxed);
        let mut sum = lock(&self.account.0);
        sum.points = sum.points.saturating_sub(FETCHED_BLOCK);
    }
}

fn count(counter: &AtomicU64, number: usize) {
    counter.fetch_add(u64::try_from(number).unwrap_or(u64::MAX), Ordering::Relaxed);
}

impl Meter {
    fn charge(&self, points: Points) {
        if let Some(account) = &self.account {
            self.counts.points.fetch_add(points, Ordering::Relaxed);
            account.add(self.clock.now(), points);
        }
    }

    fn bill(&self, limits: CostLimits) -> Option<Bill> {
        let account = Arc::clone(self.account.as_ref()?);
        Some(Bill { clock: Arc::clone(&self.clock), account, counts: Arc::clone(&self.counts), limits })
    }

    /// The sum of the subnet.
    fn sum(&self) -> Points {
        self.account.as_ref().map_or(0, |account| account.add(self.clock.now(), 0))
    }

    /// A line was received. Returns the wait before it is answered.
    pub(crate) fn received(&self, bytes: usize, limits: CostLimits) -> Duration {
        count(&self.counts.bytes_received, bytes);
        self.charge(of_bytes(bytes));
        limits.delay(self.sum())
    }

    pub(crate) fn sent(&self, bytes: usize) {
        count(&self.counts.bytes_sent, bytes);
    }

    /// The threads that answer a batch, of so many.
    pub(crate) fn threads(&self, limits: CostLimits, threads: usize) -> usize {
        limits.threads(self.sum(), threads)
    }

    /// An error if the session must end.
    pub(crate) fn check(&self, limits: CostLimits) -> Result<(), Fault> {
        let sum = self.sum();
        if !limits.is_over(sum) {
            return Ok(());
        }
        let (sum, hard) = (sum.div_ceil(UNIT), limits.hard);
        let words = format!(
            "answers to your network cost {sum} units, above the limit of {hard}; the sum falls by {DECAY_PER_SECOND} a second"
        );
        Err(Fault::new(code::EXCESSIVE, words))
    }

    /// A line that is no request costs as much as one.
    pub(crate) fn no_request(&self) {
        self.charge(REQUEST);
    }

    /// Makes an answer and charges it: `points` of its method, the deleted blocks that it needs, its bytes, its time.
    pub(crate) fn measure(
        &self,
        points: Points,
        limits: CostLimits,
        make: impl FnOnce() -> Result<Vec<u8>, Fault>,
    ) -> Result<Vec<u8>, Fault> {
        count(&self.counts.requests, 1);
        self.measure_within(points, limits, make, |made| made.as_ref().map_or(0, Vec::len))
    }

    /// The same for a part of an answer, whose length `bytes` returns.
    pub(crate) fn measure_part<T>(&self, points: Points, make: impl FnOnce() -> T, bytes: impl Fn(&T) -> usize) -> T {
        // An answer that has begun is finished.
        self.measure_within(points, CostLimits { soft: 0, hard: 0 }, make, bytes)
    }

    fn measure_within<T>(
        &self,
        points: Points,
        limits: CostLimits,
        make: impl FnOnce() -> T,
        bytes: impl Fn(&T) -> usize,
    ) -> T {
        let Some(bill) = self.bill(limits) else { return Allowance::new(None).during(make) };
        let allowance = Allowance::new(Some(Arc::new(bill)));
        let began = self.clock.thread_cpu();
        let made = allowance.during(make);
        let time = self.clock.thread_cpu().saturating_sub(began);
        self.charge(points.saturating_add(of_bytes(bytes(&made))).saturating_add(of_cpu(time)));
        made
    }

    /// Requests, bytes received, bytes sent, and units, so far.
    pub(crate) fn totals(&self) -> [u64; 4] {
        let Counts { requests, bytes_received, bytes_sent, points } = &*self.counts;
        let [requests, received, sent, points] =
            [requests, bytes_received, bytes_sent, points].map(|counter| counter.load(Ordering::Relaxed));
        [requests, received, sent, points / UNIT]
    }

    /// The sum of the subnet now, in units.
    pub(crate) fn subnet_units(&self) -> u64 {
        self.sum().div_ceil(UNIT)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A clock that tests set; each look at the CPU time adds 3 ms.
    #[derive(Debug, Default)]
    struct TestClock {
        micros: AtomicU64,
        cpu_millis: AtomicU64,
    }

    impl Clock for TestClock {
        fn now(&self) -> Duration {
            Duration::from_micros(self.micros.load(Ordering::Relaxed))
        }

        fn thread_cpu(&self) -> Duration {
            Duration::from_millis(self.cpu_millis.fetch_add(3, Ordering::Relaxed))
        }
    }

    fn accounts() -> (Arc<TestClock>, Accounts) {
        let clock = Arc::new(TestClock::default());
        (Arc::clone(&clock), Accounts::new(clock))
    }

    const LIMITS: CostLimits = CostLimits { soft: 1_000, hard: 10_000 };

    #[test]
    fn answers_are_delayed_between_the_limits() {
        let of = |sum: u64| (LIMITS.delay(sum * UNIT).as_millis(), LIMITS.threads(sum * UNIT, 8));
        assert_eq!([0, 1_000].map(of), [(0, 8); 2]);
        assert_eq!(of(1_009), (2, 8));
        assert_eq!(of(5_500), (1_250, 4));
        assert_eq!([10_000, 99_999].map(of), [(2_500, 1); 2]);
        assert_eq!([10_000, 10_001].map(|sum| LIMITS.is_over(sum * UNIT)), [false, true]);
        let off = CostLimits { soft: 0, hard: 0 };
        assert!(off.delay(u64::MAX).is_zero() && off.threads(u64::MAX, 8) == 8 && !off.is_over(u64::MAX));
        // Without a hard limit, or below it, the way is a second soft limit.
        for hard in [0, 50, 100] {
            let odd = CostLimits { soft: 100, hard };
            assert_eq!(
                [100, 150, 200, u64::MAX / UNIT].map(|sum| odd.delay(sum * UNIT).as_millis()),
                [0, 1_250, 2_500, 2_500]
            );
        }
    }

    #[test]
    fn costs_add_up_and_fall_with_time() {
        let (clock, accounts) = accounts();
        let address = "192.0.2.9".parse().unwrap();
        let meter = accounts.meter(address, false);
        assert_eq!(meter.sum(), CONNECTION);
        meter.received(500, LIMITS);
        meter.no_request();
        // The method, 5,000 bytes, 3 ms.
        assert_eq!(meter.measure(250, LIMITS, || Ok(vec![0; 5_000])).unwrap().len(), 5_000);
        assert_eq!(meter.sum(), 1_000 + 100 + 100 + 250 + 1_000 + 3_000);
        meter.sent(5_001);
        assert_eq!(meter.totals(), [1, 500, 5_001, 5]);
        // However often it is looked at.
        for half_millis in 0..=2_000 {
            clock.micros.store(half_millis * 500, Ordering::Relaxed);
            meter.sum();
        }
        assert_eq!(meter.sum(), 3_450);
        // Another session of the subnet, while this one is open and after it.
        let other = accounts.meter("192.0.2.77".parse().unwrap(), false);
        assert_eq!(other.sum(), 4_450);
        drop((meter, other));
        assert_eq!(accounts.meter(address, false).sum(), 5_450);
        clock.micros.store(60_000_000, Ordering::Relaxed);
        assert_eq!(accounts.meter(address, false).sum(), CONNECTION);
    }

    #[test]
    fn a_sum_above_the_hard_limit_ends_sessions() {
        let (clock, accounts) = accounts();
        let meter = accounts.meter("2001:db8:1::1".parse().unwrap(), false);
        meter.charge(units(LIMITS.hard) - CONNECTION);
        assert_eq!(meter.check(LIMITS), Ok(()));
        assert_eq!(meter.received(0, LIMITS), DELAY_MAX);
        assert_eq!(meter.threads(LIMITS, 8), 1);
        meter.charge(1);
        let fault = meter.check(LIMITS).unwrap_err();
        let words = "answers to your network cost 10001 units, above the limit of 10000; the sum falls by 2 a second";
        assert_eq!((fault.code, &*fault.message), (-101, words));
        // The limits that count are those of now.
        assert_eq!(meter.check(CostLimits { hard: 10_001, ..LIMITS }), Ok(()));
        clock.micros.store(4_501_000_000, Ordering::Relaxed);
        assert_eq!(meter.received(0, LIMITS), Duration::ZERO);
    }

    #[test]
    fn clients_on_this_machine_cost_nothing() {
        let (clock, accounts) = accounts();
        let meter = accounts.meter("127.0.0.1".parse().unwrap(), true);
        meter.received(1 << 30, LIMITS);
        assert!(meter.measure(u64::MAX, LIMITS, || Err(Fault::bad("x"))).is_err());
        assert_eq!((meter.sum(), meter.check(LIMITS), meter.threads(LIMITS, 8)), (0, Ok(()), 8));
        assert_eq!(meter.totals(), [1, 1 << 30, 0, 0]);
        assert_eq!(clock.cpu_millis.load(Ordering::Relaxed), 0, "nothing is measured");
    }

    #[test]
    fn deleted_blocks_are_paid_for_before_they_are_fetched() {
        let (clock, accounts) = accounts();
        let meter = accounts.meter("192.0.2.9".parse().unwrap(), false);
        let bill = meter.bill(LIMITS).unwrap();
        let paid = (0..200).take_while(|_| bill.pay().is_ok()).count();
        assert_eq!((paid, meter.sum(), meter.totals()[3]), (99, CONNECTION + 99 * FETCHED_BLOCK, 9_901));
        assert_eq!(meter.check(LIMITS), Ok(()), "the session goes on");
        let words = "the answer needs a deleted block, which costs 100 units: answers to your network cost 9901, and \
                     the limit is 10000; the sum falls by 2 a second";
        assert_eq!(bill.pay(), Err(words.to_owned()));
        clock.micros.store(500_000, Ordering::Relaxed);
        assert_eq!((bill.pay(), bill.pay().is_ok()), (Ok(()), false));
        // Another session of the subnet has the same sum, and an answer that has begun is finished.
        assert!(accounts.meter("192.0.2.77".parse().unwrap(), false).bill(LIMITS).unwrap().pay().is_err());
        assert_eq!(meter.bill(CostLimits { soft: 0, hard: 0 }).unwrap().pay(), Ok(()));
        // One that did not come.
        let before = (meter.sum(), meter.totals()[3]);
        bill.take_back();
        assert_eq!((meter.sum(), meter.totals()[3]), (before.0 - FETCHED_BLOCK, before.1 - 100));
        assert!(accounts.meter("127.0.0.1".parse().unwrap(), true).bill(LIMITS).is_none());
    }

    #[test]
    fn subnets_have_one_sum() {
        let of = |text: &str| subnet(text.parse().unwrap());
        assert_eq!(of("192.0.2.1"), of("192.0.2.255"));
        assert_eq!(of("192.0.2.1"), of("::ffff:192.0.2.7"));
        assert_ne!(of("192.0.2.1"), of("192.0.3.1"));
        assert_eq!(of("2001:db8:1:2::3"), of("2001:db8:1:ffff::"));
        assert_ne!(of("2001:db8:1::"), of("2001:db8:2::"));
    }

    /// limit: ACCOUNTS_MAX at
    /// limit: ACCOUNTS_MAX above
    #[test]
    fn the_number_of_sums_is_bounded() {
        let (clock, accounts) = accounts();
        let address = |index: usize| IpAddr::V4((u32::try_from(index).unwrap() << 8).into());
        let busy = accounts.meter(address(0), false);
        for index in 1..ACCOUNTS_MAX {
            accounts.meter(address(index), false);
        }
        let last = accounts.meter(address(ACCOUNTS_MAX - 1), false);
        assert_eq!(last.sum(), 2 * CONNECTION, "each has its own");
        // One more shares the sum of all others, until some have fallen to nothing.
        accounts.meter(address(ACCOUNTS_MAX), false);
        assert_eq!(accounts.meter(address(ACCOUNTS_MAX + 1), false).sum(), 2 * CONNECTION);
        assert_eq!(lock(&accounts.of_subnets).len(), ACCOUNTS_MAX);
        clock.micros.store(60_000_000, Ordering::Relaxed);
        assert_eq!(accounts.meter(address(ACCOUNTS_MAX), false).sum(), CONNECTION);
        assert_eq!(lock(&accounts.of_subnets).len(), 3, "those with a session, and the new one");
        drop((busy, last));
    }
}
