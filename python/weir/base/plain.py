"""Text from outside, made safe to show: for a terminal and a picture it is text and nothing else.

Names of files, flows, cases and peers come from scenarios, results and the network. They must not
move the cursor, set colours, end a line, or turn the direction of writing (Unicode TR36 §3.1).
"""

from __future__ import annotations

import re

_ACTIVE = re.compile(
    "[\x00-\x08\x0a-\x1f\x7f-\x9f"  # controls, but for the tab
    "\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069"  # ends of lines, directions
    "\ud800-\udfff]"  # bytes of file names that are no UTF-8
)


def plain(text: str) -> str:
    """`text` with every character that does something written as its escape."""
    return _ACTIVE.sub(lambda match: match[0].encode("unicode_escape").decode(), text)


def plain_lines(text: str) -> str:
    """The same for a text of several lines, which it keeps."""
    return "\n".join(map(plain, text.split("\n")))
