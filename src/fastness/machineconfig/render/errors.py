"""What can be wrong with an input: an exception where one thing is wrong, data where all of it is told at once.

    MachineConfigError          base; never raised itself
    ├── BadMaxUnavailable       the pool's budget cannot be understood
    ├── BadPolicy               a RolloutPolicy or a disruption policy cannot be understood
    ├── BadSettings             a KubeletConfig or a ContainerRuntimeConfig asks for something that is not allowed
    ├── BadRegistries           what is said about registries, mirrors or signatures cannot be carried out
    ├── BadStreams              streams of operating system images cannot be read, or none can be the default
    └── BadPointer              what a new machine would boot with cannot be made

What is wrong with a MachineConfig is a list of `Problem`: each names the config, the field, the reason and what to do. Rendering
folds problems into the message of a degraded pool, `fastness validate` lists them, admission turns them into warnings.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from enum import StrEnum

from fastness.kinds.kind import JsonObject
from fastness.runtime.errors import FastnessError


class MachineConfigError(FastnessError):
    """A sentence, a stable code, and what to do."""

    code = "machine-config"


class BadMaxUnavailable(MachineConfigError):
    """`spec.maxUnavailable` is neither a number nor a percentage."""

    code = "bad-max-unavailable"


class BadPolicy(MachineConfigError):
    """A policy cannot be understood."""

    code = "bad-policy"


class BadSettings(MachineConfigError):
    """Settings of the kubelet or the runtime that are not allowed."""

    code = "bad-settings"


@dataclass(frozen=True, slots=True)
class Culprit:
    """The object that an error is about."""

    kind: str
    namespace: str
    name: str

    def __str__(self) -> str:
        return f"{self.kind} {self.namespace}/{self.name}" if self.namespace else f"{self.kind} {self.name}"


class BadRegistries(MachineConfigError):
    """Registries, mirrors or signatures that cannot be configured; `culprit` is the object that asks for it."""

    code = "bad-registries"

    def __init__(self, message: str, hint: str, culprit: Culprit) -> None:
        super().__init__(message, hint)
        self.culprit = culprit

    def __str__(self) -> str:
        return f"{self.culprit}: {self.message} ({self.hint})"


class BadStreams(MachineConfigError):
    """Streams of operating system images cannot be read, or none can be the default."""

    code = "bad-streams"
    hint = "Name images by digest that the registry has and whose labels say which stream they are; it is tried again by itself."


class BadPointer(MachineConfigError):
    """A pointer config cannot be made."""

    code = "bad-pointer"


class Severity(StrEnum):
    """Whether nothing is rendered because of it."""

    ERROR = "error"
    WARNING = "warning"


@dataclass(frozen=True, slots=True)
class Problem:
    """One thing that is wrong: where, why, and the way out. `code` is stable."""

    config: str
    field: str
    code: str
    reason: str
    way_out: str = ""
    severity: Severity = Severity.ERROR
    kind: str = "MachineConfig"

    def __str__(self) -> str:
        return f"{self.kind} {self.config}: {self.short}"

    @property
    def short(self) -> str:
        """Without the name of the config."""
        place = f"{self.field}: " if self.field else ""
        return f"{place}{self.reason}" + (f" ({self.way_out})" if self.way_out else "")

    @property
    def fatal(self) -> bool:
        """Whether it keeps a pool from being rendered."""
        return self.severity is Severity.ERROR

    def to_json(self) -> JsonObject:
        """As `-o json` prints it."""
        names = {"way_out": "wayOut"}
        return {names.get(key, key): str(value) for key, value in asdict(self).items()}


def fatal(problems: Sequence[Problem]) -> tuple[Problem, ...]:
    """Those that keep a pool from being rendered."""
    return tuple(problem for problem in problems if problem.fatal)
