"""Boots a guest kernel, and runs scenarios, commands and packet scripts in it."""
