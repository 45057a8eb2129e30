//! Which requests reach the page: any web site can send requests to a port of this machine, so each request must show
//! that it comes from the page itself.
//!
//! Input: the method, the path and the headers of a request. Output: nothing, or the refusal.
//!
//! * `Host` must be a name of this machine, an address that the server listens on, or one of `-pagehost`: so a web
//!   site cannot make its own name point here (DNS rebinding). A server on all addresses is opened under any of them:
//!   an address is no name that could point elsewhere.
//! * `Sec-Fetch-Site`, which browsers set, must say that the request comes from the page; only the page itself may be
//!   opened from elsewhere, by a link.
//! * `Origin` must be the page's own where a request changes something.

use crate::reply::refuse;
use axum::http::header::{HOST, HeaderMap, HeaderName, ORIGIN};
use axum::http::{Method, StatusCode, Uri};
use axum::response::Response;
use std::net::{IpAddr, SocketAddr};

const SEC_FETCH_SITE: HeaderName = HeaderName::from_static("sec-fetch-site");
const SEC_FETCH_MODE: HeaderName = HeaderName::from_static("sec-fetch-mode");
const SEC_FETCH_DEST: HeaderName = HeaderName::from_static("sec-fetch-dest");

/// The names under which the page may be opened.
#[derive(Clone, Debug, Default)]
pub(crate) struct Names {
    /// `-pagehost`, in lower case.
    pub(crate) hosts: Vec<String>,
    /// The addresses that the server listens on.
    pub(crate) addresses: Vec<SocketAddr>,
}

impl Names {
    /// Checks a request. Returns whether its name is one of this machine.
    pub(crate) fn check(&self, method: &Method, uri: &Uri, headers: &HeaderMap) -> Result<bool, Box<Response>> {
        let forbidden = |words: String| Box::new(refuse(StatusCode::FORBIDDEN, words));
        let host = header(headers, &HOST).or_else(|| uri.authority().map(|authority| authority.as_str()));
        let Some(host) = host else {
            return Err(Box::new(refuse(StatusCode::BAD_REQUEST, "The request has no Host header.")));
        };
        let name = without_port(host).to_ascii_lowercase();
        let is_local = is_local(&name);
        if !is_local && !self.knows(&name) {
            return Err(forbidden(format!(
                "The page is not served under the name {name:?}. If this is a name of this node, start it with -pagehost={name}."
            )));
        }
        let is_opened = header(headers, &SEC_FETCH_MODE) == Some("navigate")
            && header(headers, &SEC_FETCH_DEST) == Some("document")
            && uri.path() == "/"
            && method == Method::GET;
        let site = header(headers, &SEC_FETCH_SITE);
        if !is_opened && !matches!(site, None | Some("same-origin" | "none")) {
            return Err(forbidden("The request comes from another web site.".to_owned()));
        }
        let origin = header(headers, &ORIGIN);
        let is_ours = origin.is_some_and(|origin| origin.split_once("://").is_some_and(|(_, of)| of == host));
        let changes = !matches!(*method, Method::GET | Method::HEAD);
        // A browser always sends the origin of such a request; a program that logs in by itself sends none.
        let is_program = origin.is_none() && site.is_none();
        if origin.is_some() && !is_ours || changes && !is_ours && !is_program {
            return Err(forbidden("The request comes from another web site.".to_owned()));
        }
        Ok(is_local)
    }

    fn knows(&self, name: &str) -> bool {
        let address: Option<IpAddr> = name.trim_matches(['[', ']']).parse().ok();
        self.hosts.iter().any(|host| host == name)
            || address
                .is_some_and(|address| self.addresses.iter().any(|of| of.ip() == address || of.ip().is_unspecified()))
    }
}

/// The value of a header; `None` if it is there twice.
pub(crate) fn header<'a>(headers: &'a HeaderMap, name: &HeaderName) -> Option<&'a str> {
    let mut values = headers.get_all(name).iter();
    let value = values.next()?;
    if values.next().is_some() { None } else { value.to_str().ok() }
}

fn without_port(host: &str) -> &str {
    match host.rsplit_once(':') {
        // An IPv6 address without a port ends with its bracket.
        Some((name, port)) if port.bytes().all(|byte| byte.is_ascii_digit()) && !name.ends_with(':') => name,
        _ => host,
    }
}

/// Whether a name always means this machine.
fn is_local(name: &str) -> bool {
    let address: Option<IpAddr> = name.trim_matches(['[', ']']).parse().ok();
    name == "localhost" || address.is_some_and(|address| address.to_canonical().is_loopback())
}

#[cfg(test)]
mod tests {
    use super::*;
    use axum::http::HeaderValue;

    fn check(method: &Method, path: &str, lines: &[(&str, &str)]) -> Result<bool, StatusCode> {
        check_at([192, 0, 2, 7], method, path, lines)
    }

    fn check_at(ip: [u8; 4], method: &Method, path: &str, lines: &[(&str, &str)]) -> Result<bool, StatusCode> {
        let mut headers = HeaderMap::new();
        for (name, value) in lines {
            headers.append(HeaderName::from_bytes(name.as_bytes()).unwrap(), HeaderValue::from_str(value).unwrap());
        }
        let names = Names { hosts: vec!["node.example".to_owned()], addresses: vec![SocketAddr::from((ip, 8380))] };
        names.check(method, &path.parse().unwrap(), &headers).map_err(|response| response.status())
    }

    #[test]
    fn only_names_of_the_node_are_served() {
        let (ok, forbidden) = (Ok(true), Err(StatusCode::FORBIDDEN));
        for (host, expected) in [
            ("127.0.0.1:8380", ok),
            ("127.9.9.9", ok),
            ("localhost:1", ok),
            ("LOCALHOST", ok),
            ("[::1]:8380", ok),
            ("[::1]", ok),
            ("node.example:8380", Ok(false)),
            ("192.0.2.7:8380", Ok(false)),
            ("192.0.2.8", forbidden),
            ("evil.example", forbidden),
            ("localhost.evil.example", forbidden),
            ("127.0.0.1.evil.example:8380", forbidden),
            ("", forbidden),
        ] {
            assert_eq!(check(&Method::GET, "/", &[("host", host)]), expected, "{host}");
        }
        assert_eq!(check(&Method::GET, "/", &[]), Err(StatusCode::BAD_REQUEST));
        let twice = [("host", "localhost"), ("host", "evil.example")];
        assert_eq!(check(&Method::GET, "/", &twice), Err(StatusCode::BAD_REQUEST));
    }

    #[test]
    fn a_server_on_all_addresses_is_opened_under_any_address() {
        let at_all = |host| check_at([0; 4], &Method::GET, "/", &[("host", host)]);
        for host in ["192.0.2.8:8380", "192.0.2.8", "[2001:db8::1]:8380"] {
            assert_eq!(at_all(host), Ok(false), "{host}");
        }
        assert_eq!(at_all("127.0.0.1:8380"), Ok(true));
        for host in ["evil.example:8380", "192.0.2.8.evil.example", "192.0.2.8x", ""] {
            assert_eq!(at_all(host), Err(StatusCode::FORBIDDEN), "{host}");
        }
    }

    #[test]
    fn other_web_sites_are_refused() {
        let host = ("host", "localhost:8380");
        let refused = Err(StatusCode::FORBIDDEN);
        let get = |path, lines: &[(&str, &str)]| check(&Method::GET, path, &[&[host], lines].concat());
        assert_eq!(get("/api/session", &[("sec-fetch-site", "same-origin")]), Ok(true));
        assert_eq!(get("/api/session", &[("sec-fetch-site", "cross-site")]), refused);
        assert_eq!(get("/api/session", &[("sec-fetch-site", "same-site")]), refused);
        let link = [("sec-fetch-site", "cross-site"), ("sec-fetch-mode", "navigate"), ("sec-fetch-dest", "document")];
        assert_eq!(get("/", &link), Ok(true), "a link to the page");
        assert_eq!(get("/api/session", &link), refused);
        let frame = [("sec-fetch-site", "cross-site"), ("sec-fetch-mode", "navigate"), ("sec-fetch-dest", "iframe")];
        assert_eq!(get("/", &frame), refused);
        assert_eq!(get("/", &[("origin", "http://evil.example")]), refused);
        let post = |lines: &[(&str, &str)]| check(&Method::POST, "/api/call", &[&[host], lines].concat());
        let ours = ("origin", "http://localhost:8380");
        assert_eq!(post(&[ours, ("sec-fetch-site", "same-origin")]), Ok(true));
        assert_eq!(post(&[("origin", "http://localhost:8381")]), refused, "another port is another site");
        assert_eq!(post(&[("origin", "null")]), refused);
        assert_eq!(post(&[("sec-fetch-site", "same-origin")]), refused, "a browser without an origin");
        assert_eq!(post(&[]), Ok(true), "a program");
    }
}
