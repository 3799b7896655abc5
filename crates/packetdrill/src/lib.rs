//! packetdrill's scripts in virtual time.
//!
//! A script injects packets into a TCP stack, calls its socket interface, and states which packets it must
//! send and when. [`parse`] reads packetdrill's language; [`run`] executes a script against an
//! [`Endpoint`]. [`Simulated`] is Weir's transport as such an endpoint; `weir-kernel` has Linux's TCP.
//!
//! ```
//! use weir_packetdrill::{Simulated, parse, run};
//!
//! let script = parse(
//!     "
//!     0 socket(..., SOCK_STREAM, IPPROTO_TCP) = 3
//!     +0 bind(3, ..., ...) = 0
//!     +0 listen(3, 1) = 0
//!     +0 < S 0:0(0) win 32792 <mss 1000,sackOK,nop,nop,nop,wscale 7>
//!     +0 > S. 0:0(0) ack 1 <...>
//!     +.1 < . 1:1(0) ack 1 win 257
//!     +0 accept(3, ..., ...) = 4
//!     +0 write(4, ..., 2000) = 2000
//!     +0 > P. 1:2001(2000) ack 1
//!     +.1 %{ assert tcpi_unacked == 2 }%
//!     ",
//! )?;
//! let mut endpoint = Simulated::new(&script.settings);
//! assert!(run(&script, &mut endpoint).is_ok());
//! # Ok::<(), weir_packetdrill::ScriptError>(())
//! ```

mod compare;
mod endpoint;
mod error;
mod expr;
mod fast_open;
mod info;
mod packet;
mod parse;
mod run;
mod script;
mod simulated;

pub use endpoint::{Endpoint, EndpointError, Received, Returned, Sent};
pub use error::ScriptError;
pub use fast_open::{Cookie, FastOpen, Key};
pub use info::{INFINITE_SSTHRESH, Info, Name};
pub use parse::parse;
pub use run::{Failure, RunError, run};
pub use script::{
    Action, Call, CallKind, EpollChange, Event, Exception, ExceptionKind, FastOpenSwitch, Head,
    Interest, Options, Packet, ReadFlags, Script, Settings, Shut, SocketOption, Sysctl, Watched,
    When, WriteFlags,
};
pub use simulated::Simulated;
