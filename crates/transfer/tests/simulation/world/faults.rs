//! What goes wrong with hosts, disks and the network, and the end of it.

use super::World;
use crate::intruder::Intruder;
use crate::plan::Fault;

impl World<'_> {
    pub(super) fn strike(&mut self, fault: Fault) {
        let runs = self.receiver.program.is_some();
        match fault {
            Fault::KillReceiver(death, down) if runs => {
                self.receiver.machine.kill(death);
                self.receiver_died(death, down);
            }
            Fault::DoomReceiver(after, death, down) if runs => {
                self.receiver.machine.doom(after, death);
                self.receiver.down = down;
            }
            Fault::KillSender(n, death, down) if self.senders[n].program.is_some() => {
                self.senders[n].machine.kill(death);
                self.sender_died(n, death, down);
            }
            Fault::DoomSender(n, after, death, down) => {
                self.senders[n].machine.doom(after, death);
                self.senders[n].down = down;
            }
            Fault::Cut => self.set_cut(true),
            Fault::Reconnect => self.set_cut(false),
            Fault::Pause if runs => {
                self.tally.count("pauses of the receiver");
                self.receiver.paused = true;
            }
            Fault::Resume => self.receiver.paused = false,
            Fault::FillUp(left) => {
                self.tally.count("times that the disk fills up");
                self.receiver.machine.fill_up(left);
                self.checker.on_disk_fault();
            }
            Fault::DiskErrors(every) => {
                self.tally.count("times that the disk fails now and then");
                self.receiver.machine.fail_every(every);
                self.checker.on_disk_fault();
            }
            Fault::DiskError(after) => {
                self.tally.count("times that the disk fails once");
                self.receiver.machine.fail_once(after);
                self.checker.on_disk_fault();
            }
            Fault::Intrude(operations) => {
                let intruder = Intruder::of(self.rng.next_u64(), operations);
                self.receiver.machine.intrude(intruder);
                self.checker.on_intruder();
            }
            Fault::MendDisk => self.receiver.machine.mend(),
            _ => {}
        }
    }

    fn set_cut(&mut self, cut: bool) {
        self.tally.add("cuts of the network", u64::from(cut));
        self.receiver.cut = cut;
        self.network.set_cut(cut);
    }

    /// Nothing goes wrong from now on.
    pub(super) fn mend(&mut self) {
        self.say(|| "everything is mended".into());
        self.mended = true;
        self.set_cut(false);
        self.receiver.paused = false;
        self.receiver.machine.mend();
        self.receiver.machine.spare();
        for sender in &mut self.senders {
            sender.machine.spare();
        }
        self.network.set_conditions(self.plan.calm());
        self.hostile.0 = 0;
    }
}
