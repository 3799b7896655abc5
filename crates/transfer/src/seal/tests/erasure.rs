//! Keys that are no longer used are not in this process's memory, as far as this code put them there.

use std::fs;
use std::fs::File;
use std::os::unix::fs::FileExt;
use std::thread;

use zeroize::Zeroizing;

use super::*;

/// A secret with its bits inverted, so that looking for it does not find what is looked for.
type Masked = [u8; 32];

fn secret() -> Masked {
    let mut masked = [0; 32];
    getrandom::fill(&mut masked).unwrap();
    masked
}

/// How often the secret is in this process's heap. A stack is overwritten by what runs next, which cannot be
/// helped from here.
fn occurrences(secret: &Masked) -> usize {
    let memory = File::open("/proc/self/mem").unwrap();
    let maps = fs::read_to_string("/proc/self/maps").unwrap();
    let mut page = vec![0; 1 << 16];
    let mut found = 0;
    for line in maps.lines().filter(|line| line.contains(" rw-p ")) {
        let range = line.split(' ').next().and_then(|range| range.split_once('-')).unwrap();
        let [from, to] = [range.0, range.1].map(|text| u64::from_str_radix(text, 16).unwrap());
        if !line.ends_with("[heap]") && from % ARENA != 0 {
            continue;
        }
        for at in (from..to).step_by(page.len() - secret.len()) {
            let Ok(read) = memory.read_at(&mut page, at) else { continue };
            let windows = page[..read].windows(secret.len());
            let is_it = |window: &&[u8]| window.iter().zip(secret).all(|(a, b)| *a == !*b);
            found += windows.filter(is_it).count();
            page.fill(0);
        }
    }
    found
}

/// Threads other than the first have heaps of their own, which the C library aligns so (`HEAP_MAX_SIZE`).
const ARENA: u64 = 64 << 20;

/// Runs `work` with the secret in a thread of its own, and counts what is left of it.
fn left_of(secret: Masked, work: fn(Masked)) -> usize {
    thread::spawn(move || work(secret)).join().unwrap();
    occurrences(&secret)
}

#[test]
fn a_pre_shared_key_is_overwritten() {
    let left = left_of(secret(), |secret| {
        let key = Key::new(secret.map(|byte| !byte));
        let (mut gate, mut sender) = (Gate::new(key.clone(), [9; 32]), Seal::initiate(&key));
        let initiation = initiation(&mut gate, &mut sender, at(0));
        let newcomer = answer(&mut gate, at(1), &initiation).1.unwrap();
        assert!(occurrences(&secret) > 0, "it can be found");
        drop((gate, sender, newcomer));
    });
    assert_eq!(left, 0);
}

#[test]
fn traffic_keys_are_overwritten() {
    let left = left_of(secret(), |secret| {
        let bytes = Zeroizing::new(secret.map(|byte| !byte));
        let (mut send, recv) = (SendKeys::new(at(0), &bytes), RecvKeys::new(&bytes));
        drop(bytes);
        assert!(occurrences(&secret) > 0, "it can be found");
        send.number(at(120_000), 1).unwrap();
        drop((send, recv));
    });
    assert_eq!(left, 0);
}
