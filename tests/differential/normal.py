"""Take out of an answer what two servers cannot have in common, and nothing more.

* Captured values become their names again, so that "the same object as before" and "the same version as before" are compared.
* Other identities, versions and continue tokens become one word each; times of today become `<now>`, other times stay.
  A version captured as `….start` belongs to a list and is not looked for in objects.
* Sentences (a Status message, the message of a cause, of a condition) become `<text>`: presence is compared, wording is not.
* Causes of a refusal (field and reason), lines of managedFields and rules of a review are sets;
  resources of a discovery document are compared by name.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from datetime import UTC, datetime, timedelta
from typing import Any

_UID = re.compile(r"[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}")
_TIME = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d+)?Z")
_TOKEN = re.compile(r"eyJ[\w-]+\.[\w-]+\.[\w-]+")
_SENTENCES = frozenset({"message", "evaluationError"})
_AGE = re.compile(r"\d+(s|ms|m)|<invalid>|<unknown>")
_SETS = frozenset({"causes", "managedFields", "resourceRules", "nonResourceRules"})
_NEAR = timedelta(days=1)


def normal(facts: Mapping[str, Any], captured: Mapping[str, str], now: datetime) -> dict[str, Any]:
    """The facts of an answer as they are compared."""
    names = {
        value: f"${{{name}}}" for name, value in captured.items() if len(value) > 1 and not name.endswith(".start")
    }
    return {name: _value(value, "", names, captured["run"], now) for name, value in facts.items()}


def _value(value: Any, field: str, names: Mapping[str, str], run: str, now: datetime) -> Any:
    if isinstance(value, dict):
        return {_text(key, run): _member(value, key, names, run, now) for key in value}
    if isinstance(value, list):
        items = [_value(entry, field, names, run, now) for entry in value]
        if field == "resources" and all(isinstance(entry, dict) and "name" in entry for entry in items):
            return {entry["name"]: entry for entry in items}
        if field in _SETS:
            return [json.loads(entry) for entry in sorted({json.dumps(each, sort_keys=True) for each in items})]
        return items
    return _string(value, field, names, run, now) if isinstance(value, str) else value


def _member(owner: Mapping[str, Any], key: str, names: Mapping[str, str], run: str, now: datetime) -> Any:
    value = owner[key]
    if key in _SENTENCES and isinstance(value, str):
        return "<text>" if value else ""
    if key == "description" and "priority" in owner:
        return "<text>"  # what a column of a table means, in other words
    if key == "reason" and isinstance(value, str) and " " in value:
        return "<text>"  # why access was granted: one of several bindings
    if key == "storageVersionHash":
        return "<hash>"
    if key == "resourceVersion" and isinstance(value, str) and value:
        # A list has the version of the store, which may be anything; an object has its own, which may be a known one.
        is_object = "uid" in owner
        return names.get(value, "<version>") if is_object else "<version>"
    if key == "continue" and value:
        return "<continue>"
    if key == "cells" and isinstance(value, list):
        return ["<age>" if isinstance(cell, str) and _AGE.fullmatch(cell) else
                _value(cell, key, names, run, now) for cell in value]  # fmt: skip
    return _value(value, key, names, run, now)


def _string(text: str, field: str, names: Mapping[str, str], run: str, now: datetime) -> str:
    if text in names and field != "value":
        return names[text]
    if _UID.fullmatch(text):
        return "<uid>"
    if time := _TIME.fullmatch(text):
        near = abs(datetime.fromisoformat(text).astimezone(UTC) - now) < _NEAR
        return text if not near else "<now, fine>" if time[1] else "<now>"
    return _text(_TOKEN.sub("<token>", text), run)


def _text(text: str, run: str) -> str:
    return _UID.sub("<uid>", text).replace(run, "RUN")
