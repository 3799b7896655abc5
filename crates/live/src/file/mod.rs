//! The file protocol: what a sender says of its files, and how a receiver keeps them.
