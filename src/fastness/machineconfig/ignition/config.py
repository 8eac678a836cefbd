"""From bytes to a checked config, and back.

`inspect` never raises: it gives the config, if there is one, and everything that was found. `parse` is for callers that can
only go on with a good config. `upgrade` is what the rest of the house works with: any supported config in, a JSON object of
the current spec out.

The body of a `Config` is in normal form: no nulls, no unknown fields. It is shared, never copied and never changed in place;
whoever wants another config builds another object.

Two mistakes about the version are kept apart because they need different answers: a string that is no version at all
(`invalid-version`) and a version that exists, or will exist, but is not supported here (`unknown-version`). 2.0.0 and 2.1.0 are
read as 2.2.0, of which they are subsets. Pre-releases and build metadata are never supported.
"""

import re
from dataclasses import dataclass
from typing import Any, Final

from fastness.formats import json
from fastness.formats.errors import JsonError
from fastness.machineconfig.ignition import legacy_rules, rules
from fastness.machineconfig.ignition.problems import (
    IgnitionError,
    InvalidConfig,
    Problem,
    Report,
    Severity,
    UnreadableConfig,
    UnsupportedVersion,
)
from fastness.machineconfig.ignition.shape import JsonObject, normalise
from fastness.protocol.ignition_spec import CURRENT, LEGACY, SUPPORTED, Version, minor

# Each version on its own, not a range: a config of a version that this table lacks must fail here, not be read by the rules of
# its neighbour.
_READ_AS: Final[dict[str, Version]] = {"2.0.0": LEGACY, "2.1.0": LEGACY} | {version: version for version in SUPPORTED}
_SEMANTIC: Final = re.compile(r"\d{1,9}\.\d{1,9}\.\d{1,9}(?:-[0-9A-Za-z.-]+)?(?:\+[0-9A-Za-z.-]+)?", re.ASCII)
_HINT: Final = "use one of " + ", ".join(version.removesuffix(".0") for version in SUPPORTED)
# Well above what fits into an object of the API; a real config nests less than ten deep, and the walks over it recurse.
LIMITS: Final = json.JsonLimits(max_bytes=8 * 1024 * 1024, max_depth=32)


@dataclass(frozen=True, slots=True)
class Config:
    """A config that a machine would accept, in normal form, with what it would warn about."""

    version: Version
    body: JsonObject
    warnings: tuple[Problem, ...] = ()


@dataclass(frozen=True, slots=True)
class Inspection:
    """What there is to say about a config: the config itself, if it is good, and every problem."""

    config: Config | None
    problems: tuple[Problem, ...]


def inspect(data: bytes | JsonObject, strict: bool = False) -> Inspection:
    """Read and check a config of any supported version; total. With `strict` an unknown field is an error."""
    try:
        raw, repeated = _read(data)
        version = _version_of(raw)
    except IgnitionError as error:
        return Inspection(None, (Problem(Severity.ERROR, error.path, error.code, error.message),))
    return _inspect(raw, repeated, version, strict)


def parse(data: bytes | JsonObject, strict: bool = False) -> Config:
    """Read a config of any supported version; raises `IgnitionError` with everything that is wrong."""
    raw, repeated = _read(data)
    inspection = _inspect(raw, repeated, _version_of(raw), strict)
    if inspection.config is None:
        raise InvalidConfig(inspection.problems)
    return inspection.config


def _inspect(raw: JsonObject, repeated: list[str], version: Version, strict: bool) -> Inspection:
    report = Report(strict)
    for path in repeated:
        # Two readers may pick different ones of two equal keys; a config that means two things is none.
        report.refuse(path, "repeated-key", "the key occurs twice in one object")
    body = check(raw, version, report)
    problems = tuple(report.problems)
    return Inspection(None if report.fatal else Config(version, body, problems), problems)


def validate(data: bytes | JsonObject, strict: bool = False) -> tuple[Problem, ...]:
    """Everything that is wrong or doubtful about a config; empty for a spotless one."""
    return inspect(data, strict).problems


def check(raw: JsonObject, version: Version, report: Report) -> JsonObject:
    """Check a decoded config of a known version into a report; returns its normal form."""
    body = normalise(version, raw, report)
    if version == LEGACY:
        legacy_rules.check(body, report)
        if body["ignition"]["version"] != version:
            # One version inside the house: what compares or hashes configs must not tell 2.0 and 2.2 of the same content apart.
            body = {**body, "ignition": {**body["ignition"], "version": version}}
    else:
        rules.check(body, minor(version), report)
    return body


def empty(version: Version = CURRENT) -> JsonObject:
    """The config that asks for nothing."""
    return {"ignition": {"version": version}}


def to_json(config: Config | JsonObject) -> bytes:
    """The compact bytes of a config, keys in canonical order: equal configs give equal bytes."""
    # The name of a rendered config is a digest of such bytes, so an order that depended on the writer would roll out machines for
    # nothing.
    return json.canonical(config.body if isinstance(config, Config) else config)


def _read(data: bytes | JsonObject) -> tuple[JsonObject, list[str]]:
    repeated: list[str] = []
    raw: Any = data
    if isinstance(data, bytes):
        if not data.strip():
            raise UnreadableConfig("empty", "there is no config", hint="give a JSON object with ignition.version")
        try:
            raw, repeated = json.decode_reporting_duplicates(data, LIMITS)
        except JsonError as error:
            raise UnreadableConfig(error.code, error.message, error.path, error.hint) from error
    if not isinstance(raw, dict):
        raise _not_an_object()
    return raw, repeated


def _not_an_object() -> UnreadableConfig:
    return UnreadableConfig("not-an-object", "a config is a JSON object", hint="begin with {")


def _version_of(raw: JsonObject) -> Version:
    ignition = raw.get("ignition")
    if not isinstance(ignition, dict):
        raise UnsupportedVersion(
            "invalid-version", "the spec version is missing", "ignition.version", hint="add ignition.version"
        )
    return _read_version(ignition.get("version"))


def _read_version(text: object) -> Version:
    """The supported version that a config states; raises `UnsupportedVersion`."""
    if isinstance(text, str) and (version := _READ_AS.get(text)) is not None:
        return version
    # A pre-release (3.6.0-experimental) is refused by its name: Ignition changes its meaning from release to release, without
    # notice.
    if isinstance(text, str) and len(text) <= 64 and _SEMANTIC.fullmatch(text):
        raise UnsupportedVersion(
            "unknown-version", f"spec version {text} is not supported", "ignition.version", hint=_HINT
        )
    raise UnsupportedVersion("invalid-version", "the spec version cannot be understood", "ignition.version", hint=_HINT)
