//! One end of a connection, driven in virtual time. This file is compiled once for each host, whose
//! crate is `proto`: the hosts have one origin and call the same things by the same names.

use std::collections::VecDeque;

use bytes::BytesMut;
use weir_net::Ecn;
use weir_scene::{ForeignEnd, ForeignEvent, ForeignState};
use weir_units::{Duration, Instant};

use super::proto::{
    Connection, ConnectionHandle, DatagramEvent, Dir, EcnCodepoint, Endpoint, Event, ReadError,
    StreamEvent, StreamId, VarInt,
};
use crate::clock::{Clock, HostInstant};
use crate::monitor::Monitor;
use crate::pattern;

/// An end: its endpoint, which holds one connection at most, and the one stream of that.
pub(super) struct End {
    endpoint: Endpoint,
    connection: Option<(ConnectionHandle, Connection)>,
    clock: Clock,
    monitor: Monitor,
    stream: Option<StreamId>,
    /// Bytes that the application has written, and those of them that the stack has taken.
    wanted: u64,
    written: u64,
    /// Whether the stream may take more.
    writable: bool,
    /// Whether the application has finished, and whether the stack knows.
    closing: bool,
    closed: bool,
    /// Bytes that arrived in order, and those of them that the application has taken.
    arrived: u64,
    taken: u64,
    /// Datagrams of the endpoint itself.
    responses: VecDeque<Vec<u8>>,
    events: VecDeque<ForeignEvent>,
}

impl End {
    pub(super) fn new(
        endpoint: Endpoint,
        connection: Option<(ConnectionHandle, Connection)>,
        clock: Clock,
        monitor: Monitor,
    ) -> Self {
        Self {
            endpoint,
            connection,
            clock,
            monitor,
            stream: None,
            wanted: 0,
            written: 0,
            writable: false,
            closing: false,
            closed: false,
            arrived: 0,
            taken: 0,
            responses: VecDeque::new(),
            events: VecDeque::new(),
        }
    }

    /// Lets the endpoint, the connection and the application react to one another.
    fn drive(&mut self) {
        let Some((handle, connection)) = &mut self.connection else { return };
        while let Some(event) = connection.poll_endpoint_events() {
            if let Some(answer) = self.endpoint.handle_event(*handle, event) {
                connection.handle_event(answer);
            }
        }
        while let Some(event) = self.connection.as_mut().and_then(|(_, it)| it.poll()) {
            self.on_event(event);
        }
        self.fill();
    }

    fn on_event(&mut self, event: Event) {
        let Some((_, connection)) = &mut self.connection else { return };
        match event {
            Event::Connected => {
                if connection.side().is_client() {
                    self.stream = connection.streams().open(Dir::Bi);
                    self.writable = true;
                }
                self.events.push_back(ForeignEvent::Connected);
            }
            Event::Stream(StreamEvent::Opened { dir }) => {
                if let Some(stream) = connection.streams().accept(dir) {
                    self.stream = Some(stream);
                    self.writable = true;
                    self.drain(stream);
                }
            }
            Event::Stream(StreamEvent::Readable { id }) => self.drain(id),
            Event::Stream(StreamEvent::Writable { .. }) => self.writable = true,
            Event::Stream(StreamEvent::Finished { .. }) => {
                self.events.push_back(ForeignEvent::Finished);
            }
            Event::ConnectionLost { reason } => {
                self.events.push_back(ForeignEvent::Failed(reason.to_string()));
            }
            _ => {}
        }
    }

    /// Reads what has arrived in order.
    fn drain(&mut self, id: StreamId) {
        let Some((_, connection)) = &mut self.connection else { return };
        let mut stream = connection.recv_stream(id);
        let Ok(mut chunks) = stream.read(true) else { return };
        loop {
            match chunks.next(usize::MAX) {
                Ok(Some(chunk)) => {
                    if chunk.offset != self.arrived || !pattern::matches(chunk.offset, &chunk.bytes)
                    {
                        self.events.push_back(ForeignEvent::Damaged { offset: chunk.offset });
                    }
                    self.arrived += chunk.bytes.len() as u64;
                }
                Ok(None) | Err(ReadError::Blocked) => break,
                Err(error) => {
                    self.events.push_back(ForeignEvent::Failed(error.to_string()));
                    break;
                }
            }
        }
        // The connection sends credit by itself when it is polled.
        let _ = chunks.finalize();
    }

    /// Writes as much as flow control allows.
    fn fill(&mut self) {
        let (Some((_, connection)), Some(id)) = (&mut self.connection, self.stream) else { return };
        while self.writable && self.written < self.wanted {
            let piece = pattern::piece(self.written, self.wanted - self.written);
            match super::write(&mut connection.send_stream(id), piece) {
                Some(bytes) => self.written += bytes,
                None => self.writable = false,
            }
        }
        if self.closing && !self.closed && self.written == self.wanted {
            self.closed = true;
            // It fails only where the connection is lost, which is an event of its own.
            let _ = connection.send_stream(id).finish();
        }
    }

    fn accept(&mut self, now: HostInstant, incoming: super::proto::Incoming) {
        let mut response = Vec::new();
        match self.endpoint.accept(incoming, now, &mut response, None) {
            Ok(connection) => self.connection = Some(connection),
            Err(error) => {
                self.events.push_back(ForeignEvent::Failed(error.cause.to_string()));
                self.responses.extend(error.response.map(|sent| response[..sent.size].to_vec()));
            }
        }
    }
}

impl ForeignEnd for End {
    fn handle_datagram(&mut self, now: Instant, ecn: Ecn, datagram: &[u8]) {
        let (now, mut response) = (self.clock.to_host(now), Vec::new());
        let codepoint = match ecn {
            Ecn::NotEct => None,
            Ecn::Ect0 => Some(EcnCodepoint::Ect0),
            Ecn::Ect1 => Some(EcnCodepoint::Ect1),
            Ecn::Ce => Some(EcnCodepoint::Ce),
        };
        let bytes = BytesMut::from(datagram);
        match super::handle(&mut self.endpoint, now, codepoint, bytes, &mut response) {
            Some(DatagramEvent::ConnectionEvent(_, event)) => {
                if let Some((_, connection)) = &mut self.connection {
                    connection.handle_event(event);
                }
            }
            Some(DatagramEvent::NewConnection(incoming)) => self.accept(now, incoming),
            Some(DatagramEvent::Response(sent)) => {
                response.truncate(sent.size);
                self.responses.push_back(response);
            }
            None => {}
        }
        self.drive();
    }

    fn handle_timeout(&mut self, now: Instant) {
        if let Some((_, connection)) = &mut self.connection {
            connection.handle_timeout(self.clock.to_host(now));
        }
        self.drive();
    }

    fn next_timeout(&mut self) -> Option<Instant> {
        let (_, connection) = self.connection.as_mut()?;
        connection.poll_timeout().map(|at| self.clock.to_virtual(at))
    }

    fn poll_transmit(&mut self, now: Instant, out: &mut Vec<u8>) -> Option<Ecn> {
        if let Some(response) = self.responses.pop_front() {
            *out = response;
            return Some(Ecn::NotEct);
        }
        let (_, connection) = self.connection.as_mut()?;
        let sent = super::poll_transmit(connection, self.clock.to_host(now), out);
        self.drive();
        let sent = sent?;
        out.truncate(sent.size);
        Some(match sent.ecn {
            None => Ecn::NotEct,
            Some(EcnCodepoint::Ect0) => Ecn::Ect0,
            Some(EcnCodepoint::Ect1) => Ecn::Ect1,
            Some(EcnCodepoint::Ce) => Ecn::Ce,
        })
    }

    fn write(&mut self, _now: Instant, bytes: u64) {
        self.wanted = self.wanted.saturating_add(bytes);
        self.fill();
    }

    fn finish(&mut self, _now: Instant) {
        self.closing = true;
        self.fill();
    }

    fn read(&mut self) -> u64 {
        self.arrived - std::mem::replace(&mut self.taken, self.arrived)
    }

    fn abort(&mut self, now: Instant) {
        if let Some((_, connection)) = &mut self.connection {
            connection.close(self.clock.to_host(now), VarInt::from_u32(0), Vec::new().into());
        }
    }

    fn poll_event(&mut self) -> Option<ForeignEvent> {
        self.events.pop_front()
    }

    fn poll_rtt_sample(&mut self) -> Option<Duration> {
        self.monitor.with(|counts| counts.samples.pop_front())
    }

    fn state(&mut self) -> ForeignState {
        let state = self.connection.as_mut().map(|(_, connection)| super::state(connection));
        self.monitor.with(|counts| ForeignState {
            in_flight: weir_units::Bytes(counts.in_flight),
            acked: counts.acked,
            rtt: counts.rtt,
            ..state.unwrap_or_default()
        })
    }

    fn phase(&mut self) -> Option<&'static str> {
        let (_, connection) = self.connection.as_ref()?;
        super::phase(connection)
    }
}
