"""One property of a path each, from the packets of a flow."""
