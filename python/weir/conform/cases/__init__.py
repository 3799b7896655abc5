"""Cases as data: suites, variants, triggers, packet scripts, and the runs that they need."""
