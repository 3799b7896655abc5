//! How fast each cipher seals and opens one datagram, from either library: why `seal` uses AES-GCM
//! from `ring`. And what it costs a receiver with 1024 keys to refuse an opening under another one. Run it with `cargo run --release -p weir-transfer --example seal`.
#![allow(clippy::print_stdout)]

use std::net::SocketAddr;
use std::time::Instant;

use snow::params::CipherChoice;
use snow::resolvers::{CryptoResolver, DefaultResolver, RingResolver};
use snow::types::Cipher;
use weir_transfer::seal::{Gate, Key, Keys, Opened, Seal};
use weir_transport::wire::{Ports, emit};
use weir_transport::{Flags, Segment};

fn main() {
    println!("cipher       library      bytes   seal GB/s   open GB/s");
    let libraries: [(&str, &dyn CryptoResolver); 2] =
        [("RustCrypto", &DefaultResolver), ("ring", &RingResolver)];
    for choice in [CipherChoice::AESGCM, CipherChoice::ChaChaPoly] {
        for (library, resolver) in &libraries {
            let mut cipher = resolver.resolve_cipher(&choice).expect("both libraries have both");
            cipher.set(&[7; 32]);
            for len in [64, 1_428, 65_000] {
                let (seal, open) = speed(&*cipher, len);
                let name = cipher.name();
                println!("{name:<12} {library:<12} {len:>5} {seal:>11.2} {open:>11.2}");
            }
        }
    }
    println!("\nrefusing an opening, with 1024 keys: {:.0} us", refusal_us());
}

/// Microseconds to refuse an opening that has its cookie and is under none of 1024 keys.
fn refusal_us() -> f64 {
    let folder = tempfile::tempdir().expect("a folder");
    for n in 0..1_024 {
        let path = folder.path().join(format!("{n}.key"));
        std::fs::write(path, format!("{n:064x}")).expect("writable");
    }
    let mut gate = Gate::new(Keys::read_folder(folder.path()).expect("keys"), [1; 32]);
    let (now, from) = (weir_units::Instant::ZERO, SocketAddr::from(([192, 0, 2, 1], 1)));
    let syn = Segment { flags: Flags::SYN, ..Segment::default() };
    let [mut segment, mut opening, mut retry, mut answer] = [(); 4].map(|()| Vec::new());
    emit(&syn, Ports { source: 1, destination: 2 }, &[], &mut segment);
    let mut seal = Seal::initiate(&Key::new([255; 32]));
    seal.seal(now, &segment, &mut opening).expect("the first");
    gate.receive(now, from, &opening, &mut retry);
    let Opened::Answer(opening) = seal.open(now, &retry, &mut segment) else {
        unreachable!("the answer is a cookie")
    };
    const ROUNDS: u32 = 1_000;
    let began = Instant::now();
    for _ in 0..ROUNDS {
        answer.clear();
        assert!(gate.receive(now, from, opening, &mut answer).is_none() && !answer.is_empty());
    }
    began.elapsed().as_secs_f64() * 1e6 / f64::from(ROUNDS)
}

/// Bytes per nanosecond, sealing and opening.
fn speed(cipher: &dyn Cipher, len: usize) -> (f64, f64) {
    let plain = vec![1; len];
    let mut sealed = vec![0; len + 16];
    let mut opened = vec![0; len + 16];
    let rounds = (200_000_000 / (len + 200)) as u64;
    let rate = |began: Instant| rounds as f64 * len as f64 / began.elapsed().as_nanos() as f64;
    let began = Instant::now();
    for counter in 0..rounds {
        cipher.encrypt(counter, &[], &plain, &mut sealed);
    }
    let seal = rate(began);
    let began = Instant::now();
    for _ in 0..rounds {
        cipher.decrypt(rounds - 1, &[], &sealed, &mut opened).expect("as it was sealed");
    }
    (seal, rate(began))
}
