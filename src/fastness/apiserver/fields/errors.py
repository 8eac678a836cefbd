"""Why field ownership said no.

    FieldsError                    code, hint, message; never raised itself
    ├── ApplyConflict              409: other managers own fields that the configuration would change
    └── BadConfiguration           the applied configuration cannot be merged; `status` is the HTTP code of a real API server
        ├── ManagedFieldsGiven     400: the configuration carries metadata.managedFields
        ├── FieldNotDeclared       500: a field that the schema does not have; `path` names it
        ├── WrongShape             500: a value of another type than the schema says
        ├── BadListItem            500: an item of an associative list that cannot be told apart from others
        └── DamagedOwnership       500: the managedFields of the stored object cannot be read

`message` is what kubectl prints, word for word what a real API server says where it says something, so that scripts which
look for a phrase keep working. The REST engine turns these into `kube.errors`.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar

from fastness.kube.errors import Cause
from fastness.runtime.errors import FastnessError


class FieldsError(FastnessError):
    """Base of everything that this package raises."""

    code = "FieldsError"
    status: ClassVar[int] = 500

    def __init__(self, message: str, path: str = "") -> None:
        super().__init__(message)
        self.path = path

    def __str__(self) -> str:
        return self.message


@dataclass(frozen=True, slots=True)
class FieldConflict:
    """One field that somebody else owns with another value; `path` reads like `.spec.replicas`."""

    manager: str
    operation: str
    api_version: str
    subresource: str
    path: str

    @property
    def owner(self) -> str:
        """The other manager as messages name it; the version tells two updaters of one name apart."""
        text = f'"{self.manager}"'
        if self.subresource:
            text += f' with subresource "{self.subresource}"'
        return f"{text} using {self.api_version}" if self.operation == "Update" else text


class ApplyConflict(FieldsError):
    """Other managers own fields that the configuration would change; nothing was merged."""

    code = "ApplyConflict"
    hint = "Take over with force, drop the fields from the configuration, or set them to the values they have."
    status = 409

    def __init__(self, conflicts: Sequence[FieldConflict]) -> None:
        self.conflicts = tuple(sorted(conflicts, key=lambda each: each.owner))
        super().__init__(_tell(self.conflicts), self.conflicts[0].path if self.conflicts else "")

    @property
    def causes(self) -> tuple[Cause, ...]:
        """One `FieldManagerConflict` for each field, as `Status.details.causes` has them."""
        return tuple(Cause(each.path, "FieldManagerConflict", f"conflict with {each.owner}") for each in self.conflicts)


class BadConfiguration(FieldsError):
    """The applied configuration cannot be merged."""

    code = "BadConfiguration"
    hint = "Correct the field that the message names and apply again."


class ManagedFieldsGiven(BadConfiguration):
    """The configuration carries metadata.managedFields."""

    code = "ManagedFieldsGiven"
    hint = "Remove metadata.managedFields from the configuration: the server keeps it."
    status = 400

    def __init__(self) -> None:
        super().__init__("metadata.managedFields must be nil", ".metadata.managedFields")


class FieldNotDeclared(BadConfiguration):
    """The configuration has a field that the schema does not have."""

    code = "FieldNotDeclared"
    hint = "Check the spelling with `kubectl explain`, or remove the field."


class WrongShape(BadConfiguration):
    """A value in the configuration has another type than the schema says."""

    code = "WrongShape"


class BadListItem(BadConfiguration):
    """An item of an associative list repeats another one's key, or has none."""

    code = "BadListItem"
    hint = "Give each item of the list its own key."


class DamagedOwnership(BadConfiguration):
    """The managedFields of the stored object cannot be read."""

    code = "DamagedOwnership"
    hint = "Reset the ownership with a patch that sets metadata.managedFields to [{}]."


def _tell(conflicts: Sequence[FieldConflict]) -> str:
    if len(conflicts) == 1:
        return f"Apply failed with 1 conflict: conflict with {conflicts[0].owner}: {conflicts[0].path}"
    lines: list[str] = []
    for owner in dict.fromkeys(each.owner for each in conflicts):
        lines.append(f"conflicts with {owner}:")
        lines += [f"- {each.path}" for each in conflicts if each.owner == owner]
    return f"Apply failed with {len(conflicts)} conflicts: " + "\n".join(lines)
