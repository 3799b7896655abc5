"""`rtt-fairness`: how the goodput depends on the round trip, for two flows of one kind."""
