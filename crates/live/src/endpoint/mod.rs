//! Connections over one socket: who is on it, what arrives, what leaves, and when.
