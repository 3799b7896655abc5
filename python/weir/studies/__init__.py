"""Named studies: published experiments, repeated, with published and measured values.

A study is a folder of this package with a `study.toml` (`described`), or a module with a constant
`STUDY`. Adding it is all it takes.
"""
