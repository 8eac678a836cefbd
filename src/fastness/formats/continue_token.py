"""The continue token of a paginated list: where the next page starts, and at which version of the store.

To a client the token is opaque text. To the server it is what it said itself one page ago, but it comes back through the
client, so it is parsed like anything hostile: bounded, strict, and without authority. It grants nothing: the caller still
authorizes the request and must check that `start` lies in the range that is being listed.

Form: base64url, without padding, of `{"v": "fastness.dev/v1", "rv": 42, "start": "…"}` with no other members. A token of
another server or version fails, and the client lists from the beginning (Kubernetes' answer for it is 410 or 400).
"""

import base64
import binascii
import re
from dataclasses import dataclass
from typing import Final

from fastness.formats import json as strict_json
from fastness.formats.errors import JsonError, TokenError

MAX_TOKEN_CHARS: Final = 4096
MAX_START_CHARS: Final = 2048

_VERSION: Final = "fastness.dev/v1"
_ALPHABET: Final = re.compile(r"[A-Za-z0-9_-]+\Z", re.ASCII)
_LIMITS: Final = strict_json.JsonLimits(max_bytes=MAX_TOKEN_CHARS, max_depth=1)
_HINT: Final = "list again without the continue parameter"


@dataclass(frozen=True, slots=True)
class ContinueToken:
    """A position in a list: the first key of the next page, at one resource version."""

    resource_version: int
    start: str

    def encode(self) -> str:
        """The opaque text for `metadata.continue`."""
        if not (0 < self.resource_version < 2**63 and 0 < len(self.start) <= MAX_START_CHARS):
            raise _invalid("a token needs a positive version and a key of sensible length")
        body = strict_json.canonical({"v": _VERSION, "rv": self.resource_version, "start": self.start})
        if len(body) > MAX_TOKEN_CHARS * 3 // 4:
            raise _invalid("the key does not fit into a token")
        return base64.urlsafe_b64encode(body).rstrip(b"=").decode("ascii")


def decode_continue_token(text: str) -> ContinueToken:
    """Read the `continue` parameter; raises `TokenError` for anything this server did not write."""
    if len(text) > MAX_TOKEN_CHARS:
        raise _invalid(f"the token is longer than {MAX_TOKEN_CHARS} characters")
    if _ALPHABET.match(text) is None:
        raise _invalid("the token has characters that are not base64url")
    try:
        body = base64.urlsafe_b64decode(text + "=" * (-len(text) % 4))
        value, duplicates = strict_json.decode_reporting_duplicates(body, _LIMITS)
    except (binascii.Error, JsonError) as error:
        raise _invalid("the token is not one of this server's") from error
    if not isinstance(value, dict) or set(value) != {"v", "rv", "start"} or duplicates:
        raise _invalid("the token is not one of this server's")
    version, start = value["rv"], value["start"]
    if value["v"] != _VERSION:
        raise _invalid("the token is of another server or version")
    if type(version) is not int or version <= 0:
        raise _invalid("the token names no version of the store")
    if not isinstance(start, str) or not 0 < len(start) <= MAX_START_CHARS:
        raise _invalid("the token names no key")
    return ContinueToken(version, start)


def _invalid(message: str) -> TokenError:
    return TokenError("continue-token-invalid", message, "continue", _HINT)
