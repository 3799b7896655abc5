//! Broken links: errors and salvaging (RFC 4728 §8.3.4, §8.3.6).

use std::fmt::Debug;

use weir_units::Duration;

use super::Dsr;
use crate::datagram::{Content, DropReason, NodeId};
use crate::routing::messages::{DsrMessage, NoticeMessage, SourceRoute};
use crate::routing::{Cx, LinkFailure, Message, Packet};
use weir_net::Parcel;

/// An error that is to be sent, one for each beginning of a way.
#[derive(Debug)]
struct Owed {
    way: SourceRoute,
    /// The notice of the first parcel that was lost.
    notice: Option<NoticeMessage>,
}

impl<P: Parcel + Debug> Dsr<P> {
    /// The link layer could not deliver: the link is broken for all that goes over it.
    pub(super) fn on_link_failure(&mut self, cx: &mut Cx<'_, P>, failure: LinkFailure<P, Message>) {
        let next_hop = failure.next_hop;
        self.cache.remove_link(cx.node, next_hop);
        let mut errors: Vec<Owed> = Vec::new();
        for datagram in std::iter::once(failure.datagram).chain(failure.waiting) {
            match &datagram.content {
                Content::Parcel(_, Some(Message::Dsr(DsrMessage::Route(way)))) => {
                    let way = way.clone();
                    self.on_undelivered(cx, datagram, &way, &mut errors);
                }
                // A lost reply or error is not reported: nothing may answer an error with an error.
                _ => cx.drop(datagram, DropReason::MacRetries),
            }
        }
        for Owed { way, notice } in errors {
            let error = DsrMessage::Error { way, broken: (cx.node, next_hop), notice };
            self.send_message(cx, error, Duration::ZERO);
        }
    }

    fn on_undelivered(
        &mut self,
        cx: &mut Cx<'_, P>,
        datagram: Packet<P>,
        way: &SourceRoute,
        errors: &mut Vec<Owed>,
    ) {
        if datagram.source == cx.node {
            if !self.cache.reaches(cx.now, datagram.destination) {
                cx.route_changed(datagram.destination, None);
                self.notices.failed(cx, &datagram);
            }
            return self.send_or_hold(cx, datagram);
        }
        let beginning = way.path.first().copied();
        let known = errors.iter().position(|it| it.way.path.last().copied() == beginning);
        let known = known.unwrap_or_else(|| {
            errors.push(Owed { way: way.back(), notice: None });
            errors.len() - 1
        });
        let Err(lost) = self.salvage(cx, datagram, way.salvaged) else { return };
        let notice = self.notices.failed(cx, &lost);
        let source = lost.source;
        cx.drop(lost, DropReason::MacRetries);
        let Some(notice) = notice else { return };
        if beginning == Some(source) && errors[known].notice.is_none() {
            errors[known].notice = Some(notice);
        } else {
            self.notify_source(cx, source, notice);
        }
    }

    /// Sends `datagram` along a way of this node's own, or hands it back.
    fn salvage(
        &mut self,
        cx: &mut Cx<'_, P>,
        datagram: Packet<P>,
        salvaged: u8,
    ) -> Result<(), Packet<P>> {
        if salvaged >= self.config.max_salvage {
            return Err(datagram);
        }
        let Some(path) = self.cache.find(cx.now, datagram.destination) else {
            return Err(datagram);
        };
        let way = SourceRoute { salvaged: salvaged + 1, ..SourceRoute::along(path) };
        self.send_along(cx, datagram, way);
        Ok(())
    }

    /// A notice that no error takes along travels by itself, if there is a way.
    fn notify_source(&mut self, cx: &mut Cx<'_, P>, source: NodeId, notice: NoticeMessage) {
        if let Some(path) = self.cache.find(cx.now, source) {
            let way = SourceRoute::along(path);
            self.send_message(cx, DsrMessage::Notice { way, notice }, Duration::ZERO);
        }
    }
}
