"""Contenders: programs of other projects as stacks of a scenario, in world `kernel`.

A definition file says how a program is started: [`weir.contenders.definition`][]. A stack
`contender:NAME(key=value,…)` names one: [`weir.contenders.catalogue`][].
"""
