//! [`Route`]: the way to one node; HTTP/1.1 over TCP, or over TLS.
//!
//! Input: an address, the token, trusted certificates. Output: connections, and the answers of requests. A
//! [`NodeFault`] says why there is none, in a sentence without the node's name, and whether trying again may help.

use super::address::NodeAddress;
use crate::limits::{ANSWER_SIZE_MAX, REASON_SIZE_MAX};
use crate::timing::CONNECT_WAIT_MAX;
use crate::wire::reason as plain;
use bytes::Bytes;
use http_body_util::{BodyExt, Full, Limited};
use hyper::body::Incoming;
use hyper::client::conn::http1::{SendRequest, handshake};
use hyper::header::{AUTHORIZATION, CONTENT_TYPE, HOST, HeaderValue};
use hyper::{Method, Request, Response, StatusCode};
use hyper_util::rt::TokioIo;
use lydian_stdx::Current;
use std::fmt;
use std::fmt::Display;
use std::sync::Arc;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::TcpStream;
use tokio::time::timeout;
use tokio_rustls::TlsConnector;
use tokio_rustls::rustls::crypto::ring::default_provider;
use tokio_rustls::rustls::pki_types::pem::PemObject;
use tokio_rustls::rustls::pki_types::{CertificateDer, ServerName};
use tokio_rustls::rustls::{ClientConfig, RootCertStore};

/// Requests of a connection, one after another.
pub(crate) type Sender = SendRequest<Full<Bytes>>;

/// Why a node gave no answer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct NodeFault {
    pub(crate) reason: String,
    /// Whether the settings are wrong: another chain, a wrong token.
    pub(crate) is_final: bool,
}

impl NodeFault {
    pub(crate) fn passing(reason: impl Display) -> NodeFault {
        NodeFault { reason: plain(&reason.to_string()), is_final: false }
    }

    pub(crate) fn lasting(reason: impl Display) -> NodeFault {
        NodeFault { reason: plain(&reason.to_string()), is_final: true }
    }
}

impl Display for NodeFault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.reason)
    }
}

/// Reads the certificates that nodes may have.
pub(crate) fn trusted(pem: &[u8]) -> Result<ClientConfig, String> {
    let mut roots = RootCertStore::empty();
    for certificate in CertificateDer::pem_slice_iter(pem) {
        let added = certificate.map_err(|error| error.to_string())?;
        roots.add(added).map_err(|error| error.to_string())?;
    }
    if roots.is_empty() {
        return Err("there is no certificate in it".to_owned());
    }
    let builder = ClientConfig::builder_with_provider(Arc::new(default_provider()));
    let builder = builder.with_safe_default_protocol_versions().map_err(|error| error.to_string())?;
    Ok(builder.with_root_certificates(roots).with_no_client_auth())
}

/// How to reach a node.
pub(crate) struct Route {
    pub(crate) address: NodeAddress,
    tls: Option<(Current<ClientConfig>, ServerName<'static>)>,
    authorization: Option<HeaderValue>,
}

/// Shows no token.
impl fmt::Debug for Route {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Route").field("address", &self.address).finish_non_exhaustive()
    }
}

impl Route {
    /// `None` if the address needs TLS and there is no configuration of it, or the token is no header.
    pub(crate) fn new(address: NodeAddress, tls: Option<&Current<ClientConfig>>, token: Option<&str>) -> Option<Route> {
        let tls = match address.is_tls() {
            true => Some((tls?.clone(), address.server_name()?)),
            false => None,
        };
        let authorization = match token {
            Some(token) => {
                let mut value = HeaderValue::from_str(&format!("Bearer {token}")).ok()?;
                value.set_sensitive(true);
                Some(value)
            }
            None => None,
        };
        Some(Route { address, tls, authorization })
    }

    pub(crate) async fn connect(&self) -> Result<Sender, NodeFault> {
        let connect = async {
            let stream = TcpStream::connect((self.address.host.as_str(), self.address.port)).await;
            let stream = stream.map_err(|error| NodeFault::passing(format!("cannot connect: {error}")))?;
            stream.set_nodelay(true).map_err(NodeFault::passing)?;
            match &self.tls {
                Some((trusted, name)) => {
                    let stream = TlsConnector::from(trusted.get()).connect(name.clone(), stream).await;
                    over(stream.map_err(|error| NodeFault::passing(format!("TLS fails: {error}")))?).await
                }
                None => {
                    // A name that is one of this machine may lead elsewhere.
                    let address = stream.peer_addr().map_err(NodeFault::passing)?;
                    if !address.ip().to_canonical().is_loopback() {
                        return Err(NodeFault::passing(format!(
                            "{address} is not on this machine, and needs https://"
                        )));
                    }
                    over(stream).await
                }
            }
        };
        timeout(CONNECT_WAIT_MAX, connect).await.map_err(|_| NodeFault::passing("no connection in time"))?
    }

    /// Sends a request, and returns the head of the answer if its status is 200.
    pub(crate) async fn send(
        &self,
        sender: &mut Sender,
        method: Method,
        path: &str,
        body: Bytes,
        content: &'static str,
    ) -> Result<Response<Incoming>, Sent> {
        let mut request = Request::new(Full::new(body));
        *request.method_mut() = method;
        *request.uri_mut() = path.parse().map_err(|_| Sent::Fault(NodeFault::passing("the path is no URI")))?;
        let headers = request.headers_mut();
        headers.insert(CONTENT_TYPE, HeaderValue::from_static(content));
        if let Ok(host) = HeaderValue::from_str(&self.address.authority()) {
            headers.insert(HOST, host);
        }
        headers.extend(self.authorization.clone().map(|value| (AUTHORIZATION, value)));
        let response = sender.send_request(request).await.map_err(|error| Sent::broken(&error))?;
        let status = response.status();
        if status == StatusCode::OK {
            return Ok(response);
        }
        let body = Limited::new(response.into_body(), REASON_SIZE_MAX).collect().await;
        let text = body.map(|body| String::from_utf8_lossy(&body.to_bytes()).into_owned()).unwrap_or_default();
        let reason = match text.lines().next().filter(|line| !line.is_empty()) {
            Some(line) => format!("{} ({})", plain(line).trim_end_matches('.'), status.as_u16()),
            None => format!("the node answers with the status {status}"),
        };
        let is_final = matches!(status, StatusCode::UNAUTHORIZED | StatusCode::FORBIDDEN | StatusCode::NOT_FOUND);
        Err(Sent::Fault(NodeFault { reason, is_final }))
    }

    /// The whole answer of a request.
    pub(crate) async fn exchange(
        &self,
        sender: &mut Sender,
        path: &str,
        body: Bytes,
        content: &'static str,
    ) -> Result<Bytes, Sent> {
        let response = self.send(sender, Method::POST, path, body, content).await?;
        match Limited::new(response.into_body(), ANSWER_SIZE_MAX).collect().await {
            Ok(body) => Ok(body.to_bytes()),
            Err(error) => Err(Sent::broken(error.as_ref())),
        }
    }
}

/// Why a request has no answer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Sent {
    /// The connection is of no use any more; on another one, the request may succeed.
    Broken(NodeFault),
    Fault(NodeFault),
}

impl Sent {
    fn broken(error: &(dyn std::error::Error + 'static)) -> Sent {
        Sent::Broken(NodeFault::passing(format!("the connection broke: {error}")))
    }

    pub(crate) fn into_fault(self) -> NodeFault {
        match self {
            Sent::Broken(fault) | Sent::Fault(fault) => fault,
        }
    }
}

async fn over(stream: impl AsyncRead + AsyncWrite + Unpin + Send + 'static) -> Result<Sender, NodeFault> {
    let (sender, connection) = handshake(TokioIo::new(stream)).await.map_err(NodeFault::passing)?;
    // It ends when the sender is dropped, or with the runtime; its error is that of the request.
    tokio::spawn(async move { drop(connection.await) });
    Ok(sender)
}
