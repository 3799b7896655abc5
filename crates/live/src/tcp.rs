//! The kernel's TCP moving a file: what our transfers are measured against.
