"""Init data: the small TOML document that a host hands to a guest, measured before the guest runs.

    version = "0.1.0"
    algorithm = "sha256"
    [data]
    "aa.toml" = '''…'''

The digest is over the exact text with the document's own algorithm. Total, with limits; unknown members are refused,
because whoever wrote them expected them to matter.
"""

from __future__ import annotations

import tomllib
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

from fastness.formats.errors import FormatError

MAX_TEXT: Final = 1024 * 1024
VERSIONS: Final = ("0.1.0",)
ALGORITHMS: Final[Mapping[str, str]] = {
    "sha256": "sha256", "sha384": "sha384", "sha512": "sha512",
    "sha-256": "sha256", "sha-384": "sha384", "sha-512": "sha512",
}  # fmt: skip


class InitDataError(FormatError):
    """A text that is not init data."""

    def __init__(self, code: str, message: str, path: str = "", hint: str = "") -> None:
        super().__init__(code, message, path, hint or "Write version, algorithm and a table [data] of texts.")


@dataclass(frozen=True, slots=True)
class InitData:
    """The document: its algorithm, its texts, and the bytes that are measured."""

    algorithm: str
    data: Mapping[str, str]
    text: bytes


def parse_init_data(text: str) -> InitData:
    """Read a document; raises InitDataError."""
    if len(text) > MAX_TEXT:
        raise InitDataError("init-data-too-large", f"the text has more than {MAX_TEXT} characters")
    try:
        found = tomllib.loads(text)
    except (tomllib.TOMLDecodeError, RecursionError) as error:
        raise InitDataError("init-data-syntax", f"this is not TOML: {error}") from error
    unknown = sorted(set(found) - {"version", "algorithm", "data"})
    if unknown:
        raise InitDataError("init-data-member", f"the member {unknown[0]!r} is not known", unknown[0])
    if found.get("version") not in VERSIONS:
        raise InitDataError("init-data-version", f"the version must be {' or '.join(VERSIONS)}", "version")
    algorithm = found.get("algorithm")
    if not isinstance(algorithm, str) or algorithm not in ALGORITHMS:
        raise InitDataError("init-data-algorithm", "the algorithm must be sha256, sha384 or sha512", "algorithm")
    data = found.get("data")
    if not isinstance(data, dict) or not all(isinstance(value, str) for value in data.values()):
        raise InitDataError("init-data-table", "data must be a table of texts", "data")
    return InitData(ALGORITHMS[algorithm], data, text.encode())
