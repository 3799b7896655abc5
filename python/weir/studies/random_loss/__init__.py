"""`random-loss`: goodput of every congestion control against independent random losses."""
