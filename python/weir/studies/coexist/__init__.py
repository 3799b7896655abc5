"""`coexist`: every pair of congestion controls over one bottleneck, shallow to deep."""
