"""The files of a job's folder, which the host and the guest share."""

JOB, STATUS, LOG, TABLES = "job.json", "status.json", "guest.log", "tables.json"
"""The files of a job's folder: request, outcome, output, results."""
CAPTURE = "capture.pcapng"
"""Captured packets, if requested."""
