//! One file over one unidirectional stream of quinn, with TLS 1.3.
//!
//! The certificate is the receiver's own and the sender does not check it, which spares quinn some
//! microseconds.
#![forbid(unsafe_code)]

use std::error::Error;
use std::fs::File;
use std::io::{Read, Write};
use std::sync::Arc;

use quinn::congestion::{BbrConfig, CubicConfig};
use quinn::crypto::rustls::QuicClientConfig;
use quinn::{ClientConfig, Endpoint, EndpointConfig, ServerConfig, TokioRuntime, TransportConfig};
use rustls::client::danger::{HandshakeSignatureValid, ServerCertVerified, ServerCertVerifier};
use rustls::pki_types::{CertificateDer, PrivatePkcs8KeyDer, ServerName, UnixTime};
use rustls::{DigitallySignedStruct, SignatureScheme};
use serde_json::json;
use weir_bench_peers::{Job, WINDOW, any, bind, cpu_s, monotonic_ns, run, say};

fn main() {
    run(|job| {
        let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build()?;
        runtime.block_on(async {
            match job {
                Job::Receive { listen, directory, stack } => {
                    let signed = rcgen::generate_simple_self_signed(["localhost".to_owned()])?;
                    let key = PrivatePkcs8KeyDer::from(signed.signing_key.serialize_der());
                    let certificate = signed.cert.der().clone();
                    let mut server = ServerConfig::with_single_cert(vec![certificate], key.into())?;
                    server.transport_config(transport(&stack)?);
                    let config = EndpointConfig::default();
                    let runtime = Arc::new(TokioRuntime);
                    let endpoint = Endpoint::new(config, Some(server), bind(listen)?, runtime)?;
                    say(&json!({ "address": endpoint.local_addr()?.to_string() }));
                    let began = cpu_s();
                    let connection = endpoint.accept().await.ok_or("closed")?.await?;
                    let mut stream = connection.accept_uni().await?;
                    let mut file = File::create(directory.join("file"))?;
                    while let Some(chunk) = stream.read_chunk(usize::MAX, true).await? {
                        file.write_all(&chunk.bytes)?;
                    }
                    let ended_ns = monotonic_ns();
                    connection.close(0_u32.into(), b"");
                    endpoint.wait_idle().await;
                    say(&json!({ "ended_ns": ended_ns, "cpu_s": cpu_s() - began }));
                }
                Job::Send { to, path, stack } => {
                    let began = cpu_s();
                    let config = EndpointConfig::default();
                    let runtime = Arc::new(TokioRuntime);
                    let endpoint = Endpoint::new(config, None, bind(any(to))?, runtime)?;
                    let mut client = client()?;
                    client.transport_config(transport(&stack)?);
                    let mut file = File::open(path)?;
                    let began_ns = monotonic_ns();
                    let connection = endpoint.connect_with(client, to, "localhost")?.await?;
                    let mut stream = connection.open_uni().await?;
                    let mut piece = vec![0; 256 << 10];
                    loop {
                        let read = file.read(&mut piece)?;
                        if read == 0 {
                            break;
                        }
                        stream.write_all(&piece[..read]).await?;
                    }
                    stream.finish()?;
                    connection.closed().await;
                    say(&json!({ "began_ns": began_ns, "cpu_s": cpu_s() - began }));
                }
            }
            Ok(())
        })
    });
}

fn transport(stack: &str) -> Result<Arc<TransportConfig>, String> {
    let mut config = TransportConfig::default();
    match stack {
        "cubic" => config.congestion_controller_factory(Arc::new(CubicConfig::default())),
        "bbr" => config.congestion_controller_factory(Arc::new(BbrConfig::default())),
        other => return Err(format!("quinn has no congestion control '{other}'")),
    };
    let window = u32::try_from(WINDOW).expect("it is small").into();
    config.stream_receive_window(window).receive_window(window).send_window(2 * WINDOW);
    Ok(Arc::new(config))
}

fn client() -> Result<ClientConfig, Box<dyn Error>> {
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let tls = rustls::ClientConfig::builder_with_provider(provider)
        .with_protocol_versions(&[&rustls::version::TLS13])?
        .dangerous()
        .with_custom_certificate_verifier(Arc::new(Trusting))
        .with_no_client_auth();
    Ok(ClientConfig::new(Arc::new(QuicClientConfig::try_from(tls)?)))
}

/// Takes any certificate: this is a measurement on one machine.
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
    ) -> Result<ServerCertVerified, rustls::Error> {
        Ok(ServerCertVerified::assertion())
    }

    fn verify_tls12_signature(
        &self,
        _: &[u8],
        _: &CertificateDer<'_>,
        _: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, rustls::Error> {
        Ok(HandshakeSignatureValid::assertion())
    }

    fn verify_tls13_signature(
        &self,
        _: &[u8],
        _: &CertificateDer<'_>,
        _: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, rustls::Error> {
        Ok(HandshakeSignatureValid::assertion())
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        vec![SignatureScheme::ECDSA_NISTP256_SHA256, SignatureScheme::ED25519]
    }
}
