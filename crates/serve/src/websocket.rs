//! Protocols of lines over websockets (RFC 6455): a message is a line, both ways.
//!
//! Input: the bytes of a connection that begins with an HTTP request. Output: lines for a [`Lined`] protocol, and its
//! lines as messages. A web page may only connect if its origin is allowed, since every page that a user opens reaches
//! the servers of this machine; clients that are no web pages send no origin.
//!
//! Cost: 96 KiB for a connection. Bytes of messages that are received count in the budget of lines; a long line of the
//! protocol is sent in frames of at most [`FRAME_SIZE`], as fast as the client reads it.

use crate::budget::{Budget, Room};
use crate::connection::Connection;
use crate::origin::Origin;
use crate::server::Stopped;
use crate::tls::HANDSHAKE_MAX;
use axum::http::header::ORIGIN;
use futures_util::{SinkExt, StreamExt};
use lydian_stdx::lock;
use std::future::pending;
use std::io;
use std::pin::Pin;
use std::sync::{Arc, Mutex};
use std::task::{Context, Poll};
use tokio::io::{
    AsyncBufReadExt, AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt, BufReader, DuplexStream, ReadBuf, ReadHalf,
    WriteHalf, duplex, split,
};
use tokio::time::timeout;
use tokio_tungstenite::tungstenite::handshake::server::{ErrorResponse, Request, Response};
use tokio_tungstenite::tungstenite::protocol::WebSocketConfig;
use tokio_tungstenite::tungstenite::protocol::frame::Frame;
use tokio_tungstenite::tungstenite::protocol::frame::coding::{Data, OpCode};
use tokio_tungstenite::tungstenite::{Error, Message};
use tokio_tungstenite::{WebSocketStream, accept_hdr_async_with_config};

/// Bytes of a line that are sent in one frame.
const FRAME_SIZE: usize = 16 << 10;

/// Bytes between the protocol and the websocket, in each direction.
const BETWEEN: usize = 32 << 10;

/// A protocol of lines: [`crate::Protocol`] on a stream that may be that of a websocket.
pub trait Lined: Send + Sync {
    /// Serves a connection until the client leaves. After `stopped`, finishes the answers in progress and returns.
    fn run<S>(&self, stream: S, connection: &Arc<Connection>, stopped: Stopped) -> impl Future<Output = ()> + Send
    where
        S: AsyncRead + AsyncWrite + Send + Unpin;
}

/// How websockets are served.
#[derive(Debug)]
pub struct Websocket {
    /// Maximum bytes of a message.
    pub message_max: usize,
    /// The memory of messages that are being received.
    pub lines: Arc<Budget>,
    /// The web pages that may connect; `None` for none.
    pub origin: Option<Origin>,
}

impl Websocket {
    /// Serves a protocol of lines until either side ends the connection.
    pub async fn serve<P, S>(&self, protocol: &P, stream: S, connection: &Arc<Connection>, stopped: Stopped)
    where
        P: Lined,
        S: AsyncRead + AsyncWrite + Send + Unpin,
    {
        let received = Arc::new(Mutex::new(Received { bytes: 0, room: self.lines.room() }));
        let stream = Metered { stream, received: Arc::clone(&received) };
        let Ok(Ok(socket)) = timeout(HANDSHAKE_MAX, self.accept(stream)).await else { return };
        let (mut sink, mut source) = socket.split();
        let (ours, theirs) = duplex(BETWEEN);
        let (lines, mut messages): (ReadHalf<DuplexStream>, WriteHalf<DuplexStream>) = split(ours);
        let outgoing = async {
            // An error means that the client is gone: the protocol finds out when it reads.
            let _ = send_lines(BufReader::with_capacity(FRAME_SIZE, lines), &mut sink).await;
            let _ = sink.close().await;
        };
        let incoming = async {
            while let Some(Ok(message)) = source.next().await {
                let mut line = match message {
                    Message::Text(text) => text.as_bytes().to_vec(),
                    Message::Binary(bytes) => bytes.to_vec(),
                    _ => {
                        lock(&received).forget();
                        continue;
                    }
                };
                // In JSON, a line end is a space.
                line.iter_mut().filter(|byte| **byte == b'\n').for_each(|byte| *byte = b' ');
                line.push(b'\n');
                if messages.write_all(&line).await.is_err() {
                    break;
                }
                lock(&received).forget();
            }
            let _ = messages.shutdown().await;
            pending::<()>().await;
        };
        tokio::select! {
            _ = async { tokio::join!(protocol.run(theirs, connection, stopped), outgoing) } => {}
            () = incoming => {}
        }
    }

    async fn accept<S: AsyncRead + AsyncWrite + Unpin>(&self, stream: S) -> Result<WebSocketStream<S>, Error> {
        let config = WebSocketConfig::default()
            .read_buffer_size(FRAME_SIZE / 2)
            .write_buffer_size(0)
            .max_message_size(Some(self.message_max))
            .max_frame_size(Some(self.message_max));
        #[allow(clippy::result_large_err, reason = "the type is that of the library")]
        let check = |request: &Request, response: Response| match self.is_allowed(request) {
            true => Ok(response),
            false => {
                let mut refusal = ErrorResponse::new(Some("this origin is not allowed".to_owned()));
                *refusal.status_mut() = axum::http::StatusCode::FORBIDDEN;
                Err(refusal)
            }
        };
        accept_hdr_async_with_config(stream, check, Some(config)).await
    }

    fn is_allowed(&self, request: &Request) -> bool {
        match (request.headers().get(ORIGIN), &self.origin) {
            (None, _) => true,
            (Some(_), None) => false,
            (Some(origin), Some(allowed)) => allowed.has(origin),
        }
    }
}

/// Sends each line as a message. A line that is longer than a frame is never in memory as a whole.
async fn send_lines(
    mut lines: impl AsyncBufReadExt + Unpin,
    sink: &mut (impl SinkExt<Message, Error = Error> + Unpin),
) -> Result<(), Error> {
    let mut is_first = true;
    loop {
        let part = lines.fill_buf().await.map_err(Error::Io)?;
        if part.is_empty() {
            return Ok(());
        }
        let end = part.iter().position(|byte| *byte == b'\n');
        let data = part[..end.unwrap_or(part.len())].to_vec();
        lines.consume(data.len() + usize::from(end.is_some()));
        let kind = if is_first { Data::Text } else { Data::Continue };
        is_first = end.is_some();
        sink.send(Message::Frame(Frame::message(data, OpCode::Data(kind), end.is_some()))).await?;
    }
}

/// The bytes that were received since the last whole message.
#[derive(Debug)]
struct Received {
    bytes: usize,
    room: Room,
}

impl Received {
    fn forget(&mut self) {
        self.bytes = 0;
        self.room.shrink(0);
    }
}

/// A stream whose reads fail when too many long messages are being received at once.
#[derive(Debug)]
struct Metered<S> {
    stream: S,
    received: Arc<Mutex<Received>>,
}

impl<S: AsyncRead + Unpin> AsyncRead for Metered<S> {
    fn poll_read(mut self: Pin<&mut Self>, context: &mut Context<'_>, buf: &mut ReadBuf<'_>) -> Poll<io::Result<()>> {
        let before = buf.filled().len();
        let poll = Pin::new(&mut self.stream).poll_read(context, buf);
        let mut received = lock(&self.received);
        received.bytes += buf.filled().len() - before;
        let bytes = received.bytes;
        match received.room.try_grow(bytes) {
            true => poll,
            false => Poll::Ready(Err(io::Error::other("too many long messages are being received"))),
        }
    }
}

impl<S: AsyncWrite + Unpin> AsyncWrite for Metered<S> {
    fn poll_write(mut self: Pin<&mut Self>, context: &mut Context<'_>, buf: &[u8]) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.stream).poll_write(context, buf)
    }

    fn poll_flush(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_flush(context)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_shutdown(context)
    }
}

/// The first byte of a stream, and the stream with that byte still in it. `None` at its end.
pub async fn first_byte<S>(stream: S) -> Option<(u8, impl AsyncRead + AsyncWrite + Send + Unpin)>
where
    S: AsyncRead + AsyncWrite + Send + Unpin,
{
    let (mut reader, writer) = split(stream);
    let first = reader.read_u8().await.ok()?;
    Some((first, tokio::io::join(io::Cursor::new([first]).chain(reader), writer)))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::connection::Client;
    use crate::event::Silent;
    use crate::places::Places;
    use axum::http::HeaderValue;
    use std::net::SocketAddr;
    use tokio::sync::watch;
    use tokio_tungstenite::client_async;
    use tokio_tungstenite::tungstenite::client::IntoClientRequest;

    /// Answers each line with itself, eight times.
    struct EightTimes;

    impl Lined for EightTimes {
        async fn run<S>(&self, stream: S, _: &Arc<Connection>, _: Stopped)
        where
            S: AsyncRead + AsyncWrite + Send + Unpin,
        {
            let (reader, mut writer) = split(stream);
            let mut lines = BufReader::new(reader).lines();
            while let Ok(Some(line)) = lines.next_line().await {
                if line == "end" || writer.write_all((line.repeat(8) + "\n").as_bytes()).await.is_err() {
                    return;
                }
            }
        }
    }

    fn websocket(origin: Option<&'static str>, budget: usize) -> Websocket {
        let origin = origin.and_then(Origin::parse);
        Websocket { message_max: 200_000, lines: Budget::new(budget), origin }
    }

    /// Connects a client of the library, with an origin, and runs `talk` with it.
    async fn with_client<T>(
        websocket: &Websocket,
        origin: Option<&'static str>,
        talk: impl AsyncFnOnce(WebSocketStream<DuplexStream>) -> T,
    ) -> Result<T, Error> {
        let places = Arc::new(Places::new(Arc::new(Silent)));
        let place = places.take(Client::direct(SocketAddr::from(([127, 0, 0, 1], 5)), true)).unwrap();
        let (client, server) = duplex(1 << 10);
        let (_stop, stopped) = watch::channel(false);
        let mut request = "ws://localhost/".into_client_request().unwrap();
        if let Some(origin) = origin {
            request.headers_mut().insert(ORIGIN, HeaderValue::from_static(origin));
        }
        let talking = async {
            let (socket, _) = client_async(request, client).await?;
            Ok(talk(socket).await)
        };
        let serving = websocket.serve(&EightTimes, server, &place.connection, Stopped::new(stopped));
        tokio::join!(talking, serving).0
    }

    #[tokio::test]
    async fn messages_are_lines() {
        let websocket = websocket(None, 1 << 20);
        let talk = async |mut socket: WebSocketStream<DuplexStream>| {
            for text in ["one".to_owned(), "t\nwo".to_owned(), "x".repeat(100_000)] {
                socket.send(Message::text(text.clone())).await.unwrap();
                let answer = socket.next().await.unwrap().unwrap().into_text().unwrap();
                assert_eq!(answer.as_str(), text.replace('\n', " ").repeat(8));
            }
            socket.send(Message::Ping("p".into())).await.unwrap();
            assert!(socket.next().await.unwrap().unwrap().is_pong());
            // The protocol ends the connection.
            socket.send(Message::text("end")).await.unwrap();
            assert!(matches!(socket.next().await, Some(Ok(Message::Close(_))) | None));
        };
        with_client(&websocket, None, talk).await.unwrap();
        let talk = async |mut socket: WebSocketStream<DuplexStream>| {
            socket.send(Message::binary(&b"bytes"[..])).await.unwrap();
            assert_eq!(socket.next().await.unwrap().unwrap().into_text().unwrap().as_str(), "bytes".repeat(8));
            // Pings do not add up to a message that is too long.
            for _ in 0..3_000 {
                socket.send(Message::Ping(vec![b'p'; 120].into())).await.unwrap();
                assert!(socket.next().await.unwrap().unwrap().is_pong());
            }
        };
        with_client(&self::websocket(None, 100_000), None, talk).await.unwrap();
        with_client(&websocket, None, async |socket: WebSocketStream<DuplexStream>| drop(socket)).await.unwrap();
    }

    #[tokio::test]
    async fn messages_have_a_limit_alone_and_together() {
        for (budget, size, is_answered) in
            [(1 << 20, 200_000, true), (1 << 20, 200_001, false), (250_000, 180_000, true), (100_000, 180_000, false)]
        {
            let websocket = websocket(None, budget);
            // Others hold part of the smaller budgets.
            let mut others = websocket.lines.room();
            assert!(others.try_grow(50_000));
            let talk = async |mut socket: WebSocketStream<DuplexStream>| {
                let sent = socket.send(Message::text("x".repeat(size))).await;
                sent.is_ok() && matches!(socket.next().await, Some(Ok(Message::Text(_))))
            };
            assert_eq!(with_client(&websocket, None, talk).await.unwrap(), is_answered, "{budget} {size}");
        }
    }

    #[tokio::test]
    async fn pages_of_other_sites_are_refused() {
        for (allowed, origin, is_served) in [
            (None, None, true),
            (None, Some("https://a.example"), false),
            (Some("https://a.example"), Some("https://a.example"), true),
            (Some("https://a.example"), Some("https://b.example"), false),
            (Some("*"), Some("https://b.example"), true),
        ] {
            let websocket = websocket(allowed, 1 << 20);
            let served = with_client(&websocket, origin, async |socket: WebSocketStream<DuplexStream>| drop(socket));
            assert_eq!(served.await.is_ok(), is_served, "{allowed:?} {origin:?}");
        }
    }

    #[tokio::test]
    async fn the_first_byte_stays() {
        let (mut client, server) = duplex(10);
        client.write_all(b"abc").await.unwrap();
        drop(client);
        let (first, mut stream) = first_byte(server).await.unwrap();
        let mut rest = String::new();
        stream.read_to_string(&mut rest).await.unwrap();
        assert_eq!((first, rest.as_str()), (b'a', "abc"));
        let (client, server) = duplex(1);
        drop(client);
        assert!(first_byte(server).await.is_none());
    }
}
