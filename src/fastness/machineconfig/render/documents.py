"""The Ignition document of a config, in the version that everything here works on.

Sources may be of any supported version; they are brought to the current one before anything looks at them, so that rules, merge
and comparison have one language. What Ignition itself would refuse is a problem of the config, with the path inside the document;
what it would only warn about is a warning. A wholly empty object is accepted and says nothing.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, Final

from fastness.kinds.kind import JsonObject
from fastness.machineconfig import ignition
from fastness.machineconfig.render.problem import Problem, Severity

EMPTY: Final[JsonObject] = {"ignition": {"version": ignition.CURRENT}}
_VERSIONS: Final = ", ".join(version.removesuffix(".0") for version in ignition.SUPPORTED)
_WAYS_OUT: Final = {
    "invalid-version": f"set ignition.version to one of {_VERSIONS}",
    "unknown-version": f"supported are {_VERSIONS}",
}


def current_document(name: str, raw: Any) -> tuple[JsonObject | None, list[Problem]]:
    """The document of the config `name` in the current version, if it is good, and everything found about it."""
    if raw == {}:
        return EMPTY, []
    found = ignition.inspect(raw)
    problems = [_problem(name, finding) for finding in found.problems]
    if found.config is None:
        return None, problems
    try:
        current, _ = ignition.translate(found.config, ignition.CURRENT)
    except ignition.InvalidConfig as error:  # a spec 2 config may be good and yet have no meaning in spec 3
        return None, [*problems, *(_problem(name, finding) for finding in error.problems)]
    if _packed(current.body):
        problems += [_problem(name, finding) for finding in ignition.check_contents(current.body)]
    return (None if any(problem.fatal for problem in problems) else current.body), problems


def _packed(document: JsonObject) -> bool:
    """Whether any file is compressed or has a hash: only then does decoding find more than the check of its URL did."""
    for entry in document.get("storage", {}).get("files", ()):
        for resource in (entry.get("contents", {}), *entry.get("append", ())):
            if "compression" in resource or "verification" in resource:
                return True
    return False


def merge_documents(documents: Iterable[tuple[str, JsonObject]]) -> JsonObject:
    """Named documents of the current version merged in order, with the corrections for machine configs."""
    merged = ignition.merge_all(documents, corrections=True)
    return merged if "ignition" in merged else {**EMPTY, **merged}


def _problem(name: str, finding: ignition.Problem) -> Problem:
    severity = Severity.ERROR if finding.severity is ignition.Severity.ERROR else Severity.WARNING
    place = f"spec.config.{finding.path}" if finding.path else "spec.config"
    return Problem(name, place, f"ignition-{finding.code}", finding.message, _WAYS_OUT.get(finding.code, ""), severity)
