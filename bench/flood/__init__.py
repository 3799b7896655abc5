"""A receiver under attack: what ten kinds of attack cost it and honest senders."""
