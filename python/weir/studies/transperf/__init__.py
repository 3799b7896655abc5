"""`transperf`: the scores of transperf's tests as pass and fail, and nsperf's five tests."""
