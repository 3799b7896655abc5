"""How fast the simulator is: `make bench`, or `python -m bench`.

Every run has a process of its own and is an ordinary run, with the samples and checkers that
`weir compare` has. Where ns-3 is installed, it simulates the same networks for comparison.
"""
