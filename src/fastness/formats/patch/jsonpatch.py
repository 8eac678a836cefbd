"""JSON patch (RFC 6902): a list of operations at JSON pointers (RFC 6901), applied all or nothing.

- Operations: add, remove, replace, move, copy, test. A pointer that does not lead anywhere, an index outside its list and a
  failed test are `PatchFailed`; a patch that is not a list of objects is `MalformedPatch`.
- Copy on write: a container is copied the first time an operation touches it, then changed in place. What a `copy`
  duplicates becomes shared again. The caller's object and patch are never changed.
- Bounds: operations (10,000, as Kubernetes), bytes duplicated by `copy`, list elements shifted, depth of the result. Without
  them ten thousand operations of a few bytes each could double an object until memory ends.
"""

import re
from dataclasses import dataclass
from typing import Any, Final

import orjson

from fastness.formats.errors import JsonError, MalformedPatch, PatchFailed, PatchTooLarge
from fastness.formats.json import check_depth


@dataclass(frozen=True, slots=True)
class PatchLimits:
    """What one patch may ask for."""

    max_operations: int = 10_000
    max_copied_bytes: int = 3 * 1024 * 1024
    max_shifted_elements: int = 50_000_000
    max_depth: int = 100


DEFAULT_PATCH_LIMITS: Final = PatchLimits()

_INDEX: Final = re.compile(r"(?:0|[1-9][0-9]{0,9})\Z", re.ASCII)
_BAD_ESCAPE: Final = re.compile(r"~(?![01])")
_MISSING: Final = object()
_HINT: Final = "read the object again and build the patch from what it holds now"


def apply_json_patch(document: Any, patch: Any, limits: PatchLimits = DEFAULT_PATCH_LIMITS) -> Any:
    """Apply every operation of `patch` in order and return the new document."""
    if not isinstance(patch, list) or not all(isinstance(operation, dict) for operation in patch):
        raise MalformedPatch(
            "patch-not-a-list", "a JSON patch is a list of objects", hint='send [{"op": "replace", "path": …}]'
        )
    if len(patch) > limits.max_operations:
        raise PatchTooLarge(
            "patch-too-many-operations",
            f"the patch has {len(patch)} operations, the limit is {limits.max_operations}",
            hint="split the patch, or send a merge patch",
        )
    application = _Application(document, limits)
    for index, operation in enumerate(patch):
        application.apply(operation, f"[{index}]")
    try:
        check_depth(application.document, limits.max_depth)
    except JsonError as error:
        raise PatchFailed("patch-result-too-deep", error.message, hint=error.hint) from error
    return application.document


def parse_pointer(pointer: Any, path: str) -> list[str]:
    """Split a JSON pointer into its tokens, escapes undone; raises `PatchFailed`."""
    if not isinstance(pointer, str):
        raise PatchFailed("patch-pointer", "must be a JSON pointer", path, "write a string like '/spec/replicas'")
    if pointer == "":
        return []
    if pointer[0] != "/" or _BAD_ESCAPE.search(pointer) is not None:
        raise PatchFailed(
            "patch-pointer",
            f"{_short(pointer)} is not a JSON pointer",
            path,
            "start with '/' and write '~' as '~0', '/' in a name as '~1'",
        )
    return [token.replace("~1", "/").replace("~0", "~") for token in pointer[1:].split("/")]


class _Application:
    """The document on its way through one patch, and what the patch has used up so far."""

    def __init__(self, document: Any, limits: PatchLimits) -> None:
        self.document = document
        self._limits = limits
        # Containers that only this application holds. Keeping the objects keeps their ids from being used again.
        self._own: dict[int, Any] = {}
        self._copied = 0
        self._shifted = 0

    def apply(self, operation: dict[str, Any], at: str) -> None:
        name = operation.get("op")
        tokens = parse_pointer(operation.get("path"), f"{at}.path")
        match name:
            case "add":
                self._add(tokens, _value(operation, at), at)
            case "remove":
                self._remove(tokens, at)
            case "replace":
                self._replace(tokens, _value(operation, at), at)
            case "test":
                self._test(tokens, _value(operation, at), at)
            case "move":
                self._move(parse_pointer(operation.get("from"), f"{at}.from"), tokens, at)
            case "copy":
                self._copy(parse_pointer(operation.get("from"), f"{at}.from"), tokens, at)
            case _:
                raise PatchFailed(
                    "patch-operation",
                    f"{_short(str(name))} is not an operation",
                    f"{at}.op",
                    "use add, remove, replace, move, copy or test",
                )

    def _add(self, tokens: list[str], value: Any, at: str) -> None:
        if not tokens:
            self.document = value
            return
        parent = self._writable_parent(tokens, at)
        if isinstance(parent, dict):
            parent[tokens[-1]] = value
            return
        index = len(parent) if tokens[-1] == "-" else _index(tokens[-1], len(parent) + 1, at)
        self._charge_shift(len(parent) - index, at)
        parent.insert(index, value)

    def _remove(self, tokens: list[str], at: str) -> Any:
        if not tokens:
            raise PatchFailed("patch-root", "the whole document cannot be removed", at, "delete the object instead")
        self._find(tokens, at)
        parent = self._writable_parent(tokens, at)
        if isinstance(parent, dict):
            return parent.pop(tokens[-1])
        index = _index(tokens[-1], len(parent), at)
        self._charge_shift(len(parent) - index, at)
        return parent.pop(index)

    def _replace(self, tokens: list[str], value: Any, at: str) -> None:
        if not tokens:
            self.document = value
            return
        self._find(tokens, at)
        parent = self._writable_parent(tokens, at)
        if isinstance(parent, dict):
            parent[tokens[-1]] = value
        else:
            parent[_index(tokens[-1], len(parent), at)] = value

    def _test(self, tokens: list[str], value: Any, at: str) -> None:
        if not _same(self._find(tokens, at), value):
            raise PatchFailed("patch-test-failed", f"the value at {_pointer(tokens)} is another one", at, _HINT)

    def _move(self, source: list[str], tokens: list[str], at: str) -> None:
        if len(source) < len(tokens) and tokens[: len(source)] == source:
            raise PatchFailed("patch-move", "a value cannot move into itself", at, "copy it instead")
        if source == tokens:
            self._find(source, at)
            return
        self._add(tokens, self._remove(source, at), at)

    def _copy(self, source: list[str], tokens: list[str], at: str) -> None:
        value = self._find(source, at)
        try:
            self._copied += len(orjson.dumps(value))
        except TypeError as error:
            raise PatchFailed("patch-result-too-deep", "the copied value nests too deep", at, _HINT) from error
        if self._copied > self._limits.max_copied_bytes:
            raise PatchTooLarge(
                "patch-copies-too-much", f"copies add more than {self._limits.max_copied_bytes} bytes", at, "copy less"
            )
        self._disown(value)
        self._add(tokens, value, at)

    def _find(self, tokens: list[str], at: str) -> Any:
        node = self.document
        for token in tokens:
            if isinstance(node, dict):
                node = node.get(token, _MISSING)
            elif isinstance(node, list):
                node = node[_index(token, len(node), at)]
            else:
                node = _MISSING
            if node is _MISSING:
                raise PatchFailed("patch-path-not-found", f"there is nothing at {_pointer(tokens)}", at, _HINT)
        return node

    def _writable_parent(self, tokens: list[str], at: str) -> Any:
        """The container of the last token, with every container on the way made our own."""
        node = self.document = self._owned(self.document, tokens, at)
        for token in tokens[:-1]:
            if isinstance(node, dict):
                if token not in node:
                    raise PatchFailed("patch-path-not-found", f"there is nothing at {_pointer(tokens)}", at, _HINT)
                key: Any = token
            else:
                key = _index(token, len(node), at)
            node[key] = self._owned(node[key], tokens, at)
            node = node[key]
        return node

    def _owned(self, node: Any, tokens: list[str], at: str) -> Any:
        if id(node) in self._own:
            return node
        if not isinstance(node, dict | list):
            raise PatchFailed("patch-path-not-found", f"{_pointer(tokens)} leads through a plain value", at, _HINT)
        self._charge_shift(len(node), at)
        mine = node.copy()
        self._own[id(mine)] = mine
        return mine

    def _disown(self, value: Any) -> None:
        pending = [value]
        while pending:
            node = pending.pop()
            if isinstance(node, dict | list):
                self._own.pop(id(node), None)
                pending.extend(node.values() if isinstance(node, dict) else node)

    def _charge_shift(self, elements: int, at: str) -> None:
        self._shifted += elements
        if self._shifted > self._limits.max_shifted_elements:
            raise PatchTooLarge("patch-too-much-work", "the patch moves too many list elements", at, "split the patch")


def _value(operation: dict[str, Any], at: str) -> Any:
    if "value" not in operation:
        raise PatchFailed("patch-value", "the operation needs a value", f"{at}.value", 'add a "value" member')
    return operation["value"]


def _index(token: str, length: int, at: str) -> int:
    if _INDEX.match(token) is None or int(token) >= length:
        raise PatchFailed("patch-index", f"{_short(token)} is not an index of a list of {length}", at, _HINT)
    return int(token)


def _same(left: Any, right: Any) -> bool:
    """JSON equality: numbers by value, but true is not 1."""
    try:
        if left != right:
            return False
    except RecursionError as error:
        raise PatchFailed("patch-result-too-deep", "the tested value nests too deep", hint=_HINT) from error
    pending = [(left, right)]
    while pending:
        a, b = pending.pop()
        if isinstance(a, bool) is not isinstance(b, bool):
            return False
        if isinstance(a, dict):
            pending.extend((a[name], b[name]) for name in a)
        elif isinstance(a, list):
            pending.extend(zip(a, b, strict=True))
    return True


def _pointer(tokens: list[str]) -> str:
    return _short("".join("/" + token.replace("~", "~0").replace("/", "~1") for token in tokens))


def _short(text: str) -> str:
    return repr(text if len(text) <= 120 else text[:117] + "...")
