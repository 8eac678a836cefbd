"""The Ignition document of a config, in the version that everything here works on.

Sources may be of any supported version; they are brought to the current one before anything looks at them, so that rules, merge
and comparison have one language. What Ignition itself would refuse is a problem of the config, with the path inside the document;
what it would only warn about is a warning. A wholly empty object is accepted and says nothing.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, Final

from fastness.domain.machineconfig.problem import Problem, Severity
from fastness.formats.ignition.config import Config, inspect
from fastness.formats.ignition.merge import merge_all
from fastness.formats.ignition.problems import Problem as Finding
from fastness.formats.ignition.problems import Severity as Gravity
from fastness.formats.ignition.versions import CURRENT, LEGACY, SUPPORTED
from fastness.model.kind import JsonObject

EMPTY: Final[JsonObject] = {"ignition": {"version": CURRENT}}
_VERSIONS: Final = ", ".join(version.removesuffix(".0") for version in SUPPORTED)
_WAYS_OUT: Final = {
    "invalid-version": f"set ignition.version to one of {_VERSIONS}",
    "unknown-version": f"supported are {_VERSIONS}",
}


def current_document(name: str, raw: Any) -> tuple[JsonObject | None, list[Problem]]:
    """The document of the config `name` in the current version, if it is good, and everything found about it."""
    if raw == {}:
        return EMPTY, []
    found = inspect(raw)
    problems = [_problem(name, finding) for finding in found.problems]
    if found.config is None:
        return None, problems
    return _current(found.config), problems


def merge_documents(documents: Iterable[tuple[str, JsonObject]]) -> JsonObject:
    """Named documents of the current version merged in order, with the corrections for machine configs."""
    merged = merge_all(documents, corrections=True)
    return merged if "ignition" in merged else {**EMPTY, **merged}


def _current(config: Config) -> JsonObject:
    if config.version == CURRENT:
        return config.body
    if config.version == LEGACY:
        raise NotImplementedError
    return {**config.body, "ignition": {**config.body["ignition"], "version": CURRENT}}


def _problem(name: str, finding: Finding) -> Problem:
    severity = Severity.ERROR if finding.severity is Gravity.ERROR else Severity.WARNING
    place = f"spec.config.{finding.path}" if finding.path else "spec.config"
    return Problem(name, place, f"ignition-{finding.code}", finding.message, _WAYS_OUT.get(finding.code, ""), severity)
