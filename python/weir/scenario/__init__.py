"""From what a person wrote to the complete list of runs."""
