use std::cell::RefCell;

use weir_sockets::socket::SendBatch;
use weir_transport::Config;
use weir_transport::wire::Ports;
use weir_units::stream;

use super::*;

/// Has only the bytes of its stream that were not acknowledged.
struct Forgetful {
    acked: u64,
    established: bool,
}

impl Application for Forgetful {
    fn is_established(&self) -> bool {
        self.established
    }

    fn fill(&mut self, offset: u64, buf: &mut [u8]) -> io::Result<()> {
        buf.fill(0);
        match offset < self.acked {
            true => Err(io::Error::other("bytes requested that are gone")),
            false => Ok(()),
        }
    }

    fn store(&mut self, _: u64, _: &[u8]) -> io::Result<()> {
        Ok(())
    }

    fn on_step(&mut self, _: Instant, connection: &mut Connection) -> io::Result<()> {
        self.acked = connection.stats().acked_bytes;
        Ok(())
    }
}

/// Keeps the lengths of datagrams.
#[derive(Default)]
struct Lengths(RefCell<Vec<usize>>);

impl DatagramSink for Lengths {
    fn send(&self, departure: &SendBatch<'_>) -> io::Result<()> {
        let datagrams = departure.bytes.chunks(departure.stride);
        self.0.borrow_mut().extend(datagrams.map(<[u8]>::len));
        Ok(())
    }

    fn max_segments(&self) -> usize {
        64
    }
}

/// A connection that is open, and its other end.
fn pair(now: Instant) -> (Peer<Forgetful>, Connection) {
    let config = Config::default();
    let mut client = Connection::connect(&config, now, stream(1, "client"));
    let mut server = Connection::listen(&config, stream(1, "server"));
    exchange(now, &mut client, &mut server);
    assert!(client.is_synchronised() && server.is_synchronised());
    let key = Key { remote: ([10, 0, 0, 1], 9).into(), ports: Ports::default() };
    (
        Peer::new(now, key, client, Forgetful { acked: 0, established: false }, Framing::Clear),
        server,
    )
}

fn exchange(now: Instant, one: &mut Connection, other: &mut Connection) {
    for _ in 0..3 {
        while let Some(sent) = one.poll_transmit(now) {
            other.handle_segment(now, &sent.segment, Ecn::NotEct);
        }
        while let Some(sent) = other.poll_transmit(now) {
            one.handle_segment(now, &sent.segment, Ecn::NotEct);
        }
    }
}

/// A segment that was repeated waits for space in the outbox while the first one's acknowledgement arrives.
#[test]
fn a_waiting_segment_is_discarded_once_its_bytes_are_acknowledged() {
    let now = Instant::from_nanos(1_000_000_000);
    let (mut peer, mut server) = pair(now);
    peer.connection.write(now, 3_000);
    let segments: Vec<_> = std::iter::from_fn(|| peer.connection.poll_transmit(now)).collect();
    assert!(segments.len() > 1, "{segments:?}");
    peer.queue.extend(segments.iter().copied().map(Queued::Segment));
    let first = segments[0].segment;
    server.handle_segment(now, &first, Ecn::NotEct);
    let later = now + Duration::from_secs(1);
    server.handle_timeout(later);
    let ack = server.poll_transmit(later).expect("an acknowledgement");
    peer.connection.handle_segment(later, &ack.segment, Ecn::NotEct);
    peer.step(later, &Limits::default());
    assert_eq!(peer.application.acked, u64::from(first.payload_len));

    let (sink, mut outbox) = (Lengths::default(), Outbox::new());
    let sent = peer.transmit(later, &sink, &mut outbox, &mut Vec::new()).expect("space");
    assert_eq!(sent, Sent::All);
    assert!(peer.error.is_none(), "{:?}", peer.error);
    let lengths: Vec<_> = segments[1..].iter().map(|sent| Queued::Segment(*sent).len()).collect();
    assert!(sink.0.into_inner().starts_with(&lengths), "what is not acknowledged leaves");
}

/// A peer that sends a datagram now and then holds no place at a limit of connections: only new bytes count, and
/// only once it has said what it wants.
#[test]
fn only_new_bytes_of_an_announced_file_are_progress() {
    let start = Instant::from_nanos(1_000_000_000);
    let (mut peer, mut server) = pair(start);
    let mut datagrams = Vec::new();
    for _ in 0..2 {
        server.write(start, 100);
        let sent = server.poll_transmit(start).expect("a segment").segment;
        let mut datagram = Vec::new();
        wire::emit(&sent, peer.key.ports, &vec![0; sent.payload_len as usize], &mut datagram);
        datagrams.push(datagram);
    }
    let at = |seconds| start + Duration::from_secs(seconds);
    let mut arrive = |seconds, datagram: &[u8], established| {
        peer.application.established = established;
        peer.receive(at(seconds), datagram, Ecn::NotEct, &mut Vec::new(), &mut Vec::new());
        peer.step(at(seconds), &Limits::default());
        assert_eq!(peer.heard_at, at(seconds));
        peer.pace.rate(at(seconds))
    };
    assert_eq!(arrive(1, &datagrams[0], false), 0, "nothing is announced");
    assert_eq!(arrive(2, &datagrams[1], true), 50);
    assert_eq!(arrive(4, &datagrams[1], true), 25, "a copy is nothing new");
    assert_eq!(arrive(7, &datagrams[1], true), 0, "another interval has begun");
}
