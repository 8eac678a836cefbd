"""Objects and text without secrets, for people outside.

    cleaned(value)   any other JSON
    redacted(obj)    an object as a bundle may show it; None when nothing of it may leave (Secrets)
    scrubbed(text)   a log or any text, with what looks like a credential taken out
    taken_out(before, after)   the paths of an object at which something was taken out, for whoever reads the bundle

* Secrets never leave, whole. Where users write what may be anything (files and units of machine configs, environment and
  arguments of containers, their ConfigMaps, annotations, init data) only the size is shown: `places`.
* A field whose name says credential loses its text; so does the `value` beside such a `name` (variables, headers).
* What looks like a key goes wherever it stands, also as the name of a field: `shapes`.
* In all text that stays: private keys, tokens, tickets, passwords in addresses and in `key=value` are taken out; also when
  they stand in base64.
* Digests of secrets go too: a short password is found from its hash.

What is taken out is replaced by `<redacted>`; names, sizes and structure stay, so that the object can still be understood.
"""

from __future__ import annotations

import base64
import binascii
import re
from collections.abc import Iterator, Mapping
from typing import Any, Final

from fastness.cli.support.places import PLATFORM, Path, opaque_note, opaque_place, opaque_text, without_argument
from fastness.cli.support.shapes import REDACTED, without_keys
from fastness.formats import json
from fastness.formats.errors import JsonError
from fastness.formats.words import counted
from fastness.kinds.kind import JsonObject

MAX_LINE: Final = 1024 * 1024
NEVER: Final = frozenset(
    {
        ("", "Secret"),
        ("fastness.dev", "EvidenceBlob"),
        ("fastness.dev", "SpentChallenge"),
        ("fastness.dev", "SeenLaunch"),
    }
)
CREDENTIAL: Final = frozenset({
    "token", "password", "passwd", "passphrase", "secret", "apikey", "privatekey", "accesskey", "secretkey", "authorization",
    "cookie", "credential", "credentials", "ticket", "auth", "identitytoken", "registrytoken", "dockerconfigjson",
    "dockercfg", "bearer", "signingkey", "encryptionkey", "sealingkey", "clientkeydata", "keydata", "jwk", "kubeconfig",
    "userdata", "pullsecret",
})  # fmt: skip
# What names an object and its versions; made by the API, or public by nature.
_IDENTITY: Final = frozenset(
    {"name", "namespace", "uid", "resourceVersion", "generation", "generateName", "creationTimestamp"}
)
_ENDS: Final = ("hash", "value", "data", "text", "file", "content", "contents", "plain", "b64", "base64")
_WORDS: Final = re.compile(r"[A-Z]+(?![a-z])|[A-Z]?[a-z0-9]+")
_DATA_URL: Final = re.compile(r"data:[^,\s\"']{0,256},[^\s\"'<>]*")
_PEM: Final = re.compile(
    r"-----BEGIN [A-Z0-9 ]*PRIVATE KEY-----.*?(?:-----END [A-Z0-9 ]*PRIVATE KEY-----|\Z)", re.DOTALL
)
_PATTERNS: Final = (
    re.compile(r"\bfst_[A-Za-z0-9_-]{8,}"),
    re.compile(r"(?<![\w-])ey[A-Za-z0-9_-]{8,}\.[A-Za-z0-9_-]+\.[A-Za-z0-9_-]*(?:\.[A-Za-z0-9_-]*\.[A-Za-z0-9_-]*)?"),
    re.compile(r"\b[a-z0-9]{6}\.[a-z0-9]{16}\b"),
    re.compile(r"\bsha256~[A-Za-z0-9_-]{20,}"),
    re.compile(r"\$(?:1|2[abxy]|5|6|y|gy|argon2[a-z]*)\$[^\s:\"']{4,}"),
)
_SCHEME: Final = re.compile(r"(?i)\b(bearer|basic|negotiate|digest|dpop)[ \t]+[A-Za-z0-9._~+/=:-]{6,}")
_USERINFO: Final = re.compile(r"(?<=://)[^/\s@\"']{1,512}(?=@)")
# Bounded and anchored at the beginning of a word: a long line costs time in proportion to its length.
_NAMED: Final = re.compile(
    r"""(?ix) (?<![\w.-]) (?P<name> [\w.-]{0,128}?
        (?: token | passw(?:or)?d | passphrase | secret | api[_-]?key | private[_-]?key | access[_-]?key | key[_-]?data
          | authorization | cookie | credentials? | ticket | \bauth\b )
        [\w.-]{0,128} )
    \\{0,8}["']? [ \t]{0,64} [=:] [ \t]{0,64}"""
)
_BESIDE: Final = re.compile(
    r"""(?ix) \bname\\{0,8}["']? \s{0,64} : \s{0,64} \\{0,8}["']? (?P<name> [\w.-]{1,128} ) \\{0,8}["']? [\s,]{0,64}
    \\{0,8}["']? value \\{0,8}["']? [ \t]{0,64} : [ \t]{0,64}"""
)
_TEXT: Final = re.compile(
    r"""(?x) "(?:\\.|[^"\\])*"? | '[^']*'? | \\+"(?:[^"\\]|\\+[^"\\])*(?:\\+")?
    | (?<=:)[^\r\n"]+ | (?<=:[ \t])[^\r\n"]+ | [^\s"'&;,]+"""
)
_BASE64: Final = re.compile(r"[A-Za-z0-9+/]{24,}={0,2}")
_PRIVATE: Final = (b"PRIVATE KEY-----", b"fst_", b'"private_key"', b"client-key-data", b'"auth"')
# References name an object and hold nothing of it.
_REFERENCES: Final = ("name", "ref", "keyref", "refs", "names", "selector", "namespace", "uri", "url", "path")


def redacted(obj: Mapping[str, Any]) -> JsonObject | None:
    """An object without secrets, or None when it must not leave at all."""
    group, kind = str(obj.get("apiVersion") or "").rpartition("/")[0], str(obj.get("kind"))
    if (group, kind) in NEVER:
        return None
    meta = obj.get("metadata") or {}
    visible = {without_keys(key): _value(kind, (key,), value) for key, value in obj.items() if key != "metadata"}
    if kind == "ConfigMap":
        hidden = ("binaryData",) if meta.get("namespace") in PLATFORM else ("binaryData", "data")
        visible |= {name: _sizes(obj[name]) for name in hidden if isinstance(obj.get(name), Mapping)}
    return {**visible, "metadata": _metadata(meta)}


def cleaned(value: Any) -> Any:
    """Any JSON without credentials; for what is not an object of the API."""
    return _value("", (), value)


def _metadata(meta: Mapping[str, Any]) -> JsonObject:
    fields = {
        key: value if key in _IDENTITY else _value("", ("metadata", key), value)
        for key, value in meta.items()
        if key not in ("managedFields", "annotations")
    }
    notes = meta.get("annotations")
    return {**fields, "annotations": _notes(notes)} if isinstance(notes, Mapping) else fields


def _notes(notes: Mapping[str, Any]) -> JsonObject:
    """Annotations, those of templates too."""
    return {without_keys(str(key)): _note(str(key), value) for key, value in notes.items()}


def _note(name: str, value: Any) -> Any:
    return _opaque(str(value)) if value and opaque_note(name) else _value("", ("metadata", name), value)


def _sizes(members: Mapping[str, Any]) -> JsonObject:
    return {without_keys(str(key)): _opaque(str(value)) for key, value in members.items()}


def _value(kind: str, path: Path, value: Any) -> Any:
    if isinstance(value, Mapping):
        return _notes(value) if path[-1:] == ("annotations",) else _members(kind, path, value)
    if isinstance(value, list):
        return [_value(kind, (*path, _place(path, place)), item) for place, item in enumerate(value)]
    named = next((name for name in reversed(path) if not name.startswith("*")), "")
    if isinstance(value, str):
        return _text(kind, path, named, value)
    # Numbers can be credentials too, flags cannot.
    return (
        REDACTED if is_credential(named) and isinstance(value, int | float) and not isinstance(value, bool) else value
    )


def _place(path: Path, place: int) -> str:
    """The program that a command starts is told from what it is started with."""
    return "*0" if place == 0 and path[-1:] == ("command",) else "*"


def _text(kind: str, path: Path, named: str, text: str) -> str:
    if text and is_credential(named):
        return REDACTED
    if named == "kernelArguments":
        return scrubbed(without_argument(text))
    if text and (opaque_place(kind, path) or opaque_text(path, text)):
        return _opaque(text)
    return scrubbed(text)


def _members(kind: str, path: Path, value: Mapping[str, Any]) -> JsonObject:
    name = value.get("name")
    beside = isinstance(name, str) and (is_credential(name) or name.upper() in ("PASS", "PWD", "PAT"))
    return {
        without_keys(str(key)): REDACTED
        if beside and key == "value" and member not in (None, "")
        else _value(kind, (*path, str(key)), member)
        for key, member in value.items()
    }


def is_credential(name: str) -> bool:
    """Whether a field of that name holds a credential rather than the name of one."""
    words = [word.lower() for word in _WORDS.findall(name.rpartition("/")[2])]
    if not words or words[-1] in _REFERENCES:
        return False
    while True:
        if any("".join(words[start:]) in CREDENTIAL for start in range(len(words))):
            return True
        if len(words) == 1 or words.pop() not in _ENDS:
            return False


def scrubbed(text: str) -> str:
    """Text without what looks like a credential; lines that are JSON are read, so that names and values are seen together."""
    if "{" in text:
        text = "".join(_json_line(line) for line in text.splitlines(keepends=True))
    return _plain(text)


def _json_line(line: str) -> str:
    """A line of structured log, redacted by its fields; any other line as it is."""
    start, end = line.find("{"), line.rfind("}") + 1
    body = line[start:end]
    if start < 0 or len(body) < len("{}") or len(body) > MAX_LINE:
        return line
    try:
        value = json.decode(body.encode(errors="replace"))
    except JsonError:
        return line
    return line[:start] + json.encode(_members("", (), value)).decode() + line[end:]


def _plain(text: str) -> str:
    text = _PEM.sub(REDACTED, text)
    text = _DATA_URL.sub(lambda match: _opaque_url(match[0]), text)
    text = _SCHEME.sub(lambda match: f"{match[1]} {REDACTED}", text)
    text = _USERINFO.sub(REDACTED, text)
    text = _without_values(_without_values(text, _NAMED), _BESIDE)
    for pattern in _PATTERNS:
        text = pattern.sub(REDACTED, text)
    return without_keys(_BASE64.sub(_hidden, text))


def _without_values(text: str, pattern: re.Pattern[str]) -> str:
    """Text in which what follows the name of a credential is taken out."""
    parts, done, at = list[str](), 0, 0
    while (named := pattern.search(text, at)) is not None:
        at = named.end()
        if is_credential(named["name"]) and (value := _TEXT.match(text, at)) is not None:
            parts += [text[done:at], REDACTED]
            done = at = value.end()
    return "".join([*parts, text[done:]])


def _hidden(match: re.Match[str]) -> str:
    """Base64 that holds a credential is taken out; any other stays."""
    text = match[0]
    for cut in (len(text), len(text) // 4 * 4):
        try:
            data = base64.b64decode(text[:cut], validate=True)
        except (binascii.Error, ValueError):
            continue
        return REDACTED if any(mark in data for mark in _PRIVATE) else text
    return text


def _opaque_url(url: str) -> str:
    """A data URL by its size: it may hold any file."""
    head, _, body = url.partition(",")
    return f"{head},{_opaque(body)}" if body else url


def _opaque(text: str) -> str:
    return f"{REDACTED}:{len(text)}-characters"


def taken_out(before: Any, after: Any, path: str = "") -> Iterator[str]:
    """The paths at which something is missing or replaced. Keys that look like keys are not spelled out here either."""
    if isinstance(before, Mapping) and isinstance(after, Mapping):
        for key, value in before.items():
            visible = without_keys(str(key))
            yield from taken_out(value, after.get(key, after.get(visible)), f"{path}.{visible}".lstrip("."))
    elif isinstance(before, list) and isinstance(after, list) and len(before) == len(after):
        for place, (value, visible) in enumerate(zip(before, after, strict=True)):
            yield from taken_out(value, visible, f"{path}[{place}]")
    elif before != after:
        yield path


def taken_from_text(before: str, after: str) -> str:
    """How often something was taken out of a text; empty when nothing was."""
    times = after.count(REDACTED) - before.count(REDACTED)
    return counted(times, "time") if times > 0 else ""
