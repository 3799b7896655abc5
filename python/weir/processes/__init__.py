"""Programs of others on this machine: their output, readiness, namespaces and clean-up."""
