"""Keys for transfers and path tests."""

from __future__ import annotations

import os
import secrets
from pathlib import Path

from weir.base.errors import InputError

_KEY_BYTES = 32


def write_key(file: str | Path) -> None:
    """Writes a new key to a file that only its owner can read, and never replaces one.

    Raises:
        InputError: the file is there already, or cannot be written.
    """
    try:
        descriptor = os.open(file, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
    except FileExistsError:
        raise InputError(f"'{file}' already exists, and keys are not overwritten") from None
    except OSError as error:
        raise InputError(f"cannot create '{file}': {error.strerror}") from error
    with os.fdopen(descriptor, "w", encoding="ascii") as out:
        out.write(secrets.token_hex(_KEY_BYTES) + "\n")
