"""Errors, safe text, whole files, options, tables of text: what every other package uses."""
