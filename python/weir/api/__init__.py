"""The Python interface: `compare`, `run`, `study`, `load`, `Results`."""
