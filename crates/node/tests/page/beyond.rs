//! The page on an address beyond this machine: always with TLS and a login, in a browser that knows the certificate.
//!
//! The address is one of this machine's own interfaces; without one, the tests say that they are not run.

use crate::peers::{confirm, wait_for_row};
use crate::server::Server;
use crate::stage::{ASKS, PATIENCE, ask_for_link, expect_no_problems, go, script, wait_for_login};
use lydian_browser::{Browser, Reach, find};
use lydian_hash::sha256;
use lydian_oracle::free_port;
use lydian_primitives::to_hex;
use lydian_stdx::{base64, decode_base64};
use serde_json::json;
use std::io::{ErrorKind, Read, Write};
use std::net::{IpAddr, TcpStream};
use std::time::Instant;

/// An IPv4 address of this machine that is not a loopback address.
fn own_address() -> Option<IpAddr> {
    let interfaces = if_addrs::get_if_addrs().unwrap_or_default();
    let found = interfaces.iter().map(if_addrs::Interface::ip).find(|ip| ip.is_ipv4() && !ip.is_loopback());
    if found.is_none() {
        // Not by a macro: the message must be seen in a test that passes.
        let _ = writeln!(std::io::stderr(), "NOT RUN: this machine has no IPv4 address beside loopback");
    }
    found
}

/// The first element of a DER encoding, its content, and what follows it.
fn element(bytes: &[u8]) -> (&[u8], &[u8], &[u8]) {
    let (head, size) = match usize::from(bytes[1]) {
        size @ 0..0x80 => (2, size),
        count => {
            let count = count - 0x80;
            (2 + count, bytes[2..2 + count].iter().fold(0, |size, byte| size << 8 | usize::from(*byte)))
        }
    };
    (&bytes[..head + size], &bytes[head..head + size], &bytes[head + size..])
}

/// The SHA-256 of the `SubjectPublicKeyInfo` of a certificate, in base 64, as Chromium takes it (RFC 5280, 4.1).
fn key_hash(pem: &str) -> String {
    let lines: String = pem.lines().filter(|line| !line.starts_with("-----")).collect();
    let certificate = decode_base64(lines.as_bytes()).unwrap();
    let (_, signed, _) = element(element(&certificate).1);
    // Version, serial number, algorithm, issuer, validity and subject come first.
    let rest = (0..6).fold(signed, |rest, _| element(rest).2);
    base64(&sha256(element(rest).0))
}

/// What a server sends to these bytes until it closes the connection.
fn answer(address: (IpAddr, u16), request: &[u8]) -> Vec<u8> {
    let mut stream = TcpStream::connect(address).unwrap();
    stream.set_read_timeout(Some(PATIENCE)).unwrap();
    stream.write_all(request).unwrap();
    let mut answer = Vec::new();
    match stream.read_to_end(&mut answer) {
        Ok(_) => {}
        // Bytes that the server did not read make the system reset the connection.
        Err(error) => assert_eq!(error.kind(), ErrorKind::ConnectionReset, "{error}"),
    }
    answer
}

/// The rules of a certificate are those of `openssl x509 -pubkey | openssl pkey -pubin -outform der | sha256sum`.
#[test]
fn the_hash_of_a_key_is_that_of_openssl() {
    const PEM: &str = "-----BEGIN CERTIFICATE-----
MIIBhjCCAS2gAwIBAgIUAmB6t3eeH0WgUYrpthIWnRX0WfQwCgYIKoZIzj0EAwIw
GTEXMBUGA1UEAwwObHlkaWFuLmV4YW1wbGUwHhcNMjYxMTI3MDIxNTAwWhcNMzYx
MTI0MDIxNTAwWjAZMRcwFQYDVQQDDA5seWRpYW4uZXhhbXBsZTBZMBMGByqGSM49
AgEGCCqGSM49AwEHA0IABFryVlHrQPXX1j0xdU3HNriPpCNEzwAiMRxX9dQ2MQHZ
9lmkwyIfoYBpuw4pSI+aF9mk2MURsS3Y2L/KPKoK0UCjUzBRMB0GA1UdDgQWBBS0
RxNzF9ON5G2h+4nblMUiOrEMnDAfBgNVHSMEGDAWgBS0RxNzF9ON5G2h+4nblMUi
OrEMnDAPBgNVHRMBAf8EBTADAQH/MAoGCCqGSM49BAMCA0cAMEQCIAZ1UPk7Eisb
GSomEnMEW9smxL96xHZQ0isOsRf1RXAiAiACTiKtX+EDVJJfo59fvGGEWTJgU9J1
wqw9kP/M2uNV+Q==
-----END CERTIFICATE-----";
    assert_eq!(key_hash(PEM), "U8qSNWFdY251/nJWmaixjwRi8RGqcKS2yzbgF9LSa8M=");
}

#[test]
fn beyond_this_machine_the_page_has_tls_and_a_login() {
    let test = "beyond_this_machine_the_page_has_tls_and_a_login";
    let (Some(address), Some(_)) = (own_address(), find().unwrap()) else { return };
    let [near, far] = [(); 2].map(|()| free_port().unwrap());
    let local = format!("-pagebind=127.0.0.1:{near}");
    let all = format!("-pagebind=0.0.0.0:{far}");
    // Reading is open on this machine only.
    let server = Server::lydian(test, &["-page", "-pageactions", "-pageopen", &local, &all]);
    let certificate = std::fs::read_to_string(server.folder.join("regtest/page/cert.pem")).unwrap();
    let key = key_hash(&certificate);
    let browser = Browser::start_with(Reach { names: &[], addresses: &[address], keys: &[&key] }).unwrap().unwrap();
    let page = browser.page().unwrap();
    page.set_size(1_440, 900, 1.0).unwrap();
    let origin = format!("https://{address}:{far}");
    page.open(&origin).unwrap();
    page.wait_until(ASKS, PATIENCE).unwrap();
    assert_eq!(page.evaluate("fetch('/api/live').then((answer) => answer.status)").unwrap(), 401);
    // What the login is not for is an error on the console.
    page.take_problems().unwrap();

    let output = ask_for_link(&server, &[&local, &all]);
    let link = String::from_utf8(output.stdout).unwrap();
    let secret = link.trim().strip_prefix(&format!("http://127.0.0.1:{near}/")).unwrap();
    page.open(&format!("{origin}/{secret}")).unwrap();
    wait_for_login(&page);
    let cookies = page.cookies().unwrap();
    let [cookie] = &cookies[..] else { panic!("{cookies:?}") };
    let flags = ["secure", "httpOnly", "sameSite"].map(|name| cookie[name].clone());
    assert_eq!(flags, [json!(true), json!(true), json!("Strict")]);
    assert_eq!(page.evaluate("isSecureContext && location.protocol").unwrap(), "https:");

    // The stream goes on, and an action is taken, whose `Origin` is this one.
    go(&page, "chain");
    page.evaluate("window.mark = 1").unwrap();
    let mined = server.result("generatetodescriptor", &json!([1, format!("raw({})", to_hex(&script(1)))]).to_string());
    let tip = &mined[0].as_str().unwrap()[56..];
    page.wait_until(&format!("document.querySelector('main').innerText.includes('{tip}')"), PATIENCE).unwrap();
    assert_eq!(page.evaluate("window.mark").unwrap(), 1, "without a reload");
    go(&page, "peers");
    page.click_text("button", "Ban an address…").unwrap();
    page.fill("dialog.confirm input", "203.0.113.7").unwrap();
    confirm(&page, "Banned 203.0.113.7");
    wait_for_row(&page, "Bans", "203.0.113.7/32", true);
    assert_eq!(server.result("listbanned", "[]")[0]["address"], "203.0.113.7/32");
    let calls: Vec<_> = page.requests().unwrap().into_iter().filter(|one| one.url.ends_with("/api/call")).collect();
    assert!(calls.iter().any(|call| (call.method.as_str(), call.status) == ("POST", 200)), "{calls:?}");
    assert!(calls.iter().all(|call| call.url.starts_with(&origin)), "{calls:?}");
    expect_no_problems(&page, test);

    // Without TLS there is nothing, and the connection ends.
    for request in ["GET / HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n", "POST /api/login HTTP/1.1\r\n\r\n", "{}\n"] {
        let began = Instant::now();
        let answer = answer((address, far), request.as_bytes());
        assert!(!answer.starts_with(b"HTTP/1.1 2"), "{}", String::from_utf8_lossy(&answer));
        assert!(began.elapsed() < PATIENCE, "{request}");
    }
}

/// Without a certificate that can be used there is no page, neither there nor without TLS; the node goes on, and its
/// log has the reason.
#[test]
fn without_a_certificate_there_is_no_page_beyond_this_machine() {
    let Some(address) = own_address() else { return };
    let port = free_port().unwrap();
    let bind = format!("-pagebind={address}:{port}");
    let folder = lydian_oracle::Scratch::new("page-certificates");
    std::fs::create_dir_all(folder.path()).unwrap();
    let [certificate, key, text] = ["cert.pem", "key.pem", "text"].map(|name| folder.path().join(name));
    std::fs::write(&text, "no certificate").unwrap();
    // One that the node made, with the key of another.
    let [first, other] = [(); 2].map(|()| {
        let server = Server::lydian("page-certificates", &["-page", &bind]);
        ["cert.pem", "key.pem"].map(|name| std::fs::read(server.folder.join("regtest/page").join(name)).unwrap())
    });
    std::fs::write(&certificate, &first[0]).unwrap();
    std::fs::write(&key, &other[1]).unwrap();
    let missing = folder.path().join("missing.pem");
    let text_shown = text.display();
    for (certificate, key, words) in [
        (&missing, &key, format!("{}: ", missing.display())),
        (&text, &key, format!("{text_shown}: no certificate in PEM: ")),
        (&certificate, &text, "no private key in PEM: ".to_owned()),
        (&certificate, &key, "certificate and key cannot be used: ".to_owned()),
    ] {
        let [certificate, key] =
            [("cert", certificate), ("key", key)].map(|(name, path)| format!("-page{name}={}", path.display()));
        let server = Server::lydian("page-certificates", &["-page", &bind, &certificate, &key]);
        assert_eq!(server.result("getblockcount", "[]"), 0, "the node goes on");
        let log = std::fs::read_to_string(server.folder.join("regtest/debug.log")).unwrap();
        let line = log.lines().find(|line| line.contains("The page is not served")).unwrap_or_else(|| panic!("{log}"));
        assert!(line.contains(&words) && line.contains("-page=0 switches the page off"), "{words}: {line}");
        assert!(TcpStream::connect((address, port)).is_err(), "{words}");
    }
}
