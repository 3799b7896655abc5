//! The programs behind weir send and weir recv.
