"""A receiver among strangers: what ten kinds of attack cost it and honest senders."""
