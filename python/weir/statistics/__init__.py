"""Numbers in, numbers out: intervals, tests, percentiles, censored times."""
