//! The stream that is sent: what the application has written, and its end.

use weir_units::Bytes;

use super::{Sender, buffer};
use crate::HostProfile;

impl Sender {
    /// The application has `bytes` more to send.
    pub(crate) fn write(&mut self, bytes: u64) {
        if self.host_profile == HostProfile::Kernel && self.has_run_dry() {
            self.sampler.on_app_limited(self.board.in_flight());
        }
        match &mut self.buffer {
            None => self.written += bytes,
            Some(buffer) => buffer.write(bytes),
        }
        self.fill_buffer();
    }

    /// Takes what the application has and the buffer can hold, once the peer's window is known.
    pub(super) fn fill_buffer(&mut self) {
        let window = self.cwnd();
        let unsent = Bytes(self.written.saturating_sub(self.board.nxt()));
        let is_short = self.board.in_flight() + unsent < window;
        let Some(buffer) = self.buffer.as_mut().filter(|_| self.max_window > 0) else { return };
        if is_short {
            buffer.on_shortage(window.get() / self.mss);
        }
        let (una, nxt) = (self.board.una(), self.board.nxt());
        let unsent = self.written.saturating_sub(nxt).div_ceil(self.mss);
        let pieces = self.board.segments() as u64 - self.board.merged(self.mss) + unsent;
        let bytes = self.written.saturating_sub(una);
        let held = buffer::Held { bytes, pieces, nxt, written: self.written };
        buffer.on_acked(una);
        self.written += buffer.fill(&held, self.max_window);
    }

    /// Whether the sender could have sent more than the application had written. Linux asks when the
    /// application comes with more (`tcp_rate_check_app_limited`): what is sent again until then
    /// bounds nothing.
    fn has_run_dry(&self) -> bool {
        let unsent = self.written().saturating_sub(self.board.nxt());
        let repairs = self.board.lost() > self.board.resent();
        unsent < self.mss && !repairs && self.board.in_flight() < self.cwnd()
    }

    /// What was written and never sent is not to be sent.
    pub(crate) fn withdraw(&mut self) {
        if !self.finishing {
            self.written = self.board.nxt();
            if let Some(buffer) = &mut self.buffer {
                buffer.withdraw();
            }
        }
    }

    /// Switches Nagle's rule.
    pub(crate) fn set_nagle(&mut self, on: bool) {
        self.nagle = on;
    }

    /// A FIN follows everything written.
    pub(crate) fn finish(&mut self) {
        self.finishing = true;
    }

    /// Bytes that the application has written so far, whether they fitted the buffer or not.
    pub(crate) fn written(&self) -> u64 {
        self.written + self.buffer.as_ref().map_or(0, buffer::SendBuffer::waiting)
    }

    /// Whether the FIN follows what the buffer has.
    pub(super) fn ends_here(&self) -> bool {
        self.finishing && self.written == self.written()
    }

    /// Whether a segment is pushed: its end is that of what was written, or was when its buffer was
    /// full, or a push was forced there.
    pub(crate) fn is_pushed(&self, start: u64, end: u64) -> bool {
        let in_buffer = match &self.buffer {
            Some(buffer) => buffer.is_pushed(end),
            None => buffer::is_forced_at_first(start, end),
        };
        end == self.written || in_buffer
    }

    pub(crate) fn is_finishing(&self) -> bool {
        self.finishing
    }

    pub(crate) fn fin_acked(&self) -> bool {
        self.ends_here() && self.board.una() > self.written
    }
}
