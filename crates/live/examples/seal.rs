//! How fast each cipher seals and opens one datagram, from either library: why `seal` uses AES-GCM
//! from `ring`. Run it with `cargo run --release -p weir-live --example seal`.
#![allow(clippy::print_stdout)]

use std::time::Instant;

use snow::params::CipherChoice;
use snow::resolvers::{CryptoResolver, DefaultResolver, RingResolver};
use snow::types::Cipher;

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
