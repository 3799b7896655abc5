"""Emulated links and relays for programs."""
