"""Does the disk say what the config says? Every difference, each with a text for people.

Files are compared by type, owner, mode and bytes, units by their files and by what is enabled, the deployment by what is booted
and by whether the container runtime can use the packages for confidential containers. Paths that others keep current
(certificates, pull secrets) are not ours to judge.

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
from fastness.agent.apply.ports import Host, OperatingSystem
from fastness.agent.apply.steps import matches, same_owner
from fastness.agent.host.states import Absent, File, Large, Link, Other, State
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
})  # fmt: skip
_NOT_ENABLED: Final = ("disabled", "masked", "masked-runtime", "not-found")
_IS_ENABLED: Final = ("enabled", "enabled-runtime")


class Drift(NamedTuple):
    """One difference; `path` is a file, or the name of a unit, or what of the system differs."""

    path: str
    what: str

    def __str__(self) -> str:
        return f"{self.path}: {self.what}"


def drifts(wanted: Desired, host: Host, only: Iterable[str] | None = None) -> list[Drift]:
    """What on the disk differs from a config; `only` limits it to some paths."""
    chosen = wanted.paths if only is None else [path for path in only if path in wanted.paths]
    found = [drift for path in chosen for drift in _path(path, wanted, host)]
    if only is None or not {*only}.isdisjoint(_runtime_paths(wanted)):
        found += _runtime(wanted, host)
    if only is None:
        found += [drift for name, unit in wanted.units.items() for drift in _unit(name, unit, host)]
        found += [*_password(wanted, host), *_system(wanted, host.system)]
    return found


def watched(wanted: Desired) -> list[str]:
    """The paths at which a difference shows."""
    return [*wanted.paths, *_runtime_paths(wanted)]


def describe_drifts(config: str, found: Iterable[Drift]) -> str:
    """The differences as one message."""
    return f"unexpected on-disk state validating against {config}: " + "; ".join(str(drift) for drift in found)


def _path(path: str, wanted: Desired, host: Host) -> Iterator[Drift]:
    target = wanted.paths[path].state
    if path in _NOT_OURS or isinstance(target, Absent):
        return
    present = host.root.inspect(path, max(MAX_SHOWN, len(target.content)) if isinstance(target, File) else 0)
    if not matches(present, target):
        yield Drift(path, _difference(target, present, is_unit=path.startswith(f"{UNITS}/")))


def _difference(wanted: State, present: State | Large, *, is_unit: bool) -> str:
    match wanted, present:
        case File(), Large():
            return f"is a file of {present.size} bytes, expected {len(wanted.content)}"
        case File(), File():
            mode = f"mode is {present.mode:04o}, expected {wanted.mode:04o}" if present.mode != wanted.mode else ""
            content = _content(wanted, present, is_unit) if present.content != wanted.content else ""
            return ", ".join(part for part in (mode, _owner(wanted, present), content) if part)
        case Link(target), Link(found):
            return f"link leads to {found}, expected {target}"
        case _:
            return f"is {_word(present)}, expected {_word(wanted)}"


def _owner(wanted: File, present: File) -> str:
    if same_owner(present, wanted):
        return ""
    return f"owner is {present.uid}:{present.gid}, expected {_number(wanted.uid)}:{_number(wanted.gid)}"


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


def _content(wanted: File, present: File, is_unit: bool) -> str:
    # Both: a private file that a link or a rename put in the place of a public one must not be told either.
    secret = is_unit or not wanted.mode & present.mode & _PUBLIC
    # Comparing lines takes the product of their numbers, and a user may have written one of the two.
    if not secret and len(wanted.content) + len(present.content) <= MAX_SHOWN:
        try:
            before, after = wanted.content.decode().splitlines(), present.content.decode().splitlines()
        except UnicodeDecodeError:
            pass
        else:
            lines = list(difflib.unified_diff(before, after, "expected", "found", lineterm="", n=1))
            shown = [line[:MAX_LINE] for line in lines[:MAX_LINES]]
            more = [f"... {len(lines) - MAX_LINES} more lines"] if len(lines) > MAX_LINES else []
            return "content differs:\n" + "\n".join([*shown, *more])
    return f"content differs: sha256 {_digest(present.content)}, expected {_digest(wanted.content)}"


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


def _password(wanted: Desired, host: Host) -> Iterator[Drift]:
    if wanted.password is not None:
        present = accounts.password_hash(host.root.look(accounts.SHADOW), names.CORE_USER)
        if present != wanted.password:
            yield Drift(accounts.SHADOW, f"the password of {names.CORE_USER} is not the configured one")


def _runtime_paths(wanted: Desired) -> tuple[str, ...]:
    wants = any(one in runtime.PACKAGES for one in wanted.deployment.extensions)
    return runtime.PATHS if wants else ()


def _runtime(wanted: Desired, host: Host) -> Iterator[Drift]:
    """Packages for confidential containers are there when the container runtime can use them."""
    if _runtime_paths(wanted):
        yield from (Drift(path, what) for path, what in handlers.lacking(host.root))


def _system(wanted: Desired, system: OperatingSystem) -> Iterator[Drift]:
    booted, expected = system.booted(), wanted.deployment
    if expected.image and booted.image != expected.image:
        yield Drift("operating system", f"booted {booted.image or 'an unknown image'}, expected {expected.image}")
    missing = [argument for argument in expected.arguments if argument not in booted.arguments]
    if missing:
        yield Drift("kernel arguments", f"missing {' '.join(missing)}")
    absent = [one for one in expected.extensions if one not in booted.extensions]
    if absent:
        yield Drift("extensions", f"missing {' '.join(absent)}")
    if expected.kernel != booted.kernel:
        yield Drift("kernel", f"running {booted.kernel or 'default'}, expected {expected.kernel or 'default'}")
