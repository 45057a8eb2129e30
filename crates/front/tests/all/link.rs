//! [`Link`]: a way to a server that can be cut, be silent, or end in the middle of an answer.
//!
//! Input: connections to a port that stays the same, and the address of the server at the moment. Output: the bytes of
//! both, unless the link is told otherwise.

use std::io::{Read, Write};
use std::net::{Ipv4Addr, Shutdown, SocketAddr, TcpListener, TcpStream};
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::thread;
use std::time::Duration;

#[derive(Debug)]
struct Shared {
    target: Mutex<Option<SocketAddr>>,
    /// Held while a connection is opened, so that none stays when the link leads elsewhere.
    open: Mutex<Vec<TcpStream>>,
    /// Nothing passes from the server, and the connections stay.
    is_silent: AtomicBool,
    /// Bytes of an answer to a question after which its connection is cut; 0: it is whole.
    cut_at: AtomicUsize,
    /// What it has cut.
    cuts: AtomicUsize,
}

#[derive(Clone, Debug)]
pub struct Link {
    pub port: u16,
    shared: Arc<Shared>,
}

impl Link {
    /// A link to nothing: connections are closed.
    pub fn new() -> Link {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).unwrap();
        let port = listener.local_addr().unwrap().port();
        let shared = Arc::new(Shared {
            target: Mutex::default(),
            open: Mutex::default(),
            is_silent: AtomicBool::new(false),
            cut_at: AtomicUsize::new(0),
            cuts: AtomicUsize::new(0),
        });
        let of_thread = Arc::clone(&shared);
        // It ends with the process.
        thread::spawn(move || {
            for client in listener.incoming().map_while(Result::ok) {
                let mut open = of_thread.open.lock().unwrap();
                let target = *of_thread.target.lock().unwrap();
                if let Some(server) = target.and_then(|target| TcpStream::connect(target).ok()) {
                    open.push(client.try_clone().unwrap());
                    open.push(server.try_clone().unwrap());
                    drop(open);
                    pass(&of_thread, client, server);
                }
            }
        });
        Link { port, shared }
    }

    pub fn address(&self) -> String {
        format!("127.0.0.1:{}", self.port)
    }

    /// Leads to this server from now on, or to nothing. Open connections are cut.
    pub fn lead_to(&self, target: Option<SocketAddr>) {
        let mut open = self.shared.open.lock().unwrap();
        *self.shared.target.lock().unwrap() = target;
        for stream in open.drain(..) {
            let _ = stream.shutdown(Shutdown::Both);
        }
    }

    pub fn set_silent(&self, is_silent: bool) {
        self.shared.is_silent.store(is_silent, Ordering::SeqCst);
    }

    /// Every answer to a question ends after so many bytes.
    pub fn cut_answers_at(&self, bytes: usize) {
        self.shared.cut_at.store(bytes, Ordering::SeqCst);
    }

    pub fn cuts(&self) -> usize {
        self.shared.cuts.load(Ordering::SeqCst)
    }
}

fn pass(shared: &Arc<Shared>, client: TcpStream, server: TcpStream) {
    let is_stream = Arc::new(AtomicBool::new(false));
    for is_answer in [false, true] {
        let (shared, is_stream) = (Arc::clone(shared), Arc::clone(&is_stream));
        let ends = if is_answer { (&server, &client) } else { (&client, &server) };
        let (mut from, mut to) = (ends.0.try_clone().unwrap(), ends.1.try_clone().unwrap());
        thread::spawn(move || {
            let mut buffer = [0; 16_384];
            while let Ok(count) = from.read(&mut buffer) {
                if count == 0 {
                    break;
                }
                let bytes = &buffer[..count];
                if !is_answer && bytes.starts_with(b"GET") {
                    is_stream.store(true, Ordering::SeqCst);
                }
                while is_answer && shared.is_silent.load(Ordering::SeqCst) {
                    thread::sleep(Duration::from_millis(5));
                }
                let cut_at = shared.cut_at.load(Ordering::SeqCst);
                if is_answer && cut_at > 0 && !is_stream.load(Ordering::SeqCst) {
                    let _ = to.write_all(&bytes[..cut_at.min(count)]);
                    shared.cuts.fetch_add(1, Ordering::SeqCst);
                    break;
                }
                if to.write_all(bytes).is_err() {
                    break;
                }
            }
            let _ = (from.shutdown(Shutdown::Both), to.shutdown(Shutdown::Both));
        });
    }
}
