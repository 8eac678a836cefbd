"""The order of a list after a strategic merge.

Two orders meet: that of the patch, and that of the server's list. Elements that the patch names follow the patch, all
others follow the server; then the two runs are interleaved. At each step the server's element goes first only when both
heads stood in the server's list and its head stood earlier: Kubernetes' rule, which puts new elements in front.
"""

from collections.abc import Hashable
from typing import Any

from fastness.formats.errors import PatchFailed


def element_key(item: Any, merge_key: str | None, path: tuple[str, ...]) -> Hashable:
    """What identifies an element: the value of its merge key, or the plain value itself. `true` is not `1`."""
    value = item
    if merge_key is not None and isinstance(item, dict):
        if merge_key not in item:
            raise PatchFailed(
                "patch-no-merge-key",
                f"an element lacks its merge key {merge_key!r}",
                ".".join(path),
                f"give every element of the list a {merge_key!r}",
            )
        value = item[merge_key]
    if isinstance(value, dict | list):
        raise PatchFailed(
            "patch-element", "the element cannot be compared", ".".join(path), "use plain values in sets and merge keys"
        )
    return (isinstance(value, bool), value)


def interleave(
    merged: list[Any], order: list[Any], server: list[Any], merge_key: str | None, path: tuple[str, ...]
) -> list[Any]:
    """Sort `merged` by the order of `wanted` and, for what that does not name, of `server`."""
    wanted_at = _positions(order, merge_key, path)
    server_at = _positions(server, merge_key, path)
    keyed = [(element_key(item, merge_key, path), item) for item in merged]
    far = len(keyed) + len(server)
    named = sorted((pair for pair in keyed if pair[0] in wanted_at), key=lambda pair: wanted_at[pair[0]])
    others = sorted((p for p in keyed if p[0] not in wanted_at), key=lambda pair: server_at.get(pair[0], far))
    result: list[Any] = []
    left = right = 0
    while left < len(others) and right < len(named):
        left_at, right_at = server_at.get(others[left][0]), server_at.get(named[right][0])
        if left_at is not None and right_at is not None and left_at < right_at:
            result.append(others[left][1])
            left += 1
        else:
            result.append(named[right][1])
            right += 1
    result.extend(item for _, item in others[left:])
    result.extend(item for _, item in named[right:])
    return result


def _positions(items: list[Any], merge_key: str | None, path: tuple[str, ...]) -> dict[Hashable, int]:
    positions: dict[Hashable, int] = {}
    for index, item in enumerate(items):
        positions.setdefault(element_key(item, merge_key, path), index)
    return positions
