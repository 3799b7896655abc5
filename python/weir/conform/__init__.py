"""Conformance: suites of cases that judge any stack, each criterion with its source.

`suites` reads the cases, `plans` lists their runs, `measures` reads the result tables, `judge`
applies the criteria, `outcome` makes the rows, `words`, `junit` and `baseline` show them.
"""
