"""Refusals in the words that Kubernetes clients know.

Tools match on code, reason and `details`; people read the message. `details.kind` is the plural for refusals about an object's
existence or version, and the kind for refusals about its content: that is how Kubernetes does it.

A refusal quotes the value that is wrong. For a Secret that value may be the secret itself, and refusals travel: into terminals,
logs, tickets. So the causes of such kinds keep the field and the rule and lose the value (`conceal`).
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from dataclasses import replace

from fastness.apiserver.catalog import Served
from fastness.kube.errors import (
    AlreadyExists,
    BadRequest,
    Cause,
    Conflict,
    Forbidden,
    InternalError,
    Invalid,
    MethodNotAllowed,
    NotFound,
    Timeout,
    TooLarge,
)

MAX_MESSAGE_CAUSES = 10
_SECRET_KINDS = frozenset({("", "secrets")})
_PUBLIC = ("metadata", "type")
_QUOTING = frozenset({
    "FieldValueInvalid", "FieldValueTypeInvalid", "FieldValueNotSupported", "FieldValueDuplicate",
})  # fmt: skip
_CUT = "…"


def qualified(served: Served) -> str:
    """`pods`, or `machines.trusted-execution-clusters.io`."""
    kind = served.kind
    return f"{kind.plural}.{kind.group}" if kind.group else kind.plural


def not_found(served: Served, name: str) -> NotFound:
    """No object of that name."""
    return NotFound(
        f'{qualified(served)} "{name}" not found', group=served.kind.group, kind=served.kind.plural, name=name
    )


def no_such_resource() -> NotFound:
    """A path that no kind is served at."""
    return NotFound("the server could not find the requested resource")


def already_exists(served: Served, name: str) -> AlreadyExists:
    """The name is taken."""
    return AlreadyExists(
        f'{qualified(served)} "{name}" already exists', group=served.kind.group, kind=served.kind.plural, name=name
    )


def too_large(served: Served, name: str, size: int, most: int) -> TooLarge:
    """The object that would result is larger than what is stored."""
    return TooLarge(
        f'{qualified(served)} "{name}" would take {size} bytes with the field ownership that the server adds: limit is {most}',
        group=served.kind.group, kind=served.kind.plural, name=name,
    )  # fmt: skip


def set_aside(group: str, plural: str, name: str, reason: str) -> InternalError:
    """The object is there and nobody can read it."""
    resource = f"{plural}.{group}" if group else plural
    return InternalError(
        f'{resource} "{name}" is set aside, because it cannot be read: {reason}. `fastness state remove` takes it away.',
        group=group, kind=plural, name=name,
    )  # fmt: skip


def conflict(served: Served, name: str, why: str, causes: Sequence[Cause] = ()) -> Conflict:
    """The object moved on, or a precondition does not hold."""
    return Conflict(
        f'Operation cannot be fulfilled on {qualified(served)} "{name}": {why}',
        group=served.kind.group, kind=served.kind.plural, name=name, causes=causes,
    )  # fmt: skip


def precondition_failed(served: Served, name: str, why: str) -> Conflict:
    """A delete asked for another object or version; Kubernetes names the kind here, not the resource."""
    kind = served.kind
    label = f"{kind.kind}.{kind.group}" if kind.group else kind.kind
    return Conflict(
        f'Operation cannot be fulfilled on {label} "{name}": {why}', group=kind.group, kind=kind.kind, name=name
    )


def options_invalid(options: str, field: str, reason: str, text: str) -> Invalid:
    """A query parameter, or a field of DeleteOptions, that means nothing."""
    return Invalid(
        f'{options}.meta.k8s.io "" is invalid: {field}: {text}',
        group="meta.k8s.io", kind=options, causes=[Cause(field, reason, text)],
    )  # fmt: skip


def modified(served: Served, name: str) -> Conflict:
    """Another write came first."""
    return conflict(
        served, name, "the object has been modified; please apply your changes to the latest version and try again"
    )


def invalid(served: Served, name: str, causes: Sequence[Cause]) -> Invalid:
    """The content is wrong in these fields."""
    kind, causes = served.kind, conceal(served, causes)
    label = f"{kind.kind}.{kind.group}" if kind.group else kind.kind
    lines = [f"{cause.field}: {cause.message}" for cause in causes[:MAX_MESSAGE_CAUSES]]
    if len(causes) > MAX_MESSAGE_CAUSES:
        lines.append(f"and {len(causes) - MAX_MESSAGE_CAUSES} more")
    text = lines[0] if len(lines) == 1 else "[" + ", ".join(lines) + "]"
    return Invalid(f'{label} "{name}" is invalid: {text}', group=kind.group, kind=kind.kind, name=name, causes=causes)


def forbidden(served: Served, name: str, why: str, causes: Sequence[Cause] = ()) -> Forbidden:
    """Admission said no."""
    return Forbidden(
        f'{qualified(served)} "{name}" is forbidden: {why}',
        group=served.kind.group, kind=served.kind.plural, name=name, causes=causes,
    )  # fmt: skip


def method_not_allowed(verb: str, allow: tuple[str, ...] = ()) -> MethodNotAllowed:
    """The resource does not have this verb; `allow` are the methods that it has."""
    error = MethodNotAllowed(f"the server does not allow this method on the requested resource ({verb})")
    error.allow = allow
    return error


def too_new(version: int, current: int) -> Timeout:
    """A version from the future: perhaps of another replica, perhaps of a lost state."""
    return Timeout(
        f"Too large resource version: {version}, current: {current}",
        causes=[Cause("", "ResourceVersionTooLarge", "Too large resource version")],
        retry_after=1,
    )


def strict(problems: Sequence[str]) -> BadRequest:
    """What fieldValidation=Strict found."""
    return BadRequest(f"strict decoding error: {', '.join(problems)}")


def is_concealed(served: Served) -> bool:
    """Whether values of this kind must not be repeated."""
    return served.storage_key in _SECRET_KINDS


def conceal(served: Served, causes: Iterable[Cause]) -> list[Cause]:
    """The causes as they may be told: without values, where the kind is a secret one."""
    if not is_concealed(served):
        return list(causes)
    return [_without_value(cause) for cause in causes]


def _without_value(cause: Cause) -> Cause:
    start, quoted, rest = cause.message.partition(" value: ")
    if not quoted or cause.reason not in _QUOTING or cause.field.startswith(_PUBLIC):
        return cause
    try:
        tail = rest[json.JSONDecoder().raw_decode(rest)[1] :]
    except ValueError:  # no value, or one that was cut
        if _CUT not in rest:
            return cause
        tail = rest.rpartition(_CUT)[2].lstrip("'\"")
    return replace(cause, message=f"{start} value: (not shown){tail}")
