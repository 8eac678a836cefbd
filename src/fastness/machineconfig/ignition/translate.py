"""One spec version into another, with everything that could not come along named.

Upwards within spec 3 only the version changes, with one exception that keeps the meaning: before 3.4 a machine ignored the
special mode bits, so they are taken off. Downwards, the field table knows what the older version lacks; a field that says
nothing anyway (`resize: false`, an empty list) goes silently, any other is a `Loss`. A few values are younger than their
field: schemes, sha256, the format `none`, the special mode bits.

What is left after a loss is still a good config of the target version: where a loss would turn an entry into its opposite,
such as a user that should not exist, the entry goes too. Whether a config with losses may be used is for the caller to say.

Spec 2.2 is another language: `from_legacy` and `to_legacy` speak it. Ways to and from it go through the current spec.
"""

from dataclasses import dataclass
from typing import Any, Final

from fastness.machineconfig.ignition.config import Config, check, parse
from fastness.machineconfig.ignition.fields import SPEC_3, Kind
from fastness.machineconfig.ignition.from_legacy import from_legacy
from fastness.machineconfig.ignition.problems import InvalidConfig, Path, Report, render
from fastness.machineconfig.ignition.shape import JsonObject
from fastness.machineconfig.ignition.to_legacy import to_legacy
from fastness.machineconfig.ignition.urls import scheme_since
from fastness.protocol.ignition_spec import CURRENT, LEGACY, Version, minor

_SPECIAL_BITS: Final = 0o7000
_SPECIAL_BITS_SINCE: Final = 4
_ABSENT_SINCE: Final = 2
_SHA256_SINCE: Final = 1
_FORMAT_NONE_SINCE: Final = 3


@dataclass(frozen=True, slots=True)
class Loss:
    """Something that the target version cannot express: where it stood and why it went."""

    path: str
    code: str
    message: str

    def __str__(self) -> str:
        return f"{self.path}: {self.message}"


class _Losses:
    def __init__(self) -> None:
        self.found: list[Loss] = []

    def lose(self, path: Path, code: str, message: str) -> None:
        self.found.append(Loss(render(path), code, message))


def translate(config: Config, version: Version) -> tuple[Config, tuple[Loss, ...]]:
    """The config in another version, without what that version lacks, and the losses.

    Raises `InvalidConfig` for a spec 2.2 config that has no meaning in spec 3.
    """
    if config.version == version:
        return config, ()
    if config.version == LEGACY:
        current = _modernise(config)
        return translate(current, version)
    losses = _Losses()
    if version == LEGACY:
        body = to_legacy(_up(config, CURRENT), losses.lose)
    elif minor(version) > minor(config.version):
        body = _up(config, version)
    else:
        body = _down("Config", config.body, minor(version), None, losses)
        body["ignition"]["version"] = version
    return Config(version, body, config.warnings), tuple(losses.found)


def upgrade(raw: bytes | JsonObject) -> JsonObject:
    """Any supported config as a JSON object of the current spec; raises `IgnitionError`."""
    config = parse(raw)
    return config.body if config.version == CURRENT else translate(config, CURRENT)[0].body


def _modernise(config: Config) -> Config:
    report = Report()
    body = from_legacy(config.body, report)
    # Checked again by the rules of the current spec: spec 2 allows paths through links and entries that repeat, and neither may
    # come in by this way.
    body = check(body, CURRENT, report)
    if report.fatal:
        raise InvalidConfig(tuple(report.problems))
    return Config(CURRENT, body, (*config.warnings, *report.problems))


def _up(config: Config, version: Version) -> JsonObject:
    body = {**config.body, "ignition": {**config.body["ignition"], "version": version}}
    storage = body.get("storage")
    if storage and minor(config.version) < _SPECIAL_BITS_SINCE <= minor(version):
        plain = {
            name: [_without_special_bits(node) for node in storage[name]]
            for name in ("files", "directories")
            if name in storage
        }
        body["storage"] = {**storage, **plain}
    return body


def _without_special_bits(node: JsonObject) -> JsonObject:
    # A setuid bit that an older spec ignored would begin to count with the new version number, on files that nobody reviewed as
    # setuid.
    return {**node, "mode": node["mode"] & ~_SPECIAL_BITS} if node.get("mode", 0) & _SPECIAL_BITS else node


def _down(struct: str, value: JsonObject, target: int, path: Path, losses: _Losses) -> JsonObject:
    lowered: JsonObject = {}
    for name, item in value.items():
        field = SPEC_3[struct][name]
        here: Path = (path, name)
        if field.since > target:
            if not _says_nothing(name, item):
                losses.lose(here, "field-too-young", f"exists only since spec 3.{field.since}")
        elif field.kind is Kind.OBJECT:
            inner = _down(field.struct, item, target, here, losses)
            if inner:
                lowered[name] = inner
        elif field.kind is Kind.OBJECTS:
            entries = ((_down_entry(field.struct, entry, target, (here, i), losses)) for i, entry in enumerate(item))
            lowered[name] = [entry for entry in entries if entry is not None]
        else:
            lowered[name] = item
    return _settle(struct, lowered, target, path, losses)


def _down_entry(struct: str, entry: JsonObject, target: int, path: Path, losses: _Losses) -> JsonObject | None:
    # Without the field the same entry asks for the account: somebody who was to be removed would be made.
    if struct in ("User", "Group") and entry.get("shouldExist") is False and target < _ABSENT_SINCE:
        losses.lose((path, "shouldExist"), "field-too-young", f"exists only since spec 3.{_ABSENT_SINCE}")
        return None
    if struct == "Filesystem" and entry.get("format") == "none" and target < _FORMAT_NONE_SINCE:
        losses.lose(
            (path, "format"), "value-too-young", f"the format none exists only since spec 3.{_FORMAT_NONE_SINCE}"
        )
        return None
    lowered = _down(struct, entry, target, path, losses)
    # A config to merge or a certificate bundle without a source would be an error of its own.
    return None if struct == "Reference" and entry.get("source") and "source" not in lowered else lowered


def _settle(struct: str, value: JsonObject, target: int, path: Path, losses: _Losses) -> JsonObject:
    """Take out values that came to a field later than the field itself, which a lower version would refuse."""
    if struct in ("Reference", "Resource"):
        since = scheme_since(value.get("source", ""))
        if since > target:
            losses.lose((path, "source"), "value-too-young", f"the scheme exists only since spec 3.{since}")
            return {}
    elif struct == "Verification":
        # The file would be taken unchecked. That is a loss with a name, never a silent one: the caller must refuse or say that it
        # may.
        if target < _SHA256_SINCE and value.get("hash", "").startswith("sha256-"):
            losses.lose((path, "hash"), "value-too-young", f"sha256 exists only since spec 3.{_SHA256_SINCE}")
            return {}
    elif struct in ("File", "Directory"):
        if value.get("mode", 0) & _SPECIAL_BITS and target < _SPECIAL_BITS_SINCE:
            losses.lose(
                (path, "mode"), "value-too-young", f"special bits exist only since spec 3.{_SPECIAL_BITS_SINCE}"
            )
            value = _without_special_bits(value)
        if struct == "File" and value.get("overwrite") and "source" not in value.get("contents", {}):
            value = {name: item for name, item in value.items() if name != "overwrite"}
    return value


def _says_nothing(name: str, item: Any) -> bool:
    """Whether leaving a field out means the same as this value."""
    if isinstance(item, dict):
        return all(_says_nothing(inner, value) for inner, value in item.items())
    # The one boolean whose neutral value is true; read like the others, "should exist" would be a loss and "should not" would go
    # silently.
    return item if name == "shouldExist" and isinstance(item, bool) else not item
