"""Models of paths: from what a flow measured to a scenario, and to what other flows would get."""
