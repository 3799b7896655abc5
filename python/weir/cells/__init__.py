"""Cells of studies: published and measured values, claims, and their texts, tables, pictures."""
