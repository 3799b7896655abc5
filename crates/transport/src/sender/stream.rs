//! The stream that is sent: what the application has written, and its end.

use weir_units::{Bytes, Instant};

use super::{Sender, buffer};
use crate::HostProfile;

impl Sender {
    /// The application has `bytes` more to send.
    pub(crate) fn write(&mut self, bytes: u64) {
        self.only_repairs = false;
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
        if self.buffer.is_none() || self.max_window == 0 {
            return;
        }
        let window = self.cwnd();
        let unsent = Bytes(self.written.saturating_sub(self.board.nxt()));
        let is_short = self.board.in_flight() + unsent < window;
        let held = self.held();
        let Some(buffer) = &mut self.buffer else { return };
        if is_short {
            buffer.on_shortage(window.get() / self.mss);
        }
        buffer.on_acked(self.board.una());
        self.written += buffer.fill(&held, self.max_window);
    }

    fn held(&self) -> buffer::Held {
        let (una, nxt) = (self.board.una(), self.board.nxt());
        let unsent = self.written.saturating_sub(nxt).div_ceil(self.mss);
        let pieces = self.board.segments() as u64 - self.board.merged(self.mss) + unsent;
        let bytes = self.written.saturating_sub(una);
        buffer::Held { bytes, pieces, nxt, written: self.written }
    }

    /// Whether the buffer has space for a writer who waits.
    pub(crate) fn has_space(&self) -> bool {
        self.buffer.as_ref().is_none_or(|buffer| buffer.has_space(&self.held()))
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

    /// Notes that the next `bytes` left at `at`, with the SYN.
    pub(crate) fn left_with_syn(&mut self, at: Instant, bytes: u64) {
        let mut left = bytes.min(self.new_data());
        while left > 0 {
            let size = left.min(self.mss);
            self.send_new(at, size);
            left -= size;
        }
        self.small_until = 0;
    }

    /// What is still outstanding is sent again at once: the peer did not take it (`tcp_rcv_fastopen_synack`).
    pub(crate) fn resend_early(&mut self) {
        let outstanding = self.board.segments().min(u8::MAX.into()) as u8;
        self.board.lose_where(|_, _| true);
        // It is none of the path's.
        self.board.take_last_loss();
        self.early_repairs = outstanding;
    }

    /// Whether that is still to happen.
    pub(crate) fn repairs_early(&self) -> bool {
        self.early_repairs > 0
    }

    /// Changes what the buffer may take, or gives it a bound.
    pub(crate) fn set_send_buffer(&mut self, size: Bytes, overhead: Bytes) {
        match &mut self.buffer {
            Some(buffer) => buffer.set_size(size),
            None => {
                self.buffer = Some(buffer::SendBuffer::new(size, size, overhead, self.mss));
            }
        }
    }

    /// As `write`, but only as much as fits the buffer at once. Returns how much that is.
    pub(crate) fn write_fitting(&mut self, bytes: u64) -> u64 {
        self.write(bytes);
        let left = self.buffer.as_ref().map_or(0, buffer::SendBuffer::waiting);
        if let Some(buffer) = &mut self.buffer {
            buffer.withdraw();
        }
        bytes - left
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
    #[inline]
    pub(super) fn is_pushed(&self, start: u64, end: u64) -> bool {
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
