"""Addresses of the two ends of a link, and the variables that name them to its commands.

A guest imports this module, so it needs nothing.
"""

from collections.abc import Mapping, Sequence

HOST_VARIABLE = "WEIR_LINK_HOST"
"""Environment variable with the IPv4 address of the outermost link's host."""
HOST6_VARIABLE = "WEIR_LINK_HOST6"
"""The same with its IPv6 address, if the link has IPv6."""

INSIDE6, HOST6 = "fd00:100:64::2", "fd00:100:64::1"
"""Of a link between two namespaces of its own: no other can collide (RFC 4193)."""


def ipv6_ends(number: int) -> tuple[str, str]:
    """The IPv6 addresses of the commands and of the host, of the link with this number."""
    return f"fd00:100:64:{number:x}::2", f"fd00:100:64:{number:x}::1"


def with_addresses(command: Sequence[str], environment: Mapping[str, str]) -> list[str]:
    """The command with each argument that is such a variable replaced by its address.

    So a command needs no shell to name the far end. Variables inside of an argument are left to the
    shell, which may be behind another link.
    """
    addresses = {
        f"${name}": environment[name]
        for name in (HOST_VARIABLE, HOST6_VARIABLE)
        if name in environment
    }
    return [addresses.get(word, word) for word in command]
