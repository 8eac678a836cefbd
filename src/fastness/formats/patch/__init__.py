"""The three patch languages of the Kubernetes API, as pure functions on decoded JSON.

    jsonpatch.py  JSON patch (RFC 6902): a list of operations at JSON pointers (RFC 6901), applied all or nothing
    merge.py      JSON merge patch (RFC 7396): a patch is a picture of the change, null means "remove this member"
    ordering.py   The order of a list after a strategic merge
    strategic.py  A merge patch that knows which lists are sets and which member names an element

| Content type | Function | Defined by |
| --- | --- | --- |
| `application/merge-patch+json` | `apply_merge_patch` | RFC 7396 |
| `application/json-patch+json` | `apply_json_patch` | RFC 6902, pointers RFC 6901 |
| `application/strategic-merge-patch+json` | `apply_strategic_patch` | Kubernetes; needs the merge rules of the kind's schema |

- Nothing mutates its arguments. Results share every part that did not change with them, so a caller must treat both as
  frozen. There is no deep copy anywhere.
- Arguments come from `formats.json.decode`, which bounds their depth; growth by the patch itself is bounded here.
- Errors say which side is wrong: `MalformedPatch` (400), `PatchTooLarge` (413), `PatchFailed` (422).
"""

from fastness.formats.patch.jsonpatch import DEFAULT_PATCH_LIMITS, PatchLimits, apply_json_patch
from fastness.formats.patch.merge import apply_merge_patch
from fastness.formats.patch.strategic import MergeRule, MergeRules, apply_strategic_patch

__all__ = [
    "DEFAULT_PATCH_LIMITS",
    "MergeRule",
    "MergeRules",
    "PatchLimits",
    "apply_json_patch",
    "apply_merge_patch",
    "apply_strategic_patch",
]
