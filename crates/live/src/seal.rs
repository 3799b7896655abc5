//! Authenticated encryption with a pre-shared key (the Noise protocol).
