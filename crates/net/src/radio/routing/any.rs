//! A router whose protocol is chosen when the network is built.

use std::fmt::Debug;

use weir_units::Instant;

use super::aodv::{Aodv, AodvConfig};
use super::dsr::{Dsr, DsrConfig};
use super::fixed::{StaticRouter, StaticRoutes};
use super::message::Message;
use super::{LinkFailure, Router, RouterCx};
use crate::Parcel;
use crate::radio::datagram::{Datagram, NodeId};

/// Which routing protocol, with its parameters.
#[derive(Clone, Debug, PartialEq)]
pub enum RouterConfig {
    /// Shortest paths, computed once.
    Static(StaticRoutes),
    /// Ad hoc on-demand distance vector routing.
    Aodv(AodvConfig),
    /// Dynamic source routing.
    Dsr(DsrConfig),
}

/// A router of any protocol.
#[derive(Debug)]
pub enum AnyRouter<P> {
    /// Shortest paths, computed once.
    Static(StaticRouter<P>),
    /// Ad hoc on-demand distance vector routing.
    Aodv(Box<Aodv<P>>),
    /// Dynamic source routing.
    Dsr(Box<Dsr<P>>),
}

impl RouterConfig {
    /// The router of `node`.
    pub fn build<P>(&self, _node: NodeId) -> AnyRouter<P> {
        match self {
            Self::Static(routes) => AnyRouter::Static(StaticRouter::new(routes.clone())),
            Self::Aodv(config) => AnyRouter::Aodv(Box::new(Aodv::new(config))),
            Self::Dsr(config) => AnyRouter::Dsr(Box::new(Dsr::new(config))),
        }
    }
}

macro_rules! each {
    ($router:expr, $inner:ident => $call:expr) => {
        match $router {
            AnyRouter::Static($inner) => $call,
            AnyRouter::Aodv($inner) => $call,
            AnyRouter::Dsr($inner) => $call,
        }
    };
}

impl<P: Parcel + Debug> Router<P> for AnyRouter<P> {
    type Message = Message;

    fn originate(&mut self, cx: &mut RouterCx<'_, P, Message>, datagram: Datagram<P, Message>) {
        each!(self, router => router.originate(cx, datagram));
    }

    fn received(
        &mut self,
        cx: &mut RouterCx<'_, P, Message>,
        from: NodeId,
        datagram: Datagram<P, Message>,
    ) {
        each!(self, router => router.received(cx, from, datagram));
    }

    fn link_failed(&mut self, cx: &mut RouterCx<'_, P, Message>, failure: LinkFailure<P, Message>) {
        each!(self, router => router.link_failed(cx, failure));
    }

    fn next_timeout(&self) -> Option<Instant> {
        each!(self, router => router.next_timeout())
    }

    fn handle_timeout(&mut self, cx: &mut RouterCx<'_, P, Message>) {
        each!(self, router => router.handle_timeout(cx));
    }
}

#[cfg(test)]
impl<P> AnyRouter<P> {
    /// The AODV router that it is.
    pub(super) fn aodv(&mut self) -> &mut Aodv<P> {
        match self {
            Self::Aodv(router) => router,
            _ => panic!("another protocol"),
        }
    }

    /// The DSR router that it is.
    pub(super) fn dsr(&mut self) -> &mut Dsr<P> {
        match self {
            Self::Dsr(router) => router,
            _ => panic!("another protocol"),
        }
    }
}
