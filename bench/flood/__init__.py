"""A receiver under attack: what attacks cost it and honest senders."""
