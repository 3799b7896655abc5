//! UDP sockets: batches, segmentation offload both ways, ECN, buffer sizes.
