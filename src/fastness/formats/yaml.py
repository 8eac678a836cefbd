"""YAML as Kubernetes reads it: one or more documents to JSON values, with line numbers for every complaint.

- JSON first: a document that is JSON costs a hundredth of what a YAML parser costs, and JSON is what kubectl sends.
- Otherwise events of the C parser build the value on an explicit stack: depth is bounded before anything nests, and nothing
  here recurses. Plain scalars are resolved as in `yamlscalars` (YAML 1.1; dates stay strings).
- Repeated keys are refused; two keys that become the same JSON name (`1` and `"1"`) are the same key.
- Aliases are copies. What they add in all is bounded, which stops the "billion laughs"; an alias inside its own anchor is
  refused. Merge keys (`<<`) work; members written out win over merged ones, wherever they stand.
- Only the tags of JSON types are known (`!!str`, `!!int`, …); any other tag is refused rather than guessed.

Documents without content are left out, as kubectl does with a trailing `---`.
"""

import math
import re
from dataclasses import dataclass, field
from typing import Any, Final, NamedTuple

import orjson
import yaml

from fastness.formats import json as strict_json
from fastness.formats.errors import JsonError, YamlError
from fastness.formats.yaml_scalars import key_text, resolve


@dataclass(frozen=True, slots=True)
class YamlLimits:
    """Bounds of one stream of documents."""

    max_bytes: int = 3 * 1024 * 1024
    max_depth: int = 100
    max_documents: int = 10_000
    max_alias_nodes: int = 100_000


DEFAULT_YAML_LIMITS: Final = YamlLimits()


class Document(NamedTuple):
    """One document of a stream and the line, from 1, where its content starts."""

    value: Any
    line: int


def load_documents(data: bytes, limits: YamlLimits = DEFAULT_YAML_LIMITS) -> list[Document]:
    """Read every document of a stream; raises `YamlError` with a line."""
    if len(data) > limits.max_bytes:
        raise YamlError(
            "yaml-too-large", f"the file has {len(data)} bytes, the limit is {limits.max_bytes}", hint="split the file"
        )
    document = _load_json(data, limits)
    if document is not None:
        return [document]
    builder = _Builder(limits)
    try:
        for event in yaml.parse(data, Loader=yaml.CSafeLoader):
            builder.feed(event)
    except yaml.MarkedYAMLError as error:
        mark = error.problem_mark or error.context_mark
        problem = ", ".join(part for part in (error.context, error.problem) if part)
        raise _error("yaml-syntax", problem, mark.line + 1 if mark else 0, "check indentation and quotes") from error
    except (yaml.YAMLError, UnicodeError, ValueError) as error:
        raise _error(
            "yaml-encoding", "not UTF-8 text without control characters", 0, "save the file as UTF-8"
        ) from error
    return builder.documents


def _load_json(data: bytes, limits: YamlLimits) -> Document | None:
    start = re.match(rb"[ \t\r\n]*", data)
    offset = start.end() if start else 0
    if data[offset : offset + 1] not in (b"{", b"["):
        return None
    line = data.count(b"\n", 0, offset) + 1
    try:
        bounds = strict_json.JsonLimits(limits.max_bytes, limits.max_depth)
        value, duplicates = strict_json.decode_reporting_duplicates(data, bounds)
    except JsonError as error:
        if error.code == "json-too-deep":
            raise _too_deep(limits, line) from error
        return None  # flow-style YAML also starts with a bracket
    if duplicates:
        raise _error("yaml-duplicate-key", f"the key {duplicates[0]!r} stands twice", line, _DUPLICATE_HINT)
    return Document(value, line)


@dataclass(slots=True)
class _Frame:
    """A container that is being filled."""

    value: Any
    line: int
    anchor: str | None
    nodes_before: int
    key: str | None = None
    merging: bool = False
    merged: dict[str, Any] = field(default_factory=dict)


class _Builder:
    """Turns parser events into documents."""

    def __init__(self, limits: YamlLimits) -> None:
        self.documents: list[Document] = []
        self._limits = limits
        self._stack: list[_Frame] = []
        # Finished anchors with their node counts; None while the anchor's own value is still open.
        self._anchors: dict[str, tuple[Any, int] | None] = {}
        self._nodes = 0
        self._alias_nodes = 0

    def feed(self, event: yaml.Event) -> None:
        line = event.start_mark.line + 1 if event.start_mark else 0
        if isinstance(event, yaml.ScalarEvent):
            self._scalar(event, line)
        elif isinstance(event, yaml.MappingStartEvent | yaml.SequenceStartEvent):
            self._open(event, line)
        elif isinstance(event, yaml.MappingEndEvent | yaml.SequenceEndEvent):
            self._close()
        elif isinstance(event, yaml.AliasEvent):
            self._alias(str(event.anchor), line)
        elif isinstance(event, yaml.DocumentStartEvent):
            self._anchors.clear()

    def _scalar(self, event: yaml.ScalarEvent, line: int) -> None:
        self._nodes += 1
        frame = self._awaiting_key()
        if frame is not None and event.value == "<<" and event.style == "" and event.tag is None:
            frame.merging = True
            return
        value = _scalar_value(event, line)
        if isinstance(value, float) and not math.isfinite(value):
            raise _error(
                "yaml-number",
                "a number that is not finite has no JSON form",
                line,
                "quote it, or write a finite number",
            )
        if event.anchor is not None:
            self._anchors[event.anchor] = (value, 1)
        if frame is not None:
            self._key(frame, value, line)
        else:
            self._add(value, line)

    def _awaiting_key(self) -> _Frame | None:
        """The innermost container, when it is a mapping and what comes next is a key."""
        frame = self._stack[-1] if self._stack else None
        if frame is None or type(frame.value) is not dict or frame.key is not None or frame.merging:
            return None
        return frame

    def _key(self, frame: _Frame, value: Any, line: int) -> None:
        name = key_text(value)
        if name is None:
            raise _error("yaml-key", "a key must not be null or a huge number", line, "quote the key")
        if name in frame.value:
            raise _error("yaml-duplicate-key", f"the key {name!r} stands twice", line, _DUPLICATE_HINT)
        frame.key = name

    def _open(self, event: Any, line: int) -> None:
        self._nodes += 1
        mapping = isinstance(event, yaml.MappingStartEvent)
        if event.tag not in (None, "!", f"{_CORE}{'map' if mapping else 'seq'}"):
            raise _bad_tag(event.tag, line)
        if len(self._stack) >= self._limits.max_depth:
            raise _too_deep(self._limits, line)
        if self._awaiting_key() is not None:
            raise _error("yaml-key", "a key must be a plain value", line, "a '{' or '[' in a key must be quoted")
        if event.anchor is not None:
            self._anchors[event.anchor] = None
        self._stack.append(_Frame({} if mapping else [], line, event.anchor, self._nodes - 1))

    def _close(self) -> None:
        frame = self._stack.pop()
        value = frame.value
        if frame.merged:
            value = {**{name: item for name, item in frame.merged.items() if name not in value}, **value}
        if frame.anchor is not None:
            self._anchors[frame.anchor] = (value, self._nodes - frame.nodes_before)
        self._add(value, frame.line)

    def _alias(self, name: str, line: int) -> None:
        anchored = self._anchors.get(name)
        if anchored is None:
            raise _error(
                "yaml-alias", f"*{name} is unknown here, or inside itself", line, "define the anchor before it"
            )
        value, nodes = anchored
        self._nodes += nodes
        self._alias_nodes += nodes
        if self._alias_nodes > self._limits.max_alias_nodes:
            raise _error("yaml-alias-bomb", "aliases expand to too many values", line, "write the values out")
        frame = self._awaiting_key()
        if frame is not None:
            if isinstance(value, dict | list):
                raise _error("yaml-key", "a key must be a plain value", line, "write the key out")
            self._key(frame, value, line)
            return
        self._add(self._copy(value, line), line)

    def _copy(self, value: Any, line: int) -> Any:
        if not isinstance(value, dict | list):
            return value
        try:
            return orjson.loads(orjson.dumps(value))
        except TypeError as error:  # the only values it cannot encode here are those nested too deep
            raise _too_deep(self._limits, line) from error

    def _add(self, value: Any, line: int) -> None:
        if not self._stack:
            self._finish(value, line)
            return
        frame = self._stack[-1]
        if type(frame.value) is list:
            frame.value.append(value)
        elif frame.merging:
            self._merge(frame, value, line)
        elif frame.key is not None:
            frame.value[frame.key] = value
            frame.key = None

    def _merge(self, frame: _Frame, value: Any, line: int) -> None:
        frame.merging = False
        for source in value if isinstance(value, list) else [value]:
            if not isinstance(source, dict):
                raise _error("yaml-merge", "'<<' merges mappings only", line, "give it a mapping, or quote the key")
            for name, item in source.items():
                frame.merged.setdefault(name, item)

    def _finish(self, value: Any, line: int) -> None:
        if value is None:
            return
        if len(self.documents) >= self._limits.max_documents:
            raise _error("yaml-too-many-documents", "the stream has too many documents", line, "split the file")
        try:
            strict_json.check_depth(value, self._limits.max_depth)
        except JsonError as error:
            raise _too_deep(self._limits, line) from error
        self.documents.append(Document(value, line))


def _scalar_value(event: yaml.ScalarEvent, line: int) -> Any:
    if event.tag is None:
        return resolve(event.value) if event.style == "" else event.value
    if event.tag in ("!", f"{_CORE}str"):
        return event.value
    tagged = _TAGGED.get(event.tag)
    if tagged is None:
        raise _bad_tag(event.tag, line)
    value = resolve(event.value)
    if tagged is float and type(value) is int:
        return value
    if type(value) is not tagged:
        raise _error("yaml-tag", "the value is not of the tagged type", line, "drop the tag")
    return value


def _error(code: str, message: str, line: int, hint: str) -> YamlError:
    return YamlError(code, message, hint=hint, line=line)


def _too_deep(limits: YamlLimits, line: int) -> YamlError:
    return _error("yaml-too-deep", f"the document nests deeper than {limits.max_depth} levels", line, "flatten it")


def _bad_tag(tag: str, line: int) -> YamlError:
    return _error("yaml-tag", f"the tag {tag[:80]!r} is not allowed", line, "use plain JSON types")


_CORE: Final = "tag:yaml.org,2002:"
_TAGGED: Final[dict[str, type]] = {
    f"{_CORE}int": int,
    f"{_CORE}float": float,
    f"{_CORE}bool": bool,
    f"{_CORE}null": type(None),
}
_DUPLICATE_HINT: Final = "keep one of the two"
