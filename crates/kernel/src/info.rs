//! What the kernel's TCP reports of a connection: `TCP_INFO` (tcp(7); `struct tcp_info` of
//! `linux/tcp.h`, which only ever grows at its end).

use std::io;
use std::os::fd::AsFd;

use nix::sys::socket::getsockopt;
use rustix::net::sockopt::socket_error;
use weir_cc::RecoveryState;
use weir_packetdrill::{Info, Name};
use weir_scene::{ConnectionSample, IP_HEADER};
use weir_units::{Bytes, Duration, Rate};

/// Reads `TCP_INFO` in the form that this kernel has.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum TcpInfoReader {
    /// Linux 5.4 and later.
    Short,
    /// Linux 6.7 and later, which counts timeouts.
    Long,
}

mod option {
    use nix::{getsockopt_impl, libc, sockopt_impl};

    sockopt_impl!(
        /// `TCP_INFO` up to `tcpi_snd_wnd`.
        ShortInfo,
        GetOnly,
        libc::IPPROTO_TCP,
        libc::TCP_INFO,
        [u8; super::SHORT]
    );
    sockopt_impl!(
        /// `TCP_INFO` up to `tcpi_total_rto_time`.
        LongInfo,
        GetOnly,
        libc::IPPROTO_TCP,
        libc::TCP_INFO,
        [u8; super::LONG]
    );
}

impl TcpInfoReader {
    /// For a kernel of this release, as `6.18.5-amd64`; none for one that is too old.
    pub(super) fn of_release(release: &str) -> Option<Self> {
        let mut parts = release.split(|c: char| !c.is_ascii_digit());
        let mut number = || parts.next()?.parse::<u32>().ok();
        let version = (number()?, number()?);
        match version {
            (6, 7..) | (7.., _) => Some(Self::Long),
            (5, 4..) | (6, _) => Some(Self::Short),
            _ => None,
        }
    }

    /// What the connection says, of which `written` bytes had been handed over, and whose receiver had
    /// taken `delivered`.
    pub(super) fn query(
        self,
        socket: impl AsFd,
        written: u64,
        delivered: u64,
    ) -> io::Result<ConnectionSample> {
        let reading = match self {
            Self::Short => parse(&getsockopt(&socket, option::ShortInfo)?),
            Self::Long => parse(&getsockopt(&socket, option::LongInfo)?),
        };
        // SYN and FIN take a sequence number each.
        let acked = reading.acked.saturating_sub(1).min(written);
        Ok(ConnectionSample { acked, delivered, ..reading })
    }
}

/// The fields that packet scripts name.
pub(crate) fn script_info(socket: impl AsFd) -> io::Result<Info> {
    let bytes = getsockopt(&socket, option::ShortInfo)?;
    let u32_at = |at: usize| i64::from(u32::from_ne_bytes(array(&bytes, at)));
    let mut info = Info::default();
    for name in Name::ALL {
        let value = match name {
            Name::State => i64::from(bytes[STATE]),
            Name::CaState => i64::from(bytes[CA_STATE]),
            Name::Retransmits => i64::from(bytes[RETRANSMITS]),
            Name::SndCwnd => u32_at(SND_CWND),
            Name::SndSsthresh => u32_at(SND_SSTHRESH),
            Name::Unacked => u32_at(UNACKED),
            Name::Sacked => u32_at(SACKED),
            Name::Lost => u32_at(LOST),
            Name::Retrans => u32_at(RETRANS),
            Name::TotalRetrans => u32_at(TOTAL_RETRANS),
            Name::DsackDups => u32_at(DSACK_DUPS),
            Name::SndMss => u32_at(SND_MSS),
            Name::Rtt => u32_at(RTT),
            Name::Rttvar => u32_at(RTTVAR),
            Name::Rto => u32_at(RTO),
            Name::MinRtt => u32_at(MIN_RTT),
            Name::BytesAcked => i64::from_ne_bytes(array(&bytes, BYTES_ACKED)),
            Name::RwndLimited => i64::from_ne_bytes(array(&bytes, RWND_LIMITED)),
            Name::SndbufLimited => i64::from_ne_bytes(array(&bytes, SNDBUF_LIMITED)),
            Name::BusyTime => i64::from_ne_bytes(array(&bytes, BUSY_TIME)),
            Name::Options => i64::from(bytes[OPTIONS]),
            Name::Delivered => u32_at(DELIVERED),
            Name::Reordering => u32_at(REORDERING),
            Name::Advmss => u32_at(ADVMSS),
            Name::LastDataRecv => u32_at(LAST_DATA_RECV),
        };
        info.set(*name, value);
    }
    Ok(info)
}

/// Why a connection broke, if it did.
pub(super) fn failure(socket: impl AsFd) -> Option<io::Error> {
    match socket_error(socket) {
        Ok(Ok(())) => None,
        Ok(Err(error)) | Err(error) => Some(error.into()),
    }
}

/// `info` has [`SHORT`] bytes at least.
pub(super) fn parse(info: &[u8]) -> ConnectionSample {
    let u32_at = |at: usize| u64::from(u32::from_ne_bytes(array(info, at)));
    let u64_at = |at: usize| u64::from_ne_bytes(array(info, at));
    let micros_at = |at: usize| Duration::from_micros(u32_at(at));
    let packets = |count: u64| Bytes(count * u32_at(SND_MSS));
    let srtt = Some(micros_at(RTT)).filter(|rtt| !rtt.is_zero());
    // A SYN is in flight, not data.
    let unacked = if info[STATE] == TCP_SYN_SENT { 0 } else { u32_at(UNACKED) };
    let in_flight = (unacked + u32_at(RETRANS)).saturating_sub(u32_at(SACKED) + u32_at(LOST));
    let (segments, bytes) = (u32_at(DATA_SEGS_OUT), u64_at(BYTES_SENT));
    let timestamps = if info[OPTIONS] & TCPI_OPT_TIMESTAMPS == 0 { 0 } else { TIMESTAMPS };
    let total_rto = info.get(TOTAL_RTO..TOTAL_RTO + 2);
    ConnectionSample {
        delivered: 0,
        acked: u64_at(BYTES_ACKED),
        segments,
        bytes,
        ip_bytes: bytes + segments * u64::from(IP_HEADER + TCP_HEADER + timestamps),
        retransmits: u32_at(TOTAL_RETRANS),
        spurious: u32_at(DSACK_DUPS),
        timeouts: total_rto.map(|bytes| u64::from(u16::from_ne_bytes(array(bytes, 0)))),
        cwnd: packets(u32_at(SND_CWND)),
        ssthresh: Some(u32_at(SND_SSTHRESH)).filter(|at| *at < INFINITE_SSTHRESH).map(packets),
        in_flight: packets(in_flight),
        srtt,
        rttvar: srtt.map(|_| micros_at(RTTVAR)),
        rto: micros_at(RTO),
        pacing: Some(u64_at(PACING_RATE)).filter(|rate| *rate != u64::MAX).and_then(rate),
        delivery: rate(u64_at(DELIVERY_RATE)),
        state: match info[CA_STATE] {
            0 => RecoveryState::Open,
            1 => RecoveryState::Disorder,
            2 => RecoveryState::Cwr,
            3 => RecoveryState::Recovery,
            _ => RecoveryState::Loss,
        },
        busy: Duration::from_micros(u64_at(BUSY_TIME)),
        rwnd_limited: Duration::from_micros(u64_at(RWND_LIMITED)),
        sndbuf_limited: Duration::from_micros(u64_at(SNDBUF_LIMITED)),
    }
}

/// From bytes per second; zero says that there was nothing to measure.
fn rate(bytes_per_second: u64) -> Option<Rate> {
    let bits = bytes_per_second.checked_mul(8).filter(|bits| *bits > 0);
    bits.map(Rate::from_bits_per_sec)
}

fn array<const N: usize>(bytes: &[u8], at: usize) -> [u8; N] {
    bytes[at..at + N].try_into().expect("a slice of that length")
}

/// The length of `struct tcp_info` in Linux 5.4, and in 6.7.
pub(super) const SHORT: usize = 232;
const LONG: usize = 248;

// Where its fields are.
const STATE: usize = 0;
const CA_STATE: usize = 1;
const RETRANSMITS: usize = 2;
const OPTIONS: usize = 5;
const RTO: usize = 8;
const SND_MSS: usize = 16;
const UNACKED: usize = 24;
const SACKED: usize = 28;
const LOST: usize = 32;
const RETRANS: usize = 36;
const RTT: usize = 68;
const RTTVAR: usize = 72;
const SND_SSTHRESH: usize = 76;
const SND_CWND: usize = 80;
const LAST_DATA_RECV: usize = 52;
const ADVMSS: usize = 84;
const REORDERING: usize = 88;
const DELIVERED: usize = 192;
const TOTAL_RETRANS: usize = 100;
const PACING_RATE: usize = 104;
const BYTES_ACKED: usize = 120;
const MIN_RTT: usize = 148;
const DATA_SEGS_OUT: usize = 156;
const DELIVERY_RATE: usize = 160;
const BUSY_TIME: usize = 168;
const RWND_LIMITED: usize = 176;
const SNDBUF_LIMITED: usize = 184;
const BYTES_SENT: usize = 200;
const DSACK_DUPS: usize = 216;
const TOTAL_RTO: usize = 240;

/// `TCP_INFINITE_SSTHRESH`.
const INFINITE_SSTHRESH: u64 = 0x7fff_ffff;
const TCP_SYN_SENT: u8 = 2;
const TCPI_OPT_TIMESTAMPS: u8 = 1;
/// TCP's header without options, and what the timestamps option adds, padding included.
const TCP_HEADER: u32 = 20;
const TIMESTAMPS: u32 = 12;

#[cfg(test)]
mod tests {
    use std::io::{Read, Write};
    use std::net::{TcpListener, TcpStream};

    use super::*;

    #[test]
    fn a_kernel_tells_what_its_release_allows() {
        let of = TcpInfoReader::of_release;
        assert_eq!([of("6.18.5"), of("7.0-rc1")], [Some(TcpInfoReader::Long); 2]);
        assert_eq!([of("6.6.1-amd64"), of("6.1"), of("5.4.0")], [Some(TcpInfoReader::Short); 3]);
        assert_eq!([of("5.3.9"), of("4.19"), of("linux"), of("")], [None; 4]);
    }

    #[test]
    fn a_connection_over_loopback_is_reported() {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let mut sender = TcpStream::connect(listener.local_addr().unwrap()).unwrap();
        let (mut receiver, _) = listener.accept().unwrap();
        let release = rustix::system::uname().release().to_string_lossy().into_owned();
        let info_reader = TcpInfoReader::of_release(&release).expect("a kernel of this decade");
        let fresh = info_reader.query(&sender, 0, 0).unwrap();
        assert_eq!((fresh.acked, fresh.bytes, fresh.ssthresh), (0, 0, None));
        sender.write_all(&[7; 100_000]).unwrap();
        receiver.read_exact(&mut [0; 100_000]).unwrap();
        let patience = std::time::Instant::now();
        let reading = loop {
            let reading = info_reader.query(&sender, 100_000, 100_000).unwrap();
            if reading.acked == 100_000 || patience.elapsed().as_secs() > 5 {
                break reading;
            }
        };
        assert_eq!(
            (reading.acked, reading.delivered, reading.in_flight),
            (100_000, 100_000, Bytes(0))
        );
        assert!(reading.bytes >= 100_000 && reading.segments > 0, "{reading:?}");
        assert_eq!(reading.ip_bytes, reading.bytes + reading.segments * 52);
        assert!(reading.srtt.is_some() && reading.cwnd > Bytes(10_000), "{reading:?}");
        assert_eq!(reading.timeouts.is_some(), info_reader == TcpInfoReader::Long);
        assert!(failure(&sender).is_none());
    }
}
