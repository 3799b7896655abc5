"""`python -m weir`, for where the script `weir` is not on the path."""

from weir.cli import main

main()
