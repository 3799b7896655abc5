"""Addresses of the two ends of a link, and the variables that name them to its commands.

A guest imports this module, so it needs nothing.
"""

HOST_VARIABLE = "WEIR_LINK_HOST"
"""Environment variable with the IPv4 address of the outermost link's host."""
HOST6_VARIABLE = "WEIR_LINK_HOST6"
"""The same with its IPv6 address, if the link has IPv6."""

INSIDE6, HOST6 = "fd00:100:64::2", "fd00:100:64::1"
"""Of a link between two namespaces of its own: no other can collide (RFC 4193)."""


def numbered6(number: int) -> tuple[str, str]:
    """The IPv6 addresses of the commands and of the host, of the link with this number."""
    return f"fd00:100:64:{number:x}::2", f"fd00:100:64:{number:x}::1"
