//! Frames between senders and receivers.

use weir_units::{Ratio, Rng};

use super::super::audience::Group;
use super::super::datagram::NodeId;
use super::super::dcf::{Action, Attempt, FrameKind, Header, Outcome};
use super::super::events::Due;
use super::super::frames::{Frame, FrameCargo, Origin};
use super::super::ifq::Packet;
use super::super::receiver::{Begun, Ended, Signal};
use super::super::routing::Router;
use super::super::stats::RadioStats;
use super::Radio;
use weir_net::Parcel;

impl<P, R> Radio<P, R>
where
    P: Parcel + Clone,
    R: Router<P>,
    R::Message: Clone,
{
    /// A frame begins at those of a group.
    pub(super) fn begin(&mut self, key: u32, group: u16) {
        let Some(frame) = self.frames.get(key) else { return };
        let (sender, airtime) = (usize::from(frame.header.from.0), frame.header.airtime);
        let (now, capture) = (self.now, self.config.capture);
        let until = now + airtime;
        self.agenda.push(until, Due::End { frame: key, group });
        let Group { first, end, .. } = self.audiences.group(sender, group);
        for index in first..end {
            let hearer = self.audiences.hearer(sender, index);
            let number = usize::from(hearer.node);
            let node = &mut self.nodes[number];
            let readable = hearer.readable && node.sending_until <= now;
            let signal = Signal { frame: key, until, power: hearer.power, readable };
            match node.receiver.begin(signal, capture) {
                Begun::Occupies => node.dcf.carrier_on(now),
                Begun::Ignored => node.dcf.ignored(now, airtime),
                Begun::Collides => {}
            }
            node.occupy(now, until.max(node.dcf.nav()));
            self.arm_mac(number);
        }
    }

    /// It ends there.
    pub(super) fn end(&mut self, key: u32, group: u16) {
        let Some(frame) = self.frames.get(key) else { return };
        let header = frame.header;
        let sender = usize::from(header.from.0);
        let Group { first, end, .. } = self.audiences.group(sender, group);
        for index in first..end {
            let number = usize::from(self.audiences.hearer(sender, index).node);
            self.end_at(number, key, &header);
        }
        self.release(key);
    }

    /// The deadline of a node's MAC.
    pub(super) fn mac_timeout(&mut self, number: usize, generation: u32) {
        let node = &mut self.nodes[number];
        if node.mac_generation != generation {
            return;
        }
        node.mac_armed = None;
        if node.dcf.deadline() != Some(self.now) {
            return self.arm_mac(number);
        }
        let action = node.dcf.handle_timeout(self.now);
        self.perform(number, action);
        self.settle_mac(number);
    }

    /// The MAC looks about, and the agenda learns of its deadline.
    pub(super) fn settle_mac(&mut self, number: usize) {
        self.nodes[number].dcf.settle(self.now);
        self.arm_mac(number);
    }

    /// Every frame that is heard puts a backoff off: the agenda then keeps the earlier time, and the
    /// MAC's new deadline is looked up when that has come.
    fn arm_mac(&mut self, number: usize) {
        let node = &mut self.nodes[number];
        let Some(deadline) = node.dcf.deadline() else { return };
        if node.mac_armed.is_none_or(|armed| deadline < armed) {
            node.mac_armed = Some(deadline);
            node.mac_generation = node.mac_generation.wrapping_add(1);
            let generation = node.mac_generation;
            self.agenda.push(deadline, Due::Mac { node: number as u16, generation });
        }
    }

    fn end_at(&mut self, number: usize, key: u32, header: &Header) {
        let now = self.now;
        let node = &mut self.nodes[number];
        let Some(fate) = node.receiver.end(key) else { return };
        node.dcf.carrier_off(now);
        let meant = header.to.is_broadcast() || usize::from(header.to.0) == number;
        let sends = node.sending_until > now;
        let errs = meant && header.kind == FrameKind::Data && fate == Ended::Readable && !sends;
        let damaged = errs && chance(self.config.frame_error, &mut self.errors);
        match fate {
            _ if sends => {}
            Ended::Readable if !damaged => self.read(number, key, header, meant),
            _ => {
                node.stats.collisions += u64::from(fate == Ended::Collided);
                node.dcf.received_garbage(now);
            }
        }
        let node = &mut self.nodes[number];
        node.occupy(now, node.dcf.nav());
        self.settle_mac(number);
    }

    fn read(&mut self, number: usize, key: u32, header: &Header, meant: bool) {
        if let Some(frame) = self.frames.get_mut(key).filter(|_| meant) {
            frame.readers += 1;
        }
        if !meant && header.kind == FrameKind::Data && self.nodes[number].router.overhears() {
            self.overhear(number, header);
        }
        match self.nodes[number].dcf.received(self.now, header) {
            Action::Deliver => self.deliver(number, key, header),
            Action::Duplicate => self.nodes[number].stats.duplicates += 1,
            action => self.perform(number, action),
        }
    }

    /// A data frame for another node: the router reads along.
    fn overhear(&mut self, number: usize, header: &Header) {
        let current = self.nodes[usize::from(header.from.0)].current.as_ref();
        if let Some(Packet::Datagram(datagram)) = current.map(|current| &current.packet) {
            let datagram = datagram.clone();
            self.route(number, |router, cx| router.overheard(cx, header.from, &datagram));
        }
    }

    /// A data frame is for this node: a copy of its packet goes up.
    fn deliver(&mut self, number: usize, key: u32, header: &Header) {
        let packet = if header.to.is_broadcast() {
            self.frames.get(key).and_then(|frame| frame.body.clone())
        } else {
            let sender = &mut self.nodes[usize::from(header.from.0)];
            sender.current.as_mut().map(|current| {
                current.taken = true;
                current.packet.clone()
            })
        };
        if let Some(packet) = packet {
            self.deliver_up(number, header.from, packet);
        }
    }

    fn perform(&mut self, number: usize, action: Action) {
        let stats = &mut self.nodes[number].stats;
        match action {
            Action::Nothing | Action::Deliver | Action::Duplicate => {}
            Action::Retry(attempt) => count_attempt(stats, attempt),
            Action::Transmit(header) => self.transmit(number, header),
            Action::Finished { outcome, retries } => {
                if let Outcome::GivenUp(attempt) = outcome {
                    count_attempt(stats, attempt);
                }
                self.finish(number, outcome, retries);
            }
        }
    }

    fn transmit(&mut self, number: usize, header: Header) {
        let groups = self.audiences.refresh(number);
        let node = &mut self.nodes[number];
        count_frame(&mut node.stats, &header);
        let end = self.now + header.airtime;
        node.receiver.on_transmit();
        node.sending_until = end;
        node.occupy(self.now, end);
        let own = matches!(header.kind, FrameKind::Rts | FrameKind::Data);
        let packet = node.current.as_mut().map(|current| &mut current.packet).filter(|_| own);
        let body = packet.as_deref().filter(|_| header.to.is_broadcast()).cloned();
        let place = self.audiences.position(number).filter(|_| self.log.has_space());
        let waiting = node.queue.len() as u32;
        let origin = place.map(|place| {
            let cargo = packet.and_then(|packet| packet.parcel_mut()).map(FrameCargo::of);
            Origin { place, waiting, cargo }
        });
        let frame = Frame { header, start: self.now, body, origin, readers: 0, groups };
        let key = self.frames.insert(frame);
        for group in 0..groups {
            let delay = self.audiences.group(number, group).delay;
            self.agenda.push(self.now + delay, Due::Begin { frame: key, group });
        }
        if groups == 0 {
            self.close(key);
        }
    }

    /// The frame has ended at one more group.
    fn release(&mut self, key: u32) {
        let Some(frame) = self.frames.get_mut(key) else { return };
        frame.groups -= 1;
        if frame.groups == 0 {
            self.close(key);
        }
    }

    fn close(&mut self, key: u32) {
        let Some(frame) = self.frames.take(key) else { return };
        let Header { from, to, .. } = frame.header;
        if frame.readers == 0 && to != NodeId::BROADCAST {
            self.nodes[usize::from(from.0)].stats.lost += 1;
        }
        self.log.push(&frame);
    }
}

/// Draws only where there is a chance at all.
pub(super) fn chance(ratio: Ratio, rng: &mut Rng) -> bool {
    ratio != Ratio::ZERO && ratio.chance(rng)
}

fn count_attempt(stats: &mut RadioStats, attempt: Attempt) {
    match attempt {
        Attempt::Short => stats.short_retries += 1,
        Attempt::Long => stats.long_retries += 1,
    }
}

fn count_frame(stats: &mut RadioStats, header: &Header) {
    let counter = match header.kind {
        FrameKind::Rts => &mut stats.rts,
        FrameKind::Cts => &mut stats.cts,
        FrameKind::Ack => &mut stats.acks,
        FrameKind::Data if header.to.is_broadcast() => &mut stats.broadcasts,
        FrameKind::Data => &mut stats.data,
    };
    *counter += 1;
    stats.airtime += header.airtime;
}
