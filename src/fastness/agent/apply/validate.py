"""Does the disk say what the config says? Every difference, each with a text for people.

Files are compared by type, owner, mode and bytes, units by their files and by what is enabled, the deployment by what is booted
and by whether the container runtime can use the packages for confidential containers. Paths that others keep current
(certificates, pull secrets, what other operators declared) are not ours to judge.

A text shows what changed only if everybody on the machine may read the file: what is reported ends up in annotations and events,
which more people read than root's files. Units are always readable, so their mode says nothing about what their author put into
them, such as a password in an `Environment=`; what changed there is not shown.
"""

from __future__ import annotations

import difflib
import hashlib
from collections.abc import Iterable, Iterator
from typing import Final, NamedTuple

from fastness.agent.apply import accounts, handlers
from fastness.agent.apply.desired import NULL, UNITS, Desired, Unit
from fastness.agent.apply.matching import brought, matches, same_owner
from fastness.agent.apply.ports import Host, OperatingSystem
from fastness.agent.host.states import Absent, File, Large, Link, Other, State
from fastness.formats.image_reference import same_image
from fastness.kinds.kata import runtime
from fastness.kinds.machineconfiguration import names

MAX_LINES: Final = 20
MAX_LINE: Final = 200
MAX_SHOWN: Final = 64 * 1024
_PUBLIC: Final = 0o004
_NOT_OURS: Final = frozenset({
    names.KUBELET_CA,
    "/etc/kubernetes/static-pod-resources/configmaps/cloud-config/ca-bundle.pem",
    "/etc/mco/internal-registry-pull-secret.json",
    "/etc/fastness/image-pull-secret.json",
})  # fmt: skip
_NOT_ENABLED: Final = ("disabled", "masked", "masked-runtime", "not-found")
OPERATING_SYSTEM, ARGUMENTS, EXTENSIONS, KERNEL = "operating system", "kernel arguments", "extensions", "kernel"
_IS_ENABLED: Final = ("enabled", "enabled-runtime")


class Drift(NamedTuple):
    """One difference; `path` is a file, or the name of a unit, or what of the system differs."""

    path: str
    what: str

    def __str__(self) -> str:
        return f"{self.path}: {self.what}"


def of_system(drift: Drift) -> bool:
    """Whether it is the booted system that differs, which no file puts right."""
    return drift.path in (OPERATING_SYSTEM, ARGUMENTS, EXTENSIONS, KERNEL)


def drifts(desired: Desired, host: Host, only: Iterable[str] | None = None, *, built: bool = False) -> list[Drift]:
    """What on the disk differs from a config; `only` limits it to some paths, `built` is a machine with an image of its pool."""
    chosen = desired.paths if only is None else [path for path in only if path in desired.paths]
    others = desired.others
    differences = [
        drift for path in chosen if not others.owner_of(path) for drift in _path(path, desired, host, built)
    ]  # fmt: skip
    if only is None or not {*only}.isdisjoint(_runtime_paths(desired)):
        differences += _runtime(desired, host)
    if only is None:
        differences += [drift for name, unit in desired.units.items() for drift in _unit(name, unit, host)]
        differences += [*_password(desired, host), *system_drifts(desired, host.system)]
    return differences


def watched(desired: Desired) -> list[str]:
    """The paths at which a difference shows."""
    return [*desired.paths, *_runtime_paths(desired)]


def describe_drifts(config: str, differences: Iterable[Drift]) -> str:
    """The differences as one message."""
    return f"unexpected on-disk state validating against {config}: " + "; ".join(str(drift) for drift in differences)


def _path(path: str, desired: Desired, host: Host, built: bool) -> Iterator[Drift]:
    target = desired.paths[path].state
    # Others write these all the time; judged by the config, every node would be degraded after each rotation.
    if path in _NOT_OURS or isinstance(target, Absent):
        return
    present = host.root.inspect(path, max(MAX_SHOWN, len(target.content)) if isinstance(target, File) else 0)
    if not matches(present, target) and not (built and brought(path, target, present, host.root)):
        yield Drift(path, _difference(target, present, is_unit=path.startswith(f"{UNITS}/")))


def _difference(expected: State, present: State | Large, *, is_unit: bool) -> str:
    match expected, present:
        case File(), Large():
            return f"is a file of {present.size} bytes, expected {len(expected.content)}"
        case File(), File():
            mode = f"mode is {present.mode:04o}, expected {expected.mode:04o}" if present.mode != expected.mode else ""
            content = _content(expected, present, is_unit) if present.content != expected.content else ""
            return ", ".join(part for part in (mode, _owner(expected, present), content) if part)
        case Link(target), Link(actual):
            return f"link leads to {actual}, expected {target}"
        case _:
            return f"is {_word(present)}, expected {_word(expected)}"


def _owner(expected: File, present: File) -> str:
    if same_owner(present, expected):
        return ""
    return f"owner is {present.uid}:{present.gid}, expected {_number(expected.uid)}:{_number(expected.gid)}"


def _number(owner: int | None) -> str:
    return "any" if owner is None else str(owner)


def _word(state: State | Large) -> str:
    match state:
        case Absent():
            return "missing"
        case File() | Large():
            return "a file"
        case Link(target):
            return f"a link to {target}" if target == NULL else "a link"
        case Other(what):
            return what


def _content(expected: File, present: File, is_unit: bool) -> str:
    # Both: a private file that a link or a rename put in the place of a public one must not be told either.
    secret = is_unit or not expected.mode & present.mode & _PUBLIC
    # Comparing lines takes the product of their numbers, and a user may have written one of the two.
    if not secret and len(expected.content) + len(present.content) <= MAX_SHOWN:
        try:
            before, after = expected.content.decode().splitlines(), present.content.decode().splitlines()
        except UnicodeDecodeError:
            pass
        else:
            lines = list(difflib.unified_diff(before, after, "expected", "found", lineterm="", n=1))
            excerpt = [line[:MAX_LINE] for line in lines[:MAX_LINES]]
            more = [f"... {len(lines) - MAX_LINES} more lines"] if len(lines) > MAX_LINES else []
            return "content differs:\n" + "\n".join([*excerpt, *more])
    return f"content differs: sha256 {_digest(present.content)}, expected {_digest(expected.content)}"


def _digest(content: bytes) -> str:
    return hashlib.sha256(content).hexdigest()[:16]


def _unit(name: str, unit: Unit, host: Host) -> Iterator[Drift]:
    if unit.masked or unit.enabled is None:
        return
    word = host.units.is_enabled(name)
    # A unit that neither the config nor the distribution brings could not be enabled, and that was no failure then.
    if unit.enabled and word in _NOT_ENABLED and (unit.written or word != "not-found"):
        yield Drift(name, f"unit is {word}, expected enabled")
    if not unit.enabled and word in _IS_ENABLED:
        yield Drift(name, f"unit is {word}, expected disabled")


def _password(desired: Desired, host: Host) -> Iterator[Drift]:
    if desired.password is not None:
        # Only whether it is the same: neither hash is told, because offline guessing needs nothing else.
        present = accounts.password_hash(host.root.look(accounts.SHADOW), names.CORE_USER)
        if present != desired.password:
            yield Drift(accounts.SHADOW, f"the password of {names.CORE_USER} is not the configured one")


def _runtime_paths(desired: Desired) -> tuple[str, ...]:
    wants = any(extension in runtime.PACKAGES for extension in desired.deployment.extensions)
    return runtime.PATHS if wants else ()


def _runtime(desired: Desired, host: Host) -> Iterator[Drift]:
    """Packages for confidential containers are there when the container runtime can use them."""
    if _runtime_paths(desired):
        yield from (Drift(path, what) for path, what in handlers.lacking(host.root))


def system_drifts(desired: Desired, system: OperatingSystem) -> Iterator[Drift]:
    """What the booted system lacks of the one that a config asks for."""
    booted, expected = system.booted(), desired.deployment
    if expected.image and not booted.image:
        why = f"cannot apply an OS image: this machine does not boot one, expected {expected.image}"
        yield Drift(OPERATING_SYSTEM, why)
    elif expected.image and not same_image(booted.image, expected.image):
        yield Drift(OPERATING_SYSTEM, f"booted {booted.image}, expected {expected.image}")
    # Where the image is right already, what is staged would take the machine away from it at its next boot.
    staged = system.staged()
    if staged is not None and staged.image and not same_image(staged.image, expected.image or booted.image):
        yield Drift(
            OPERATING_SYSTEM, f"the next boot would run {staged.image}, expected {expected.image or booted.image}"
        )
    # Only what is missing: the image and the boot loader add arguments of their own.
    missing = [argument for argument in expected.arguments if argument not in booted.arguments]
    if missing:
        yield Drift(ARGUMENTS, f"missing {' '.join(missing)}")
    absent = [extension for extension in expected.extensions if extension not in booted.extensions]
    if absent:
        yield Drift(EXTENSIONS, f"missing {' '.join(absent)}")
    if expected.kernel != booted.kernel:
        yield Drift(KERNEL, f"running {booted.kernel or 'default'}, expected {expected.kernel or 'default'}")
