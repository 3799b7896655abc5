//! Network namespaces that belong to threads of ours.

use std::fs::File;
use std::io;
use std::net::{Ipv4Addr, Ipv6Addr};
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::path::{Path, PathBuf};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::thread::JoinHandle;

use nix::sched::{CloneFlags, setns, unshare};
use weir_sockets::clock;

use super::netlink;

/// A network namespace with a thread of ours in it.
///
/// One that is made new has no name and no file: nothing of it is left behind, whatever ends our
/// process. It lives until this is dropped and the last process that was started in it has ended.
#[derive(Debug)]
pub struct Namespace {
    /// Closed when this is dropped, which ends the thread.
    jobs: Option<Sender<Job>>,
    thread: Option<JoinHandle<()>>,
    file: PathBuf,
    /// Whether it is ours alone, with settings that may be changed.
    is_new: bool,
}

/// Why there is no namespace.
#[derive(Debug, thiserror::Error)]
pub enum NamespaceError {
    /// A new one cannot be had.
    #[error("cannot make a network namespace: {0}")]
    New(io::Error),
    /// One that exists cannot be entered.
    #[error("cannot enter the network namespace {file}: {error}")]
    Enter {
        /// The file that stands for it.
        file: PathBuf,
        /// Why.
        error: io::Error,
    },
}

type Job = Box<dyn FnOnce() + Send>;

impl Namespace {
    /// A new one: its loopback works, it has no other interface, and IPv6 is off, so that nothing is
    /// sent but what programs send.
    ///
    /// # Errors
    /// If the system does not allow it. Requires root.
    pub fn new() -> Result<Self, NamespaceError> {
        let make = || {
            unshare(CloneFlags::CLONE_NEWNET)?;
            turn_ipv6_off();
            netlink::bring_up_loopback()
        };
        let mut made = Self::start(make).map_err(NamespaceError::New)?;
        made.is_new = true;
        Ok(made)
    }

    /// One that exists, given by a file that stands for it, as `/run/netns/NAME` or
    /// `/proc/PID/ns/net`. It is left as it is.
    ///
    /// # Errors
    /// If there is no such file, it stands for something else, or the system does not allow it.
    pub fn enter(file: &Path) -> Result<Self, NamespaceError> {
        let refused = |error| NamespaceError::Enter { file: file.to_owned(), error };
        let opened = File::open(file).map_err(refused)?;
        Self::start(move || Ok(setns(opened, CloneFlags::CLONE_NEWNET)?)).map_err(refused)
    }

    /// Runs `closure` on the thread in this namespace, one at a time. Sockets, devices and processes
    /// that it makes belong to the namespace for good; files under `/proc/sys/net` and
    /// `/proc/thread-self/net` that it opens are the namespace's.
    ///
    /// # Panics
    /// If `closure` panics.
    pub fn run<T: Send + 'static>(&self, closure: impl FnOnce() -> T + Send + 'static) -> T {
        let (done, result) = channel();
        let job = move || {
            // This thread waits for the result, so it is still there.
            let _ = done.send(catch_unwind(AssertUnwindSafe(closure)));
        };
        let jobs = self.jobs.as_ref().expect("only dropping takes it");
        jobs.send(Box::new(job)).expect("the thread works until this is dropped");
        let result = result.recv().expect("the thread ends each job that it begins");
        result.unwrap_or_else(|panic| resume_unwind(panic))
    }

    /// Sends whatever has no route in here to `gateway`, at the other end of a device.
    ///
    /// # Errors
    /// If `gateway` is no neighbour, or there is such a route already.
    pub fn route_all_by(&self, gateway: Ipv4Addr) -> io::Result<()> {
        self.run(move || netlink::route_all_by(gateway))
    }

    /// Turns IPv6 on for a device of ours, which gets an address and the network of its first `prefix`
    /// bits, and in a new namespace for loopback.
    ///
    /// # Errors
    /// If the kernel has no IPv6, or the device has this address already.
    pub fn add_ipv6(&self, device: &str, address: Ipv6Addr, prefix: u8) -> io::Result<()> {
        let (device, is_new) = (device.to_owned(), self.is_new);
        self.run(move || {
            set_ipv6(&device, DISABLE_IPV6, "0")?;
            if is_new {
                set_ipv6("lo", DISABLE_IPV6, "0")?;
            }
            netlink::add_ipv6(&device, address, prefix)
        })
    }

    /// Moves the calling thread in here, for good.
    ///
    /// # Errors
    /// If the system does not allow it.
    pub fn move_caller(&self) -> io::Result<()> {
        Ok(setns(File::open(&self.file)?, CloneFlags::CLONE_NEWNET)?)
    }

    /// The file that stands for it while this lives: other processes enter by it, as with
    /// `nsenter --net=FILE`.
    pub fn file(&self) -> &Path {
        &self.file
    }

    fn start(enter: impl FnOnce() -> io::Result<()> + Send + 'static) -> io::Result<Self> {
        let (entered, entry) = channel();
        let (jobs, queue): (Sender<Job>, Receiver<Job>) = channel();
        let thread = std::thread::Builder::new().name("namespace".to_owned());
        let thread = thread.spawn(move || {
            // Who makes it may be punctual; what is started in here is not.
            clock::use_ordinary_priority();
            let result = enter().map(|()| own_file());
            let failed = result.is_err();
            if entered.send(result).is_err() || failed {
                return;
            }
            queue.iter().for_each(|job| job());
        })?;
        let file = entry.recv().expect("the thread says how it went")?;
        Ok(Self { jobs: Some(jobs), thread: Some(thread), file, is_new: false })
    }
}

impl Drop for Namespace {
    fn drop(&mut self) {
        self.jobs = None;
        if let Some(thread) = self.thread.take() {
            // A job that panicked has reported it to its caller.
            let _ = thread.join();
        }
    }
}

/// The file that stands for the namespace of the calling thread.
fn own_file() -> PathBuf {
    let (process, thread) = (std::process::id(), rustix::thread::gettid());
    format!("/proc/{process}/task/{}/ns/net", thread.as_raw_nonzero()).into()
}

/// Where there is no IPv6, there is nothing to turn off.
fn turn_ipv6_off() {
    for interface in ["all", "default"] {
        let _ = set_ipv6(interface, DISABLE_IPV6, "1");
    }
}

/// The kernel itself sends nothing over this device, which is not up yet: without a link-local address
/// it solicits no router, and it accepts no advertisement. Where there is no IPv6, nothing is to be done.
pub(super) fn keep_ipv6_quiet(device: &str) {
    // 1: no address is generated (ip-sysctl.rst).
    for (name, value) in [("addr_gen_mode", "1"), ("accept_ra", "0")] {
        let _ = set_ipv6(device, name, value);
    }
}

/// Writes a setting of IPv6 of an interface in the namespace of the calling thread.
fn set_ipv6(interface: &str, name: &str, value: &str) -> io::Result<()> {
    std::fs::write(format!("/proc/sys/net/ipv6/conf/{interface}/{name}"), value)
}

const DISABLE_IPV6: &str = "disable_ipv6";
