//! A sender that says anything: bytes that were written for it, in its stream and next to it.

use std::collections::VecDeque;
use std::io;

use weir_transfer::endpoint::{Application, Datagram};
use weir_transfer::file::{Announcement, Frame};
use weir_transport::Connection;
use weir_units::{Bytes, Instant};

/// A sender that says what it is given and hears nothing.
#[derive(Debug, Default)]
pub(crate) struct Script {
    /// What it says.
    pub(crate) stream: Vec<u8>,
    /// Datagrams that it sends next to its stream, by their numbers.
    pub(crate) datagram: VecDeque<(u64, Vec<u8>)>,
    written: usize,
    /// How many files and entries it has named, and which it has only asked about.
    named: u32,
    asked: VecDeque<u32>,
}

impl Script {
    /// Says something, with the number that it has to have.
    pub(crate) fn say(&mut self, mut frame: Announcement) {
        match &mut frame {
            Announcement::Ask(header) => {
                header.number = self.number();
                self.asked.push_back(header.number);
            }
            Announcement::Entry(entry) => entry.number = self.number(),
            Announcement::File(header)
            | Announcement::Repair(header)
            | Announcement::Datagram { header, .. } => {
                header.number = self.asked.pop_front().unwrap_or_else(|| self.number());
            }
            _ => {}
        }
        frame.encode(&mut self.stream);
    }

    fn number(&mut self) -> u32 {
        self.named += 1;
        self.named - 1
    }
}

impl Application for Script {
    fn fill(&mut self, offset: u64, buf: &mut [u8]) -> io::Result<()> {
        buf.copy_from_slice(&self.stream[offset as usize..][..buf.len()]);
        Ok(())
    }

    fn store(&mut self, _: u64, _: &[u8]) -> io::Result<()> {
        Ok(())
    }

    fn on_step(&mut self, now: Instant, connection: &mut Connection) -> io::Result<()> {
        connection.read(now, u64::MAX);
        connection.set_recv_window(Bytes(1 << 20));
        while connection.poll_event().is_some() {}
        connection.write(now, (self.stream.len() - self.written) as u64);
        self.written = self.stream.len();
        Ok(())
    }

    fn poll_loose(&mut self, _: Instant) -> Option<Datagram> {
        let (number, bytes) = self.datagram.front()?;
        Some(Datagram { number: *number, len: bytes.len() })
    }

    fn fill_loose(&mut self, _: Datagram, buf: &mut [u8]) -> io::Result<()> {
        let (_, bytes) = self.datagram.pop_front().ok_or(io::ErrorKind::NotFound)?;
        buf.copy_from_slice(&bytes);
        Ok(())
    }
}
