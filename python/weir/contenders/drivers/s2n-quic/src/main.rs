//! Bulk data over s2n-quic: a server sends as many zeros as its client asks for, on one stream.
//!
//! ```text
//! weir-s2n-quic server ADDRESS CERTIFICATE KEY CC QLOG-FOLDER
//! weir-s2n-quic client ADDRESS CERTIFICATE BYTES
//! ```
#![forbid(unsafe_code)]

use std::error::Error;
use std::fs::File;
use std::io::{BufWriter, Write};
use std::net::SocketAddr;
use std::path::Path;

use s2n_quic::client::Connect;
use s2n_quic::provider::congestion_controller::{Bbr, Cubic};
use s2n_quic::provider::event::{ConnectionInfo, ConnectionMeta, Subscriber, events};
use s2n_quic::provider::{io, limits::Limits};
use s2n_quic::{Client, Server};

type Result<T> = std::result::Result<T, Box<dyn Error>>;

fn main() -> Result<()> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let words: Vec<&str> = arguments.iter().map(String::as_str).collect();
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    match words[..] {
        ["server", address, certificate, key, cc, qlogs] => {
            let qlog = Qlog(BufWriter::new(File::create(format!("{qlogs}/server.sqlog"))?));
            runtime.block_on(async {
                let server = Server::builder()
                    .with_io(socket(address.parse()?)?)?
                    .with_tls((Path::new(certificate), Path::new(key)))?
                    .with_limits(limits()?)?
                    .with_event(qlog)?;
                let server = match cc {
                    "cubic" => server.with_congestion_controller(Cubic::default())?.start()?,
                    "bbr" => server.with_congestion_controller(Bbr::default())?.start()?,
                    _ => return Err(format!("{cc}: no congestion control; there are cubic, bbr").into()),
                };
                serve(server).await
            })
        }
        ["client", address, certificate, bytes] => runtime.block_on(async {
            let client = Client::builder()
                .with_io(socket("0.0.0.0:0".parse()?)?)?
                .with_tls(Path::new(certificate))?
                .with_limits(limits()?)?
                .start()?;
            fetch(client, address.parse()?, bytes.parse()?).await
        }),
        _ => Err("usage: weir-s2n-quic server ADDRESS CERTIFICATE KEY CC QLOG-FOLDER | client ADDRESS CERTIFICATE BYTES".into()),
    }
}

/// Serves one connection.
async fn serve(mut server: Server) -> Result<()> {
    let mut connection = server.accept().await.ok_or("the endpoint is closed")?;
    let mut stream = connection.accept_bidirectional_stream().await?.ok_or("no stream")?;
    let mut request = Vec::new();
    while let Some(chunk) = stream.receive().await? {
        request.extend(chunk);
    }
    let mut left = u64::from_be_bytes(request[..].try_into()?);
    while left > 0 {
        let piece = left.min(ZEROS.len() as u64) as usize;
        stream.send(ZEROS[..piece].into()).await?;
        left -= piece as u64;
    }
    stream.close().await?;
    // Until the client closes the connection.
    let _ = connection.accept_bidirectional_stream().await;
    Ok(())
}

async fn fetch(mut client: Client, to: SocketAddr, bytes: u64) -> Result<()> {
    let mut connection = client.connect(Connect::new(to).with_server_name("server")).await?;
    let mut stream = connection.open_bidirectional_stream().await?;
    stream.send(bytes.to_be_bytes().to_vec().into()).await?;
    stream.finish()?;
    let mut received = 0;
    while let Some(chunk) = stream.receive().await? {
        received += chunk.len() as u64;
    }
    println!("{{\"bytes\": {received}}}");
    connection.close(0_u32.into());
    client.wait_idle().await?;
    Ok(())
}

/// Without segmentation offload, which Linux before 6.11 refuses over a device without checksum offload, as our links are.
fn socket(address: SocketAddr) -> Result<io::tokio::Provider> {
    Ok(io::tokio::Builder::default().with_receive_address(address)?.with_gso_disabled()?.build()?)
}

fn limits() -> Result<Limits> {
    Ok(Limits::new()
        .with_data_window(WINDOW)?
        .with_bidirectional_local_data_window(WINDOW)?
        .with_bidirectional_remote_data_window(WINDOW)?
        .with_max_send_buffer_size(WINDOW as u32)?)
}

/// The sender's state as qlog, which s2n-quic does not write: a line per event.
struct Qlog(BufWriter<File>);

impl Subscriber for Qlog {
    type ConnectionContext = ();

    fn create_connection_context(&mut self, meta: &ConnectionMeta, _: &ConnectionInfo) {
        let time = meta.timestamp.duration_since_start().as_secs_f64() * 1e3;
        let _ = writeln!(self.0, r#"{{"time": {time}, "name": "quic:connection_started"}}"#);
    }

    fn on_recovery_metrics(
        &mut self,
        (): &mut (),
        meta: &ConnectionMeta,
        event: &events::RecoveryMetrics,
    ) {
        let ms = |time: std::time::Duration| time.as_secs_f64() * 1e3;
        let _ = writeln!(
            self.0,
            r#"{{"time": {}, "name": "quic:recovery_metrics_updated", "data": {{"congestion_window": {}, "bytes_in_flight": {}, "smoothed_rtt": {}, "latest_rtt": {}, "rtt_variance": {}}}}}"#,
            ms(meta.timestamp.duration_since_start()),
            event.congestion_window,
            event.bytes_in_flight,
            ms(event.smoothed_rtt),
            ms(event.latest_rtt),
            ms(event.rtt_variance),
        );
    }
}

static ZEROS: &[u8] = &[0; 64 << 10];
/// More than any path here holds.
const WINDOW: u64 = 64 << 20;
