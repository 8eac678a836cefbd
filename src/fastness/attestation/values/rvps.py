"""Reference values in the shape of the Reference Value Provider Service, read and written.

A message is `{"version": "0.1.0", "type": "sample", "payload": "<base64 of a JSON object name → value or values>"}`. It has no
signature: whoever may register one decides what is trusted, so doors ask for an administrator first. Messages of other types
carry provenance that nobody verifies yet, and are refused rather than believed.

    spec = set_of_message(name, message, now)       # a ReferenceValueSet, replaced as a whole
    stored = read_value(book, "tpm_pcr4")           # what a query answers, or None

* A list means: one of these. Anything else is a single value. Text, whole numbers and flags can be kept; other JSON cannot.
* What is registered ends after a year. Upstream keeps an expiry too, and never looks at it; here the book does.
"""

from __future__ import annotations

import base64
import binascii
from collections.abc import Mapping
from datetime import datetime
from typing import Any, Final

from fastness.attestation.values.from_images import LIFETIME, MAX_VALUES, BadValues, checked_value
from fastness.attestation.values.values import ReferenceValues
from fastness.formats import json
from fastness.formats.errors import JsonError
from fastness.kinds.fastness_dev.reference_values import REFERENCE_VALUE_SET
from fastness.kinds.kind import JsonObject
from fastness.kinds.objects import rfc3339

VERSION: Final = "0.1.0"
SAMPLE: Final = "sample"
MAX_MESSAGE: Final = 1024 * 1024
_UNVERIFIED: Final = ("swid", "corim")
_MEMBERS: Final = frozenset({"version", "type", "payload"})


def parse_message(data: bytes) -> dict[str, Any]:
    """Names and values of a message; raises BadValues."""
    message = _decoded(data, "the message")
    # Exactly these: whoever sends a signature along would believe that somebody looked at it (pitfall 21).
    if not isinstance(message, dict) or set(message) != _MEMBERS:
        raise BadValues("not-a-message", "a message has exactly the members version, type and payload")
    if message["version"] != VERSION:
        raise BadValues("message-version", f"version {message['version']!r} is not {VERSION}")
    if message["type"] in _UNVERIFIED:
        raise BadValues(
            "provenance-unverified",
            f"nobody verifies the signature of messages of type {message['type']}",
            "Check them yourself and register what they say as a message of type sample.",
        )
    if message["type"] != SAMPLE or not isinstance(message["payload"], str):
        raise BadValues("message-type", "the type is not sample, or the payload is no text")
    try:
        # Without `validate` Python skips characters outside of the alphabet, and two texts would be the same payload.
        payload = base64.b64decode(message["payload"], validate=True)
    except (binascii.Error, ValueError) as error:
        raise BadValues("payload-unreadable", "the payload is not base64") from error
    values = _decoded(payload, "the payload")
    if not isinstance(values, dict) or not values:
        raise BadValues("payload-unreadable", "the payload is not an object of names and values")
    return values


def values_of(named: Mapping[str, Any]) -> list[JsonObject]:
    """Names and values as a ReferenceValueSet lists them; raises BadValues."""
    values: dict[tuple[str, str], JsonObject] = {}
    for name, value in named.items():
        for entry in value if isinstance(value, list) else [value]:
            made = checked_value({"name": name, "single": not isinstance(value, list), **_scalar(name, entry)})
            values[(name, made["value"])] = made
    if len(values) > MAX_VALUES:
        raise BadValues("too-many-values", f"{len(values)} values are more than {MAX_VALUES}")
    return [values[key] for key in sorted(values)]


def set_of_message(name: str, data: bytes, now: datetime) -> JsonObject:
    """The ReferenceValueSet that a message becomes; raises BadValues."""
    return {
        "apiVersion": REFERENCE_VALUE_SET.api_version,
        "kind": REFERENCE_VALUE_SET.kind,
        "metadata": {"name": name},
        "spec": {
            "source": "import",
            "values": values_of(parse_message(data)),
            "validity": {"notBefore": rfc3339(now), "notAfter": rfc3339(now + LIFETIME)},
        },
    }


def read_value(book: ReferenceValues, name: str) -> Any | None:
    """What a query for one name answers: the value as JSON, or None."""
    return book.query(name)


def _scalar(name: str, value: object) -> JsonObject:
    if isinstance(value, bool):
        return {"value": "true" if value else "false", "type": "Boolean"}
    if isinstance(value, int):
        return {"value": str(value), "type": "Number"}
    if isinstance(value, str):
        return {"value": value}
    raise BadValues("value-not-supported", f"{name[:64]!r} is neither text nor a whole number nor a flag")


def _decoded(data: bytes, what: str) -> Any:
    try:
        return json.decode(data, json.JsonLimits(max_bytes=MAX_MESSAGE, max_depth=8))
    except JsonError as error:
        raise BadValues("unreadable", f"{what} is not JSON: {error}") from error
