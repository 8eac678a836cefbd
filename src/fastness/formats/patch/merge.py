"""JSON merge patch (RFC 7396): a patch is a picture of the change, null means "remove this member".

- Objects merge member by member; anything else, lists included, replaces what was there.
- Nulls inside a new object are dropped, because there is nothing to remove yet.
- The result shares every untouched member with the target. When no plain value changes the target itself comes back, so
  callers can test `result is target` before they do the work of a write.
"""

from typing import Any, Final

from fastness.formats.errors import MalformedPatch


def apply_merge_patch(target: dict[str, Any], patch: Any) -> dict[str, Any]:
    """Apply `patch` to an object; raises `MalformedPatch` when the patch is not an object."""
    if not isinstance(patch, dict):
        raise MalformedPatch(
            "patch-not-an-object", "a merge patch of an object must itself be an object", hint="send a JSON object"
        )
    return _merge(target, patch)


def _merge(target: dict[str, Any], patch: dict[str, Any]) -> dict[str, Any]:
    result = target
    for name, value in patch.items():
        if value is None:
            if name in result:
                result = dict(target) if result is target else result
                del result[name]
            continue
        old = result.get(name)
        new = _merge(old if type(old) is dict else {}, value) if type(value) is dict else value
        if new is old or (type(new) is type(old) and type(new) in _PLAIN and new == old):
            continue
        result = dict(target) if result is target else result
        result[name] = new
    return result


# Lists are not compared: to Python [true] equals [1], and a list that is sent is meant to be written.
_PLAIN: Final = (str, int, float, bool)
