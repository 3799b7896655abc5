//! The flows of a scenario over real sockets.
