//! A router whose protocol is chosen when the network is built.

use std::fmt::Debug;

use weir_units::Instant;

use super::abr::{Abr, AbrConfig};
use super::aodv::{Aodv, AodvConfig};
use super::dsr::{Dsr, DsrConfig};
use super::fixed::{StaticRouter, StaticRoutes};
use super::messages::Message;
use super::notices::Notices;
use super::{LinkFailure, Router, RouterCx};
use crate::datagram::{Datagram, NodeId};
use weir_net::Parcel;

/// Which routing protocol, with its parameters.
#[derive(Clone, Debug, PartialEq)]
pub enum RouterConfig {
    /// Shortest paths, computed once.
    Static(StaticRoutes),
    /// Ad hoc on-demand distance vector routing.
    Aodv(AodvConfig),
    /// Dynamic source routing.
    Dsr(DsrConfig),
    /// Associativity-based routing.
    Abr(AbrConfig),
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
    /// Associativity-based routing.
    Abr(Box<Abr<P>>),
}

/// A combination that does not exist.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("TCP-BuS's notices come from ABR: choose it, or other notices")]
pub struct RouterConfigError;

impl RouterConfig {
    /// Whether the protocol knows the notices that it is to send.
    pub fn check(&self) -> Result<(), RouterConfigError> {
        let notices = match self {
            Self::Static(_) | Self::Abr(_) => return Ok(()),
            Self::Aodv(config) => config.notices,
            Self::Dsr(config) => config.notices,
        };
        if notices == Notices::Bus { Err(RouterConfigError) } else { Ok(()) }
    }

    /// The router of `node`.
    pub fn build<P>(&self, _node: NodeId) -> AnyRouter<P> {
        match self {
            Self::Static(routes) => AnyRouter::Static(StaticRouter::new(routes.clone())),
            Self::Aodv(config) => AnyRouter::Aodv(Box::new(Aodv::new(config))),
            Self::Dsr(config) => AnyRouter::Dsr(Box::new(Dsr::new(config))),
            Self::Abr(config) => AnyRouter::Abr(Box::new(Abr::new(config))),
        }
    }
}

macro_rules! each {
    ($router:expr, $inner:ident => $call:expr) => {
        match $router {
            AnyRouter::Static($inner) => $call,
            AnyRouter::Aodv($inner) => $call,
            AnyRouter::Dsr($inner) => $call,
            AnyRouter::Abr($inner) => $call,
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

    fn overhears(&self) -> bool {
        each!(self, router => router.overhears())
    }

    fn overheard(
        &mut self,
        cx: &mut RouterCx<'_, P, Message>,
        from: NodeId,
        datagram: &Datagram<P, Message>,
    ) {
        each!(self, router => router.overheard(cx, from, datagram));
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

    /// The ABR router that it is.
    pub(super) fn abr(&mut self) -> &mut Abr<P> {
        match self {
            Self::Abr(router) => router,
            _ => panic!("another protocol"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tcp_buss_notices_need_abr() {
        let aodv = AodvConfig { notices: Notices::Bus, ..AodvConfig::ns2() };
        let error = RouterConfig::Aodv(aodv).check().unwrap_err().to_string();
        assert_eq!(error, "TCP-BuS's notices come from ABR: choose it, or other notices");
        let abr = AbrConfig { notices: Notices::Bus, ..AbrConfig::default() };
        assert_eq!(RouterConfig::Abr(abr).check(), Ok(()));
        let dsr = DsrConfig { notices: Notices::Elfn, ..DsrConfig::default() };
        assert_eq!(RouterConfig::Dsr(dsr).check(), Ok(()));
    }
}
