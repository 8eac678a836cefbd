"""Values that do not print themselves.

A `SecretBytes` or `SecretText` shows as `<redacted>` in `repr`, `str`, f-strings and log records, cannot be pickled or
serialised by accident, and compares in constant time. The one way out is `reveal()`, so that a search for that word finds
every place where a secret leaves its wrapper.
"""

from __future__ import annotations

import hmac
from typing import Generic, NoReturn, TypeVar

Value = TypeVar("Value", bytes, str)

REDACTED = "<redacted>"


class Secret(Generic[Value]):
    """A value whose only way out is `reveal()`."""

    __slots__ = ("_value",)

    def __init__(self, value: Value) -> None:
        self._value: Value = value

    def reveal(self) -> Value:
        """The value itself; the caller answers for where it goes."""
        return self._value

    def __repr__(self) -> str:
        return REDACTED

    def __str__(self) -> str:
        return REDACTED

    def __format__(self, spec: str) -> str:
        return REDACTED

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Secret) or type(other._value) is not type(self._value):
            return NotImplemented
        return hmac.compare_digest(_raw(self._value), _raw(other._value))

    # Python's own, salted for each process: it is used in memory and written nowhere.
    def __hash__(self) -> int:
        return hash(self._value)

    def __bool__(self) -> bool:
        return bool(self._value)

    def __reduce__(self) -> NoReturn:
        raise TypeError("a secret is not serialised; call reveal() where it must leave")


class SecretBytes(Secret[bytes]):
    """Key material and other bytes that stay inside."""

    __slots__ = ()


class SecretText(Secret[str]):
    """Tokens, passwords and PEM text that stay inside."""

    __slots__ = ()


def _raw(value: bytes | str) -> bytes:
    return value.encode() if isinstance(value, str) else value
