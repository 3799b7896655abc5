use super::*;
use crate::file::SystemDisk;
use crate::file::testing::{TempDir, header_of, noise};

const LEN: usize = 9_000;

struct Host {
    folder: TempDir,
    content: Vec<u8>,
    claims: Claims,
}

impl Host {
    fn new() -> Self {
        Self { folder: TempDir::new(), content: noise(LEN), claims: Claims::default() }
    }

    fn open(&self) -> Partial {
        let header = header_of("x", &self.content);
        Partial::open(&SystemDisk::shared(), self.folder.path(), &header).expect("writable")
    }

    /// A session that has the first `bytes`.
    fn session(&self, bytes: usize) -> Rc<Claim> {
        let partial = self.open();
        let claim = self.claims.claim(*partial.content().1, partial);
        claim.write(0, &self.content[..bytes]).expect("space");
        claim
    }
}

fn at(millis: u64) -> Instant {
    Instant::ZERO + Duration::from_millis(millis)
}

#[test]
fn a_third_session_continues_with_what_the_second_took_over() {
    let host = Host::new();
    let first = host.session(5_000);
    let (mut of_second, second) =
        (host.claims.competitor(&first.hash()).unwrap(), host.session(100));
    let (mut of_third, third) = (host.claims.competitor(&first.hash()).unwrap(), host.session(200));
    assert!(matches!(of_second.look(at(0)), Health::Unknown));
    assert!(matches!(of_third.look(at(0)), Health::Unknown));

    let Health::Gone(left) = of_second.look(at(600)) else { panic!("the first is silent") };
    assert_eq!(second.merge(*left).expect("writable"), 5_000);
    assert!(matches!(of_third.look(at(600)), Health::TakenOver));

    let mut further = host.claims.further(&third, 200, at(600)).expect("the second has more");
    assert!(matches!(further.look(at(1_000)), Health::Unknown), "it may be alive");
    let Health::Gone(left) = further.look(at(1_200)) else { panic!("the second is silent") };
    assert_eq!(third.merge(*left).expect("writable"), 5_000);
    assert!(host.claims.further(&third, 5_000, at(1_200)).is_none());
}

#[test]
fn sessions_with_as_many_bytes_do_not_wait_for_each_other() {
    let host = Host::new();
    let (one, other) = (host.session(100), host.session(100));
    assert!(host.claims.further(&one, 100, at(0)).is_none());
    assert!(host.claims.further(&other, 100, at(0)).is_none());
}

#[test]
fn a_killed_receiver_keeps_the_bytes_of_two_merged_files() {
    let host = Host::new();
    let first = host.session(3_000);
    first.with(Partial::note).unwrap().expect("space");
    let second = host.session(8_000);
    let left = first.take().expect("it has a file");
    assert_eq!(second.merge(left).expect("writable"), 8_000);
    // Killed: nothing that is only in memory is written.
    drop((first, second));
    assert_eq!(host.open().prefix(), 8_000);
}
