use std::cell::RefCell;
use std::rc::Rc;

use weir_sockets::socket::SendBatch;

use super::*;

/// Keeps who had a step and how much of it was work, in order.
type Steps = Rc<RefCell<Vec<(char, u64)>>>;

/// Has more work to do at every step, and is ready again at once.
struct Busy {
    name: char,
    each: u64,
    done: u64,
    steps: Steps,
}

impl Application for Busy {
    fn fill(&mut self, _: u64, _: &mut [u8]) -> io::Result<()> {
        Ok(())
    }

    fn store(&mut self, _: u64, _: &[u8]) -> io::Result<()> {
        Ok(())
    }

    fn work(&self) -> u64 {
        self.done
    }

    fn on_step(&mut self, _: Instant, _: &mut Connection) -> io::Result<()> {
        self.done += self.each;
        self.steps.borrow_mut().push((self.name, self.each));
        Ok(())
    }

    fn next_time(&self) -> Option<Instant> {
        Some(Instant::ZERO)
    }
}

struct Nowhere;

impl DatagramSink for Nowhere {
    fn send(&self, _: &SendBatch<'_>) -> io::Result<()> {
        Ok(())
    }

    fn max_segments(&self) -> usize {
        1
    }
}

/// Adds connections for each of whom there is this much work at every step.
fn add(core: &mut Core<Busy>, steps: &Steps, name: char, count: u16, each: u64) {
    for port in 1..=count {
        let busy = Busy { name, each, done: 0, steps: Rc::clone(steps) };
        let remote = ([192, 0, 2, 1], port).into();
        core.connect(Instant::ZERO, remote, &Config::default(), busy, &Nowhere);
    }
}

/// 300 attackers with 16 frames each would take thousands until anything else is read.
#[test]
fn a_step_does_a_bounded_amount_of_work_first_for_those_of_whom_it_did_least() {
    let mut core = Core::new(Randomness { secret: [7; 32], seed: 1 });
    let steps = Steps::default();
    let work = || steps.borrow().iter().map(|(_, work)| work).sum::<u64>();
    let had = |name| steps.borrow().iter().filter(|(one, _)| *one == name).count();
    let at = |ms| Instant::ZERO + Duration::from_millis(ms);
    add(&mut core, &steps, 's', 300, 16);
    let rounds = 2 * 300 * 16 / WORK_PER_STEP;
    for ms in 0..rounds {
        steps.borrow_mut().clear();
        core.step(at(ms), &Nowhere);
        assert_eq!(work(), WORK_PER_STEP);
        assert!(core.is_busy(), "the others are not forgotten");
    }
    // One that comes then has its turns at once, and so have those who need none of it.
    add(&mut core, &steps, 'h', 1, 1);
    for ms in rounds..rounds + 16 {
        steps.borrow_mut().clear();
        core.step(at(ms), &Nowhere);
        assert_eq!(steps.borrow()[0], ('h', 1));
        assert!(had('s') >= 3);
    }
}

#[test]
fn all_have_their_turn() {
    let mut core = Core::new(Randomness { secret: [7; 32], seed: 2 });
    let steps = Steps::default();
    add(&mut core, &steps, 'a', 40, 16);
    add(&mut core, &steps, 'b', 40, 8);
    for ms in 0..100 {
        core.step(Instant::ZERO + Duration::from_millis(ms), &Nowhere);
    }
    let had = |name| steps.borrow().iter().filter(|(one, _)| *one == name).count();
    assert!(had('a') > 100 && had('b') > 2 * had('a') - 80, "{} {}", had('a'), had('b'));
}
