//! TLS between the socket and the protocol: [`TlsIdentity`], a certificate with its key, read from PEM files or made
//! here.
//!
//! Input: PEM texts. Output: an identity, and its fingerprint, by which a user recognises a self-made certificate.
//! Versions 1.2 and 1.3, with the library's choice of ciphers. A client that does not finish the handshake in
//! [`HANDSHAKE_MAX`] is disconnected.

use lydian_hash::sha256;
use std::fmt;
use std::io;
use std::sync::Arc;
use std::time::Duration;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::time::timeout;
use tokio_rustls::rustls::ServerConfig;
use tokio_rustls::rustls::crypto::ring::default_provider;
use tokio_rustls::rustls::pki_types::pem::PemObject;
use tokio_rustls::rustls::pki_types::{CertificateDer, PrivateKeyDer};
use tokio_rustls::server::TlsStream;

/// Time for a handshake.
pub(crate) const HANDSHAKE_MAX: Duration = Duration::from_secs(10);

/// Why there is no identity.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum TlsError {
    /// The text is no certificate in PEM.
    Certificate(String),
    /// The text is no private key in PEM.
    Key(String),
    /// The library refuses the pair.
    Pair(String),
    /// No certificate could be made.
    Make(String),
}

impl fmt::Display for TlsError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            TlsError::Certificate(reason) => write!(f, "no certificate in PEM: {reason}"),
            TlsError::Key(reason) => write!(f, "no private key in PEM: {reason}"),
            TlsError::Pair(reason) => write!(f, "certificate and key cannot be used: {reason}"),
            TlsError::Make(reason) => write!(f, "a certificate cannot be made: {reason}"),
        }
    }
}

impl std::error::Error for TlsError {}

/// A certificate with its key, ready to serve.
#[derive(Clone)]
pub struct TlsIdentity {
    config: Arc<ServerConfig>,
    fingerprint: [u8; 32],
}

/// Shows no key.
impl fmt::Debug for TlsIdentity {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("TlsIdentity").field("fingerprint", &self.fingerprint()).finish_non_exhaustive()
    }
}

/// A certificate and its key as PEM.
pub struct SelfMade {
    pub certificate: String,
    pub key: String,
}

/// Shows no key.
impl fmt::Debug for SelfMade {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("SelfMade").field("certificate", &self.certificate).finish_non_exhaustive()
    }
}

impl TlsIdentity {
    /// Reads a chain of certificates, that of the server first, and the key.
    pub fn from_pem(certificates: &[u8], key: &[u8]) -> Result<TlsIdentity, TlsError> {
        let chain: Result<Vec<CertificateDer<'static>>, _> = CertificateDer::pem_slice_iter(certificates).collect();
        let chain = chain.map_err(|error| TlsError::Certificate(error.to_string()))?;
        let first = chain.first().ok_or_else(|| TlsError::Certificate("there is none in it".to_owned()))?;
        let fingerprint = sha256(first);
        let key = PrivateKeyDer::from_pem_slice(key).map_err(|error| TlsError::Key(error.to_string()))?;
        let builder = ServerConfig::builder_with_provider(Arc::new(default_provider()));
        let versions = builder.with_safe_default_protocol_versions();
        let pair = |error: tokio_rustls::rustls::Error| TlsError::Pair(error.to_string());
        let config = versions.map_err(pair)?.with_no_client_auth().with_single_cert(chain, key).map_err(pair)?;
        Ok(TlsIdentity { config: Arc::new(config), fingerprint })
    }

    /// Makes a certificate for this machine that signs itself.
    pub fn self_made() -> Result<SelfMade, TlsError> {
        let make = |error: rcgen::Error| TlsError::Make(error.to_string());
        let key = rcgen::KeyPair::generate().map_err(make)?;
        let names = ["localhost", "127.0.0.1", "::1"].map(str::to_owned);
        let certificate = rcgen::CertificateParams::new(names).map_err(make)?.self_signed(&key).map_err(make)?;
        Ok(SelfMade { certificate: certificate.pem(), key: key.serialize_pem() })
    }

    /// The SHA-256 of the certificate, as browsers and `openssl x509 -fingerprint -sha256` show it.
    pub fn fingerprint(&self) -> String {
        let bytes: Vec<String> = self.fingerprint.iter().map(|byte| format!("{byte:02X}")).collect();
        bytes.join(":")
    }

    /// The handshake of a client, which has so much time.
    pub(crate) async fn accept<S: AsyncRead + AsyncWrite + Unpin>(
        &self,
        stream: S,
        wait_max: Duration,
    ) -> io::Result<TlsStream<S>> {
        let acceptor = tokio_rustls::TlsAcceptor::from(Arc::clone(&self.config));
        let late = |_| io::Error::new(io::ErrorKind::TimedOut, "the handshake took too long");
        timeout(wait_max, acceptor.accept(stream)).await.map_err(late)?
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use tokio::io::{AsyncWriteExt, duplex};

    /// Handshakes that are not begun, stop after some bytes, or are none.
    #[tokio::test]
    async fn handshakes_that_are_not_finished_end() {
        let made = TlsIdentity::self_made().unwrap();
        let identity = TlsIdentity::from_pem(made.certificate.as_bytes(), made.key.as_bytes()).unwrap();
        // The head of a message of 512 bytes, and its beginning.
        let half = [0x16, 3, 1, 2, 0, 1, 0, 1, 0xfc, 3, 3];
        for (sent, wait_max, expected) in [
            (&b""[..], Duration::from_millis(50), io::ErrorKind::TimedOut),
            (&half[..1], Duration::from_millis(50), io::ErrorKind::TimedOut),
            (&half, Duration::from_millis(50), io::ErrorKind::TimedOut),
            (b"{\"id\":1}\n", HANDSHAKE_MAX, io::ErrorKind::InvalidData),
        ] {
            let (mut client, server) = duplex(1_000);
            client.write_all(sent).await.unwrap();
            assert_eq!(identity.accept(server, wait_max).await.unwrap_err().kind(), expected, "{sent:?}");
        }
    }

    #[test]
    fn a_self_made_certificate_can_be_read_again() {
        let made = TlsIdentity::self_made().unwrap();
        let identity = TlsIdentity::from_pem(made.certificate.as_bytes(), made.key.as_bytes()).unwrap();
        assert_eq!(identity.fingerprint().len(), 32 * 3 - 1);
        assert!(!format!("{identity:?} {made:?}").contains("PRIVATE"));
        let error = |certificate: &str, key: &str| {
            TlsIdentity::from_pem(certificate.as_bytes(), key.as_bytes()).unwrap_err().to_string()
        };
        assert_eq!(error("", &made.key), "no certificate in PEM: there is none in it");
        assert!(error(&made.certificate, "nonsense").starts_with("no private key in PEM: "));
        let other = TlsIdentity::self_made().unwrap();
        assert!(error(&made.certificate, &other.key).starts_with("certificate and key cannot be used: "));
    }
}
