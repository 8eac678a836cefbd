"""What a PUT or a PATCH does to an object, as functions from the old object to the new one.

Patches are the pure functions of `formats/patch`; here they get the merge rules of the kind, and their errors the status codes
of the API: a patch that is malformed is 400, one that does not fit the object 422. Custom kinds have no strategic merge (415).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from fastness.apiserver.catalog import Served
from fastness.apiserver.refusals import invalid, is_concealed
from fastness.apiserver.verbs.drafts import part
from fastness.apiserver.verbs.writes import Edit
from fastness.formats.errors import MalformedPatch, PatchError, PatchTooLarge
from fastness.formats.patch import MergeRule, apply_json_patch, apply_merge_patch, apply_strategic_patch
from fastness.kinds.kind import JsonObject
from fastness.kinds.kubernetes import definitions
from fastness.kube.errors import ApiError, BadRequest, Cause, TooLarge, UnsupportedMedia
from fastness.kube.port import PatchType


def replacement(sent: JsonObject) -> Edit:
    """PUT: the body as it is."""
    return lambda _old: sent


def patch(served: Served, name: str, kind: PatchType, body: Any) -> Edit:
    """PATCH in one of the three patch languages; raises UnsupportedMedia for one that the kind does not have."""
    if kind is PatchType.STRATEGIC:
        if not served.kind.native:
            raise UnsupportedMedia(
                "the body of the request was in an unknown format - accepted media types include: "
                f"{PatchType.JSON.value}, {PatchType.MERGE.value}, {PatchType.APPLY.value}"
            )
        rules = DefinitionRules(served.kind.definition)
        return _guarded(served, name, lambda old: apply_strategic_patch(old, body, rules))
    if kind is PatchType.JSON:
        return _guarded(served, name, lambda old: apply_json_patch(old, body))
    return _guarded(served, name, lambda old: apply_merge_patch(old, body))


def _guarded(served: Served, name: str, apply: Callable[[JsonObject], Any]) -> Edit:
    def edit(old: JsonObject | None) -> JsonObject:
        try:
            new: JsonObject = apply(old or {})
        except PatchError as error:
            raise _refusal(served, name, error) from error
        _keep_uid(served, name, old or {}, new)
        return new

    return edit


def _keep_uid(served: Served, name: str, old: JsonObject, new: JsonObject) -> None:
    """A replacement with another uid is for another object (a conflict), a patch that changes it is wrong."""
    uid, sent = (part(obj, "metadata").get("uid") for obj in (old, new))
    if uid and sent and uid != sent:
        text = f'Invalid value: "{str(sent)[:80]}": field is immutable'
        raise invalid(served, name, [Cause("metadata.uid", "FieldValueInvalid", text)])


def _refusal(served: Served, name: str, error: PatchError) -> ApiError:
    why = error.hint if is_concealed(served) else error.message  # a message may quote the patch
    if isinstance(error, MalformedPatch):
        return BadRequest(f"error decoding patch: {error.path + ': ' if error.path else ''}{why}")
    if isinstance(error, PatchTooLarge):
        return TooLarge(str(error))
    cause = Cause(error.path or "patch", "FieldValueInvalid", f"Invalid value: {why}")
    return invalid(served, name, [cause])


class DefinitionRules:
    """Merge rules of a native kind, read from its definition; list elements are transparent in paths."""

    def __init__(self, name: str) -> None:
        self._root = name
        self._rules_by_path: dict[tuple[str, ...], tuple[MergeRule, Mapping[str, Any] | None]] = {}

    def rule(self, path: tuple[str, ...]) -> MergeRule:
        """The rule of the field at `path`."""
        return self._at(path)[0]

    def _at(self, path: tuple[str, ...]) -> tuple[MergeRule, Mapping[str, Any] | None]:
        if not path:
            return MergeRule(), definitions.definition(self._root)
        rule = self._rules_by_path.get(path)
        if rule is None:
            parent = self._at(path[:-1])[1]
            rule = self._rules_by_path[path] = _member(parent, path[-1])
        return rule


def _member(parent: Mapping[str, Any] | None, name: str) -> tuple[MergeRule, Mapping[str, Any] | None]:
    """Rule and schema of one member; the schema of a list is that of its items."""
    if parent is None:
        return MergeRule(), None
    raw = (parent.get("properties") or {}).get(name)
    if raw is None:
        extra = parent.get("additionalProperties")
        return MergeRule(), _resolved(extra) if isinstance(extra, dict) else None
    strategy = str(raw.get("x-kubernetes-patch-strategy", ""))
    key = raw.get("x-kubernetes-patch-merge-key")
    how = "merge" if "merge" in strategy.split(",") else "replace" if "replace" in strategy.split(",") else None
    schema = _resolved(raw)
    if schema is not None and schema.get("type") == "array":
        items = schema.get("items")
        schema = _resolved(items) if isinstance(items, dict) else None
    return MergeRule(how, key), schema  # type: ignore[arg-type]  # the two literals above


def _resolved(raw: Mapping[str, Any]) -> Mapping[str, Any] | None:
    """The schema behind a reference, also inside `allOf`."""
    for candidate in (raw, *(raw.get("allOf") or ())):
        reference = candidate.get("$ref")
        if reference:
            return definitions.definition(reference.removeprefix(definitions.REFERENCE))
    return raw
