//! Calls that wait for events: poll(2) and epoll(7).

use std::collections::BTreeMap;

use weir_transport::State;
use weir_units::{Duration, Instant};

use super::Simulated;
use super::socket::Role;
use crate::endpoint::{EndpointError, Returned};
use crate::script::{Call, EpollChange, Interest, Watched};

/// An instance of epoll.
#[derive(Debug, Default)]
pub(super) struct Epoll(BTreeMap<i32, Entry>);

/// A descriptor of which it reports.
#[derive(Clone, Copy, Debug)]
struct Entry {
    interest: Interest,
    /// With `EPOLLET`: the number of wakes that were reported.
    reported: Option<u64>,
    /// With `EPOLLONESHOT`: nothing more is reported.
    is_spent: bool,
}

impl Epoll {
    /// The descriptor was closed.
    pub(super) fn forget(&mut self, fd: i32) {
        self.0.remove(&fd);
    }
}

impl Simulated {
    /// What is ready.
    fn readiness(&self, fd: i32) -> u32 {
        let Some(socket) = self.sockets.get(&fd) else { return NVAL };
        let index = match socket.role {
            Role::Fresh => return OUT | HUP,
            Role::Late | Role::File => return OUT,
            Role::Listener => return if self.acceptable(fd).is_some() { IN } else { 0 },
            Role::Flow(index) => index,
        };
        let flow = &self.flows[index];
        let state = flow.connection.state();
        let mut ready = 0;
        if flow.failure.is_some() {
            ready |= ERR;
        }
        if state == State::Closed {
            ready |= HUP | IN | OUT | RDHUP;
        }
        if matches!(state, State::SynSent | State::SynReceived) {
            return ready;
        }
        let ends = flow.finished || flow.reads_no_more;
        if flow.connection.readable() > 0 || ends {
            ready |= IN;
        }
        if ends {
            ready |= RDHUP;
        }
        let unsent = flow.connection.unsent().get();
        let bound = u64::from(self.not_sent_bound(fd));
        let has_space = flow.connection.has_send_space() && (bound == 0 || 2 * unsent < bound);
        if !flow.takes_data() || has_space {
            ready |= OUT;
        }
        ready
    }

    /// How often a descriptor has woken who waits for it.
    fn wakes(&self, fd: i32) -> u64 {
        match self.sockets.get(&fd).map(|socket| socket.role) {
            Some(Role::Flow(index)) => self.flows[index].wakes,
            Some(Role::Listener) => self.flows.len() as u64,
            _ => 0,
        }
    }

    pub(super) fn poll(&mut self, watched: &[Watched], timeout: Option<Duration>) -> Returned {
        let found: Vec<u32> = watched
            .iter()
            .map(|one| self.readiness(one.fd) & (one.events | ERR | HUP | NVAL))
            .collect();
        let ready = found.iter().filter(|events| **events != 0).count();
        if ready == 0 {
            return self.wait(timeout);
        }
        self.deadline = None;
        let differs = watched.iter().zip(&found).find(|(one, found)| one.ready != **found);
        match differs {
            Some((_, found)) => Returned::Stores("revents", i64::from(*found)),
            None => Returned::Value(ready as i64),
        }
    }

    /// Nothing is ready: the call waits, or its time is over.
    fn wait(&mut self, timeout: Option<Duration>) -> Returned {
        let Some(timeout) = timeout else { return Returned::Blocks("EAGAIN") };
        let deadline: Instant = *self.deadline.get_or_insert(self.now + timeout);
        if deadline <= self.now {
            self.deadline = None;
            return Returned::Value(0);
        }
        Returned::Blocks("EAGAIN")
    }

    pub(super) fn open_epoll(&mut self, call: &Call) -> Result<Returned, EndpointError> {
        let fd = self.free_descriptor(call)?;
        self.epolls.insert(fd, Epoll::default());
        Ok(Returned::Value(call.result))
    }

    pub(super) fn control_epoll(
        &mut self,
        fd: i32,
        change: EpollChange,
        of: i32,
        interest: Interest,
    ) -> Returned {
        if !self.sockets.contains_key(&of) {
            return Returned::Error("EBADF");
        }
        let Some(Epoll(entries)) = self.epolls.get_mut(&fd) else {
            return Returned::Error("EBADF");
        };
        let entry = Entry { interest, reported: None, is_spent: false };
        match (change, entries.contains_key(&of)) {
            (EpollChange::Add, true) => return Returned::Error("EEXIST"),
            (EpollChange::Modify | EpollChange::Delete, false) => return Returned::Error("ENOENT"),
            (EpollChange::Delete, true) => entries.remove(&of),
            (EpollChange::Add | EpollChange::Modify, _) => entries.insert(of, entry),
        };
        Returned::Value(0)
    }

    pub(super) fn wait_for_epoll(
        &mut self,
        fd: i32,
        expected: Interest,
        timeout: Option<Duration>,
    ) -> Returned {
        let Some(Epoll(entries)) = self.epolls.get(&fd) else { return Returned::Error("EBADF") };
        let reports = |(of, entry): (&i32, &Entry)| {
            let events = self.readiness(*of) & (entry.interest.events | ERR | HUP);
            let wakes = self.wakes(*of);
            let known = entry.interest.events & EDGE != 0 && entry.reported == Some(wakes);
            let due = events != 0 && !known && !entry.is_spent;
            due.then_some((*of, entry.interest.fd, events, wakes))
        };
        let Some((of, reported, events, wakes)) = entries.iter().find_map(reports) else {
            return self.wait(timeout);
        };
        self.deadline = None;
        if let Some(entry) = self.epolls.get_mut(&fd).and_then(|epoll| epoll.0.get_mut(&of)) {
            entry.reported = Some(wakes);
            entry.is_spent = entry.interest.events & ONE_SHOT != 0;
        }
        if expected == (Interest { fd: reported, events }) {
            return Returned::Value(1);
        }
        Returned::Stores("event", i64::from(events))
    }
}

// Of `poll.h`, and for epoll alike.
const IN: u32 = 0x1;
const OUT: u32 = 0x4;
const ERR: u32 = 0x8;
const HUP: u32 = 0x10;
const NVAL: u32 = 0x20;
const RDHUP: u32 = 0x2000;
const ONE_SHOT: u32 = 1 << 30;
const EDGE: u32 = 1 << 31;
