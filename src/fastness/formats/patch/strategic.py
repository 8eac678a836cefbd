"""Kubernetes' strategic merge patch: a merge patch that knows which lists are sets and which member names an element.

The schema of a kind says how each field merges; it comes in as `MergeRules`, asked by path (list elements are transparent:
the rule of a container's `ports` is asked at `("spec", "containers", "ports")`).

- Objects merge, null removes. `$patch: replace` takes the patch as it is, `$patch: delete` empties. `$retainKeys` drops
  every member of the object that the list does not name (unions such as a Deployment's strategy).
- A list with strategy `merge` merges by its merge key, or as a set of plain values. `{"$patch": "delete", <key>: v}` removes
  an element, `{"$patch": "replace"}` replaces the whole list, `$deleteFromPrimitiveList/x` removes values from list `x`.
- Order: elements of the patch stand in the order of the patch (or of `$setElementOrder/x`), the others keep theirs, and
  where the two meet the old position decides. A new element therefore comes before those only the server knows.
- Every other list, and every field without a rule, is replaced.

`ordering` holds the order rule. The result shares untouched parts with the object; nothing is mutated.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final, Literal, Protocol

from fastness.formats.errors import MalformedPatch, PatchFailed
from fastness.formats.patch.ordering import element_key, interleave

_PATCH: Final = "$patch"
_RETAIN_KEYS: Final = "$retainKeys"
_DELETE_FROM: Final = "$deleteFromPrimitiveList/"
_SET_ORDER: Final = "$setElementOrder/"
_HINT: Final = "see the strategic merge patch notes of the Kubernetes API"

Path = tuple[str, ...]


@dataclass(frozen=True, slots=True)
class MergeRule:
    """How one field merges. The default is that of a field without annotations: objects merge, lists are replaced."""

    strategy: Literal["merge", "replace"] | None = None
    merge_key: str | None = None


class MergeRules(Protocol):
    """What the schema of a kind says about merging."""

    def rule(self, path: tuple[str, ...]) -> MergeRule:
        """The rule of the field at `path`, which names members only, never list positions."""
        ...


def apply_strategic_patch(target: dict[str, Any], patch: Any, rules: MergeRules) -> dict[str, Any]:
    """Apply `patch` to an object under the merge rules of its kind."""
    if not isinstance(patch, dict):
        raise MalformedPatch("patch-not-an-object", "a strategic merge patch is an object", hint="send a JSON object")
    return _merge_objects(target, patch, rules, ())


def _merge_objects(target: dict[str, Any], patch: dict[str, Any], rules: MergeRules, path: Path) -> dict[str, Any]:
    if _PATCH in patch:
        directive = patch[_PATCH]
        if directive == "replace":
            return {name: _new(value) for name, value in patch.items() if name != _PATCH}
        if directive == "delete":
            return {}
        raise MalformedPatch("patch-directive", f"unknown $patch directive {directive!r}", _text(path), _HINT)
    result = _retained(target, patch, path)
    ordered = _merge_ordered_lists(result, patch, rules, path)
    for name, value in patch.items():
        if _is_directive(name) or name in ordered:
            continue
        if value is None:
            result.pop(name, None)
        else:
            _merge_member(result, name, value, rules, path)
    # Removals come last, so that the outcome does not depend on the order of members: what is also added goes.
    for name, value in patch.items():
        if name.startswith(_DELETE_FROM):
            _delete_values(result, name.removeprefix(_DELETE_FROM), value, path)
    return result


def _retained(target: dict[str, Any], patch: dict[str, Any], path: Path) -> dict[str, Any]:
    """A copy of the target, without what `$retainKeys` does not name."""
    if _RETAIN_KEYS not in patch:
        return dict(target)
    names = patch[_RETAIN_KEYS]
    place = _text((*path, _RETAIN_KEYS))
    if not isinstance(names, list) or not all(isinstance(name, str) for name in names):
        raise MalformedPatch("patch-retain-keys", "must be a list of member names", place, _HINT)
    keep = set(names)
    for name, value in patch.items():
        if not _is_directive(name) and value is not None and name not in keep:
            raise MalformedPatch("patch-retain-keys", f"the patch sets {name!r}, which is not retained", place, _HINT)
    return {name: value for name, value in target.items() if name in keep}


def _merge_member(result: dict[str, Any], name: str, value: Any, rules: MergeRules, path: Path) -> None:
    here = (*path, name)
    old = result.get(name)
    if isinstance(value, dict) and isinstance(old, dict):
        rule = rules.rule(here)
        result[name] = _new(value) if rule.strategy == "replace" else _merge_objects(old, value, rules, here)
    elif isinstance(value, list) and isinstance(old, list) and rules.rule(here).strategy == "merge":
        result[name] = _merge_lists(old, value, rules, here)
    elif isinstance(value, dict) and _PATCH in value:
        # A directive about something that is not there: nothing to delete or replace, so nothing appears.
        result.pop(name, None)
    else:
        result[name] = _new(value)


def _merge_lists(old: list[Any], new: list[Any], rules: MergeRules, path: Path) -> list[Any]:
    """Merge two lists with strategy `merge`; the order of `new` is the wanted order."""
    key = _list_key(old, new, rules.rule(path), path)
    if key is None:
        merged = list({element_key(value, None, path): value for value in (*old, *new)}.values())
        return interleave(merged, new, old, None, path)
    old, new = _apply_element_directives(old, new, key, path)
    return interleave(_merge_by_key(old, new, key, rules, path), new, old, key, path)


def _merge_by_key(old: list[Any], new: list[Any], key: str, rules: MergeRules, path: Path) -> list[Any]:
    merged = list(old)
    positions = {element_key(item, key, path): index for index, item in reversed(list(enumerate(old)))}
    for item in new:
        identity = element_key(item, key, path)
        index = positions.get(identity)
        if index is None:
            positions[identity] = len(merged)
            merged.append(_new(item))
        else:
            merged[index] = _merge_objects(merged[index], item, rules, path)
    return merged


def _apply_element_directives(old: list[Any], new: list[Any], key: str, path: Path) -> tuple[list[Any], list[Any]]:
    """Carry out `$patch` in list elements; returns the list to merge into and the plain elements of the patch."""
    plain = [item for item in new if _PATCH not in item]
    removed: set[Any] = set()
    replace = False
    for item in new:
        directive = item.get(_PATCH)
        if directive == "delete":
            removed.add(element_key(item, key, path))
        elif directive == "replace":
            replace = True
        elif _PATCH in item:
            raise MalformedPatch("patch-directive", f"unknown $patch directive {directive!r}", _text(path), _HINT)
    if replace:
        return [_new(item) for item in plain], []
    return [item for item in old if element_key(item, key, path) not in removed] if removed else old, plain


def _merge_ordered_lists(result: dict[str, Any], patch: dict[str, Any], rules: MergeRules, path: Path) -> set[str]:
    """Merge the lists that come with `$setElementOrder/…` into `result`; returns their names."""
    done: set[str] = set()
    for directive, order in patch.items():
        if not directive.startswith(_SET_ORDER):
            continue
        name = directive.removeprefix(_SET_ORDER)
        here = (*path, name)
        rule = rules.rule(here)
        old, new = result.get(name), patch.get(name)
        for value in (order, old, new):
            if value is not None and not isinstance(value, list):
                raise MalformedPatch("patch-element-order", f"{name!r} is not a list", _text(here), _HINT)
        if not isinstance(order, list):
            raise MalformedPatch("patch-element-order", f"the order of {name!r} is not a list", _text(here), _HINT)
        _check_order(new or [], order, rule.merge_key, here)
        if old is None and new is None:
            continue
        merged = _merge_lists(old, new, rules, here) if old is not None and new is not None else _new(old or new or [])
        result[name] = interleave(merged, order, old or [], rule.merge_key, here)
        done.add(name)
    return done


def _check_order(new: list[Any], order: list[Any], key: str | None, path: Path) -> None:
    """Every element that the patch sets must have a place in the order, in the same sequence."""
    places = {element_key(item, key, path): index for index, item in enumerate(order)}
    last = -1
    for item in new:
        if isinstance(item, dict) and _PATCH in item:
            continue
        place = places.get(element_key(item, key, path))
        if place is None or place < last:
            raise MalformedPatch(
                "patch-element-order", "the list does not follow its element order", _text(path), _HINT
            )
        last = place


def _delete_values(result: dict[str, Any], name: str, values: Any, path: Path) -> None:
    here = (*path, name)
    if not isinstance(values, list):
        raise MalformedPatch("patch-primitive-list", "must be a list of values", _text(here), _HINT)
    old = result.get(name)
    if isinstance(old, list):
        gone = {element_key(value, None, here) for value in values}
        result[name] = [value for value in old if element_key(value, None, here) not in gone]


def _list_key(old: list[Any], new: list[Any], rule: MergeRule, path: Path) -> str | None:
    """The merge key of two lists of objects, or None for lists of plain values."""
    kinds = {_kind(item) for item in (*old, *new)}
    if "list" in kinds:
        raise PatchFailed("patch-list-of-lists", "lists of lists cannot be merged", _text(path), _HINT)
    if len(kinds) > 1:
        raise PatchFailed("patch-mixed-list", "the list mixes objects and plain values", _text(path), _HINT)
    if kinds == {"object"} and rule.merge_key is None:
        raise PatchFailed("patch-no-merge-key", "the schema names no merge key for this list", _text(path), _HINT)
    return rule.merge_key if kinds == {"object"} else None


def _kind(value: Any) -> str:
    return "object" if isinstance(value, Mapping) else "list" if isinstance(value, list) else "plain"


def _new(value: Any) -> Any:
    """A value of the patch as it enters the object: without nulls in objects and without directives."""
    if isinstance(value, dict):
        return {
            name: _new(item)
            for name, item in value.items()
            if item is not None and not _is_directive(name) and not (isinstance(item, dict) and _PATCH in item)
        }
    if isinstance(value, list):
        return [_new(item) for item in value if not (isinstance(item, dict) and _PATCH in item)]
    return value


def _is_directive(name: str) -> bool:
    return name in (_PATCH, _RETAIN_KEYS) or name.startswith((_DELETE_FROM, _SET_ORDER))


def _text(path: Path) -> str:
    return ".".join(path)
