"""`adapters`: our controllers inside the stacks of other projects."""
