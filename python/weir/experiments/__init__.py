"""What several studies share: networks, loads, schemes, captured flows and measures."""
