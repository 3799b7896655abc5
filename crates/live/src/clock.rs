//! The machine's clock as the models know time, and waits that are precise below a millisecond.
