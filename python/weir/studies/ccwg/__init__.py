"""`ccwg`: scenarios with bounds, for authors of congestion controls and of their standards."""
