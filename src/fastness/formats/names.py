"""The names that Kubernetes allows: labels, subdomains, qualified names, label values, path segments.

Every function takes a string and returns what is wrong with it as sentences; an empty list means the name is good. Callers
turn each sentence into one cause of a Status, so a name that breaks two rules gives two causes, like the real API server:
the length is one rule, the alphabet another.

- DNS-1123 label: 63 characters of `a-z0-9-`, alphanumeric at both ends. Subdomain: such labels joined by dots, 253 in all.
- DNS-1035 label: the same with a letter first (Services and namespaces of old clusters).
- Qualified name: `[subdomain/]name` where the name has at most 63 of `A-Za-z0-9-_.`: keys of labels and annotations.
- Label value: empty, or the name part of a qualified name.
- Path segment: anything that fits between two slashes of a URL: names of RBAC objects and many custom resources.

Admission, the registry of kinds and `selectors` use these.
"""

import re
from collections.abc import Callable
from typing import Final

DNS1123_LABEL_MAX: Final = 63
DNS1123_SUBDOMAIN_MAX: Final = 253
DNS1035_LABEL_MAX: Final = 63
QUALIFIED_NAME_MAX: Final = 63
LABEL_VALUE_MAX: Final = 63

Validator = Callable[[str], list[str]]

# `\Z`, not `$`: the latter would let a final newline through.
_LABEL: Final = re.compile(r"[a-z0-9](?:[-a-z0-9]*[a-z0-9])?\Z", re.ASCII)
_SUBDOMAIN: Final = re.compile(r"[a-z0-9](?:[-a-z0-9]*[a-z0-9])?(?:\.[a-z0-9](?:[-a-z0-9]*[a-z0-9])?)*\Z", re.ASCII)
_LABEL_1035: Final = re.compile(r"[a-z](?:[-a-z0-9]*[a-z0-9])?\Z", re.ASCII)
_NAME_PART: Final = re.compile(r"[A-Za-z0-9](?:[-A-Za-z0-9_.]*[A-Za-z0-9])?\Z", re.ASCII)
# All of a good qualified name in one look: every write asks this of each of its labels, and nearly all are good.
_QUALIFIED: Final = re.compile(
    r"(?:(?=[^/]{1,253}/)[a-z0-9](?:[-a-z0-9]*[a-z0-9])?(?:\.[a-z0-9](?:[-a-z0-9]*[a-z0-9])?)*/)?"
    r"(?=.{1,63}\Z)[A-Za-z0-9](?:[-A-Za-z0-9_.]*[A-Za-z0-9])?\Z",
    re.ASCII,
)


def dns1123_label(value: str) -> list[str]:
    """Problems of a DNS-1123 label: namespaces, pods' host names."""
    return _check(
        value,
        DNS1123_LABEL_MAX,
        _LABEL,
        "a DNS-1123 label has lower-case letters, digits and '-', with a letter or digit at both ends (like 'my-name')",
    )


def dns1123_subdomain(value: str) -> list[str]:
    """Problems of a DNS-1123 subdomain: the names of most objects."""
    return _check(
        value,
        DNS1123_SUBDOMAIN_MAX,
        _SUBDOMAIN,
        "a DNS-1123 subdomain has lower-case letters, digits, '-' and '.', with a letter or digit at both ends of "
        "every part (like 'node-1.example.com')",
    )


def dns1035_label(value: str) -> list[str]:
    """Problems of a DNS-1035 label: services."""
    return _check(
        value,
        DNS1035_LABEL_MAX,
        _LABEL_1035,
        "a DNS-1035 label has lower-case letters, digits and '-', a letter first and a letter or digit last (like 'abc-1')",
    )


def qualified_name(value: str) -> list[str]:
    """Problems of `[subdomain/]name`: keys of labels and annotations, finalizers, taints."""
    if _QUALIFIED.match(value) is not None:
        return []
    parts = value.split("/")
    if len(parts) > 2:
        return ["a qualified name is a name with at most one prefix, a DNS subdomain and '/' (like 'example.com/name')"]
    problems: list[str] = []
    if len(parts) == 2:
        prefix = parts[0]
        problems += (
            ["the prefix part must not be empty"] if not prefix else _in_part("prefix", dns1123_subdomain(prefix))
        )
    name = parts[-1]
    if not name:
        problems.append("the name part must not be empty")
    elif _size(name) > QUALIFIED_NAME_MAX:
        problems.append(f"the name part must be no more than {QUALIFIED_NAME_MAX} characters")
    if _NAME_PART.match(name) is None:
        problems.append(
            "the name part has letters, digits, '-', '_' and '.', with a letter or digit at both ends (like 'My.Name_1')"
        )
    return problems


def label_value(value: str) -> list[str]:
    """Problems of a label's value; the empty string is good."""
    problems: list[str] = []
    if _size(value) > LABEL_VALUE_MAX:
        problems.append(f"must be no more than {LABEL_VALUE_MAX} characters")
    if value and _NAME_PART.match(value) is None:
        problems.append(
            "a label value is empty or has letters, digits, '-', '_' and '.', with a letter or digit at both ends"
        )
    return problems


def path_segment(value: str) -> list[str]:
    """Problems of a name that must be one segment of a URL path."""
    if value in (".", ".."):
        return [f"must not be {value!r}"]
    return [f"must not contain {character!r}" for character in ("/", "%") if character in value]


def generate_prefix(validator: Validator, prefix: str) -> list[str]:
    """Problems of a `generateName`: a trailing '-' is fine, because random characters follow it."""
    return validator(prefix[:-1] + "a" if prefix.endswith("-") else prefix)


def _check(value: str, longest: int, pattern: re.Pattern[str], rule: str) -> list[str]:
    problems: list[str] = []
    if _size(value) > longest:
        problems.append(f"must be no more than {longest} characters")
    if pattern.match(value) is None:
        problems.append(rule)
    return problems


def _size(value: str) -> int:
    # Kubernetes counts bytes; for the ASCII names that can pass at all it is the same.
    return len(value) if value.isascii() else len(value.encode("utf-8", "surrogatepass"))


def _in_part(part: str, problems: list[str]) -> list[str]:
    return [f"the {part} part: {problem}" for problem in problems]
