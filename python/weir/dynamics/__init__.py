"""What flows do to each other over time: shares, convergence, responses, completion times."""
