use super::*;
use tokio::io::duplex;
use tokio::runtime::Builder;

#[derive(Debug)]
struct Silent;

impl Log for Silent {
    fn is_on(&self) -> bool {
        true
    }

    fn debug(&self, _: &str) {}
}

fn socket() -> Arc<PubSocket> {
    PubSocket::new("tcp://test".to_owned(), 1000, Arc::new(Silent))
}

fn run<T>(body: impl Future<Output = T>) -> T {
    Builder::new_current_thread().enable_all().build().unwrap().block_on(body)
}

/// Lets the tasks of the connections work.
async fn settle() {
    for _ in 0..100 {
        tokio::task::yield_now().await;
    }
}

/// limit: SUBSCRIBERS_MAX at
/// limit: SUBSCRIBERS_MAX above
#[test]
fn further_subscribers_are_disconnected_until_another_leaves() {
    run(async {
        let socket = socket();
        let mut far = Vec::new();
        for _ in 0..SUBSCRIBERS_MAX {
            let (near, other) = duplex(1024);
            socket.spawn(near);
            far.push(other);
        }
        settle().await;
        assert_eq!(lock(&socket.subscribers).len(), SUBSCRIBERS_MAX);
        let (near, mut other) = duplex(1024);
        socket.spawn(near);
        assert_eq!(other.read(&mut [0; 8]).await.unwrap(), 0, "one too many");
        far.pop();
        settle().await;
        assert_eq!(lock(&socket.subscribers).len(), SUBSCRIBERS_MAX - 1);
        let (near, mut other) = duplex(1024);
        socket.spawn(near);
        assert_eq!(other.read(&mut [0; 64]).await.unwrap(), 64, "the greeting");
    });
}

#[test]
fn a_handshake_has_a_deadline() {
    run(async {
        let subscriber = Subscriber { session: Mutex::default(), outbox: Outbox::new(1) };
        let (near, _far) = duplex(1024);
        let end = subscriber.serve(near, Duration::from_millis(10)).await;
        assert!(matches!(end, End::Handshake), "{end}");
    });
}

/// A subscriber that sends pings and never reads must not make replies pile up.
#[test]
fn replies_do_not_pile_up() {
    run(async {
        let subscriber = Subscriber { session: Mutex::default(), outbox: Outbox::new(1) };
        let (near, mut far) = duplex(64);
        let pinging = async {
            let mut hello = greeting().to_vec();
            hello.extend_from_slice(b"\x04\x19\x05READY\x0bSocket-Type\0\0\0\x03SUB");
            far.write_all(&hello).await.unwrap();
            while far.write_all(b"\x04\x07\x04PING\0\0").await.is_ok() {}
        };
        let (end, ()) = tokio::join!(subscriber.serve(near, HANDSHAKE_TIME), async {
            tokio::time::timeout(Duration::from_secs(10), pinging).await.ok();
        });
        assert!(matches!(end, End::Replies), "{end}");
    });
}
