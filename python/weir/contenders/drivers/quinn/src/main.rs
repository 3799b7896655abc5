//! Bulk data over quinn: a server sends as many zeros as its client asks for, on one stream.
//!
//! ```text
//! weir-quinn server ADDRESS CERTIFICATE KEY CC QLOG-FOLDER
//! weir-quinn client ADDRESS BYTES
//! ```
#![forbid(unsafe_code)]

use std::error::Error;
use std::fs::File;
use std::io::BufWriter;
use std::net::SocketAddr;
use std::sync::Arc;

use quinn::congestion::{BbrConfig, CubicConfig, NewRenoConfig};
use quinn::crypto::rustls::QuicClientConfig;
use quinn::{ClientConfig, Endpoint, QlogConfig, ServerConfig, TransportConfig};
use rustls::client::danger::{HandshakeSignatureValid, ServerCertVerified, ServerCertVerifier};
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer, ServerName, UnixTime};
use rustls::{DigitallySignedStruct, SignatureScheme};

type Result<T> = std::result::Result<T, Box<dyn Error>>;

fn main() -> Result<()> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let words: Vec<&str> = arguments.iter().map(String::as_str).collect();
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    match words[..] {
        ["server", address, certificate, key, cc, qlogs] => {
            let certificates = CertificateDer::pem_file_iter(certificate)?
                .collect::<std::result::Result<Vec<_>, _>>()?;
            let key = PrivateKeyDer::from_pem_file(key)?;
            let mut config = ServerConfig::with_single_cert(certificates, key)?;
            config.transport_config(Arc::new(transport(cc, Some(qlogs))?));
            runtime.block_on(serve(address.parse()?, config))
        }
        ["client", address, bytes] => {
            let mut config = client()?;
            config.transport_config(Arc::new(transport("cubic", None)?));
            runtime.block_on(fetch(address.parse()?, config, bytes.parse()?))
        }
        _ => Err("usage: weir-quinn server ADDRESS CERTIFICATE KEY CC QLOG-FOLDER | client ADDRESS BYTES".into()),
    }
}

/// Serves one connection.
async fn serve(address: SocketAddr, config: ServerConfig) -> Result<()> {
    let endpoint = Endpoint::server(config, address)?;
    let connection = endpoint.accept().await.ok_or("the endpoint is closed")?.await?;
    let (mut send, mut recv) = connection.accept_bi().await?;
    let mut request = [0; 8];
    recv.read_exact(&mut request).await?;
    let mut left = u64::from_be_bytes(request);
    let zeros = vec![0; PIECE];
    while left > 0 {
        let piece = left.min(PIECE as u64) as usize;
        send.write_all(&zeros[..piece]).await?;
        left -= piece as u64;
    }
    send.finish()?;
    connection.closed().await;
    Ok(())
}

async fn fetch(to: SocketAddr, config: ClientConfig, bytes: u64) -> Result<()> {
    let endpoint = Endpoint::client("0.0.0.0:0".parse()?)?;
    let connection = endpoint.connect_with(config, to, "server")?.await?;
    let (mut send, mut recv) = connection.open_bi().await?;
    send.write_all(&bytes.to_be_bytes()).await?;
    send.finish()?;
    let mut received = 0;
    while let Some(chunk) = recv.read_chunk(usize::MAX, true).await? {
        received += chunk.bytes.len() as u64;
    }
    println!("{{\"bytes\": {received}}}");
    connection.close(0_u32.into(), b"");
    endpoint.wait_idle().await;
    Ok(())
}

fn transport(cc: &str, qlogs: Option<&str>) -> Result<TransportConfig> {
    let mut config = TransportConfig::default();
    match cc {
        "cubic" => config.congestion_controller_factory(Arc::new(CubicConfig::default())),
        "newreno" => config.congestion_controller_factory(Arc::new(NewRenoConfig::default())),
        "bbr" => config.congestion_controller_factory(Arc::new(BbrConfig::default())),
        _ => {
            return Err(format!("{cc}: no congestion control; there are cubic, newreno, bbr").into());
        }
    };
    config.stream_receive_window(WINDOW.into()).receive_window(WINDOW.into());
    config.send_window(2 * u64::from(WINDOW));
    // Linux before 6.11 refuses it over a device without checksum offload, as our links are. quinn
    // then goes on without, but has lost its first batch and halved its window.
    config.enable_segmentation_offload(false);
    if let Some(folder) = qlogs {
        let mut qlog = QlogConfig::default();
        qlog.writer(Box::new(BufWriter::new(File::create(format!("{folder}/server.sqlog"))?)));
        config.qlog_stream(qlog.into_stream());
    }
    Ok(config)
}

fn client() -> Result<ClientConfig> {
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let tls = rustls::ClientConfig::builder_with_provider(provider)
        .with_protocol_versions(&[&rustls::version::TLS13])?
        .dangerous()
        .with_custom_certificate_verifier(Arc::new(Trusting))
        .with_no_client_auth();
    Ok(ClientConfig::new(Arc::new(QuicClientConfig::try_from(tls)?)))
}

/// Accepts any certificate: both ends belong to one measurement.
#[derive(Debug)]
struct Trusting;

impl ServerCertVerifier for Trusting {
    fn verify_server_cert(
        &self,
        _: &CertificateDer<'_>,
        _: &[CertificateDer<'_>],
        _: &ServerName<'_>,
        _: &[u8],
        _: UnixTime,
    ) -> std::result::Result<ServerCertVerified, rustls::Error> {
        Ok(ServerCertVerified::assertion())
    }

    fn verify_tls12_signature(
        &self,
        _: &[u8],
        _: &CertificateDer<'_>,
        _: &DigitallySignedStruct,
    ) -> std::result::Result<HandshakeSignatureValid, rustls::Error> {
        Ok(HandshakeSignatureValid::assertion())
    }

    fn verify_tls13_signature(
        &self,
        _: &[u8],
        _: &CertificateDer<'_>,
        _: &DigitallySignedStruct,
    ) -> std::result::Result<HandshakeSignatureValid, rustls::Error> {
        Ok(HandshakeSignatureValid::assertion())
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        vec![SignatureScheme::ECDSA_NISTP256_SHA256]
    }
}

const PIECE: usize = 64 << 10;
/// More than any path here holds.
const WINDOW: u32 = 64 << 20;
