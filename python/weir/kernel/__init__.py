"""Linux's own TCP in virtual time: a guest kernel, how it is made, and how it runs a scenario.

>>> tables = weir.kernel.world.run(scenario.text, seed=1)  # doctest: +SKIP

A guest imports this package too, so nothing is imported here.
"""
