//! Where a run takes place: two namespaces with the kernel's sockets in them.

use std::os::fd::OwnedFd;

use weir_scene::RunSpec;

use super::KernelError;
use super::check::kernel_config;
use super::machine::{self, Setting};
use super::sockets::{self, FIRST_PORT};
use weir_links::emulator::{Classify, Namespace, Options};

/// The namespaces, and what is made in them before the time begins.
pub(super) struct Namespaces {
    pub(super) sending: Namespace,
    pub(super) receiving: Namespace,
    pub(super) connectors: Vec<Option<OwnedFd>>,
    pub(super) listeners: Vec<Option<OwnedFd>>,
    pub(super) settings: Vec<Setting>,
}

impl Namespaces {
    pub(super) fn prepare(spec: &RunSpec, settings: Vec<Setting>) -> Result<Self, KernelError> {
        let (sending, receiving) = (Namespace::new()?, Namespace::new()?);
        for namespace in [&sending, &receiving] {
            let applied = settings.clone();
            namespace
                .run(move || machine::apply(&applied))
                .map_err(|error| KernelError::System { what: "telling TCP its settings", error })?;
        }
        let refused = |error| KernelError::System { what: "opening TCP sockets", error };
        let wanted = spec.clone();
        let connectors = sending.run(move || sockets::connectors(&wanted)).map_err(refused)?;
        let wanted = spec.clone();
        let listeners = receiving.run(move || sockets::listeners(&wanted)).map_err(refused)?;
        Ok(Self { sending, receiving, connectors, listeners, settings })
    }

    pub(super) fn ends(&self) -> [&Namespace; 2] {
        [&self.sending, &self.receiving]
    }
}

/// Devices that take the longest segment of any flow.
pub(super) fn options(spec: &RunSpec) -> Options {
    const HEADERS: u32 = 40;
    const ETHERNET: u32 = 1_500;
    let configs = spec.flows.iter().filter_map(kernel_config);
    let longest = configs.map(|config| config.mss + sockets::options_len(config) + HEADERS);
    let mtu = longest.max().unwrap_or(ETHERNET).max(ETHERNET);
    let mtu = u16::try_from(mtu).expect("no segment is longer than a packet");
    Options { mtu, classify: Classify::ByPort { first: FIRST_PORT }, ..Options::default() }
}
