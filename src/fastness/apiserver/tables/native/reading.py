"""Reading parts of raw objects without tripping: a part that is missing or of another type is empty.

The rest of the notation that native printers share: label selectors and containers as text, lists that are cut after three.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from datetime import datetime
from typing import Any, Final

from fastness.apiserver.tables.ages import age

NONE: Final = "<none>"
UNSET: Final = "<unset>"
SHOWN: Final = 3

Obj = Mapping[str, Any]
Cells = Callable[[Obj, datetime], list[Any]]
_EMPTY: Final[Obj] = {}


def part(value: Any, *path: str) -> Obj:
    """The object at the end of the path."""
    for name in path:
        value = value.get(name) if isinstance(value, dict) else None
    return value if isinstance(value, dict) else _EMPTY


def entries(value: Any, *path: str) -> list[Obj]:
    """The objects in the list at the end of the path."""
    *before, last = path
    leaf = part(value, *before).get(last)
    return [entry for entry in leaf if isinstance(entry, dict)] if isinstance(leaf, list) else []


def words(value: Any, *path: str) -> list[str]:
    """The strings in the list at the end of the path."""
    *before, last = path
    leaf = part(value, *before).get(last)
    return [entry for entry in leaf if isinstance(entry, str)] if isinstance(leaf, list) else []


def text(value: Any, *path: str, default: str = "") -> str:
    """The text at the end of the path; `default` when it is missing or empty."""
    *before, last = path
    leaf = part(value, *before).get(last)
    return default if leaf is None or leaf == "" else str(leaf)


def count(value: Any, *path: str) -> int:
    """The number at the end of the path, 0 when it is missing."""
    *before, last = path
    leaf = part(value, *before).get(last)
    return leaf if isinstance(leaf, int) else 0


def name_of(obj: Obj) -> str:
    """The object's name."""
    return text(obj, "metadata", "name")


def age_of(obj: Obj, now: datetime) -> str:
    """How long ago the object was created."""
    return age(part(obj, "metadata").get("creationTimestamp"), now)


def is_true(conditions: Iterable[Obj], kind: str) -> bool:
    """Whether the condition of that type is true."""
    return any(entry.get("type") == kind and entry.get("status") == "True" for entry in conditions)


def labels_text(labels: Obj) -> str:
    """A set of labels as `a=b,c=d`."""
    return ",".join(f"{key}={labels[key]}" for key in sorted(labels)) or NONE


def selector_text(selector: Any, empty: str = NONE) -> str:
    """A LabelSelector in the notation of `kubectl -l`."""
    terms = [(key, f"{key}={value}") for key, value in part(selector, "matchLabels").items()]
    for entry in entries(selector, "matchExpressions"):
        key, values = text(entry, "key"), ",".join(sorted(words(entry, "values")))
        match entry.get("operator"):
            case "In":
                terms.append((key, f"{key} in ({values})"))
            case "NotIn":
                terms.append((key, f"{key} notin ({values})"))
            case "Exists":
                terms.append((key, key))
            case "DoesNotExist":
                terms.append((key, f"!{key}"))
            case _:
                return "<error>"
    return ",".join(term for _, term in sorted(terms, key=lambda pair: pair[0])) or empty


def container_cells(pod_spec: Obj) -> list[str]:
    """Names and images of the containers of a pod template."""
    containers = entries(pod_spec, "containers")
    return [
        ",".join(text(container, "name") for container in containers),
        ",".join(text(container, "image") for container in containers),
    ]


def cut(values: Sequence[str], total: int, empty: str) -> str:
    """The first three of a list, and how many more there are."""
    cell = ",".join(values[:SHOWN])
    if total > SHOWN:
        return f"{cell} + {total - SHOWN} more..."
    return cell or empty
