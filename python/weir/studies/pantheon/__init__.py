"""`pantheon`: throughput against delay over the 18 emulated paths of the Pantheon."""
