"""Results as one file for others: everything that made them, and what repeats them."""
