//! What a node learns from datagrams that pass between others (RFC 4728 §3.3.1, §3.4.3).
//!
//! It stands one hop from their sender, so the sender's way goes on from here as well, forwards and
//! back. If the node itself comes later on the way of a parcel, the nodes between are superfluous: it sends the source a gratuitous
//! reply with the shorter way, at most one per source and sender in `GratReplyHoldoff` (§4.4).
//!
//! Deviation: the way of a salvaged parcel is learned and not shortened, as it does not begin at the source.

use std::fmt::Debug;

use weir_units::{Duration, Instant};

use super::Dsr;
use crate::datagram::{Content, NodeId};
use crate::routing::messages::{DsrMessage, SourceRoute};
use crate::routing::{Cx, Message, Packet};
use weir_net::Parcel;

/// Gratuitous replies of late: the source, the node that was overheard, and until when there is no other.
#[derive(Clone, Debug, Default)]
pub(super) struct Shortened {
    replies: Vec<(NodeId, NodeId, Instant)>,
}

/// The most replies that are remembered.
pub(super) const REPLIES: usize = 64;

impl Shortened {
    /// Whether the last reply for `source` about `sender` is long enough ago; from now on it is not.
    fn is_due(&mut self, now: Instant, source: NodeId, sender: NodeId, hold_off: Duration) -> bool {
        self.replies.retain(|(.., until)| *until > now);
        let known = self.replies.iter().any(|(of, by, _)| (*of, *by) == (source, sender));
        if known || self.replies.len() == REPLIES {
            return false;
        }
        self.replies.push((source, sender, now.saturating_add(hold_off)));
        true
    }

    #[cfg(test)]
    pub(super) fn len(&self) -> usize {
        self.replies.len()
    }
}

impl<P: Parcel + Debug> Dsr<P> {
    /// `sender` has sent `datagram` to another node.
    pub(super) fn on_overheard(
        &mut self,
        cx: &mut Cx<'_, P>,
        sender: NodeId,
        datagram: &Packet<P>,
    ) {
        let message = match &datagram.content {
            Content::Parcel(_, Some(Message::Dsr(message)))
            | Content::Message(Message::Dsr(message), _) => message,
            _ => return,
        };
        match message {
            DsrMessage::Route(way) => {
                self.learn_beside(cx, sender, &way.path);
                self.shorten(cx, sender, way);
            }
            DsrMessage::Reply { path, .. } => self.learn_beside(cx, sender, path),
            DsrMessage::Error { broken: (a, b), .. } => self.cache.remove_link(*a, *b),
            DsrMessage::Request(_) | DsrMessage::Notice { .. } => {}
        }
    }

    /// Learns the ways from here over `sender` to both ends of `path`.
    fn learn_beside(&mut self, cx: &mut Cx<'_, P>, sender: NodeId, path: &[NodeId]) {
        let Some(at) = path.iter().position(|node| *node == sender) else { return };
        let from_here = |rest: &mut dyn Iterator<Item = NodeId>| -> Vec<NodeId> {
            std::iter::once(cx.node).chain(rest).collect()
        };
        let ahead = from_here(&mut path[at..].iter().copied());
        let back = from_here(&mut path[..=at].iter().rev().copied());
        self.learn(cx, &ahead);
        self.learn(cx, &back);
    }

    fn shorten(&mut self, cx: &mut Cx<'_, P>, sender: NodeId, way: &SourceRoute) {
        let at = usize::from(way.at);
        let here = way.path.iter().position(|node| *node == cx.node);
        let (Some(here), Some(source)) = (here, way.path.first().copied()) else { return };
        let superfluous = way.path.get(at) == Some(&sender) && here > at + 1;
        let hold_off = self.config.grat_reply_holdoff;
        if !superfluous
            || way.salvaged > 0
            || !self.shortened.is_due(cx.now, source, sender, hold_off)
        {
            return;
        }
        let short: Vec<NodeId> = [&way.path[..=at], &way.path[here..]].concat();
        let back: Vec<NodeId> =
            std::iter::once(cx.node).chain(way.path[..=at].iter().rev().copied()).collect();
        self.reply(cx, &back, short, Duration::ZERO);
    }
}
