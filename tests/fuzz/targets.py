"""The parsers of the Kubernetes API, and that of user-data, as fuzz targets: what each is fed and what it knows."""

import base64
import json
import ssl
from contextlib import suppress
from pathlib import Path
from typing import Any, Final

from fastness.formats import json as strict_json
from fastness.formats import toml
from fastness.formats.client_hello import server_name
from fastness.formats.continue_token import ContinueToken, decode_continue_token
from fastness.formats.errors import SelectorError, TokenError
from fastness.formats.patch import MergeRule, apply_json_patch, apply_merge_patch, apply_strategic_patch
from fastness.formats.protobuf import decode_object
from fastness.formats.selectors import label_selector_from_object, parse_field_selector, parse_label_selector
from fastness.formats.yaml import load_documents
from fastness.protocol.user_data import VERSION, parse_user_data
from tests.fuzz.driver import Target

_DOCUMENT: Final[dict[str, Any]] = {
    "metadata": {"name": "a", "finalizers": ["f1", "f2"], "labels": {"k": "v"}},
    "spec": {
        "containers": [{"name": "a", "image": "x"}, {"name": "b", "ports": [{"containerPort": 1}]}],
        "n": [1, 2, 3],
    },
}
_FROZEN: Final = strict_json.canonical(_DOCUMENT)


class _Rules:
    def rule(self, path: tuple[str, ...]) -> MergeRule:
        merge_key = {"containers": "name", "ports": "containerPort"}.get(path[-1])
        return MergeRule("merge", merge_key) if merge_key or path[-1] == "finalizers" else MergeRule()


def _unchanged(result: object) -> object:
    """A patch must leave the object that it was applied to as it was."""
    assert strict_json.canonical(_DOCUMENT) == _FROZEN
    return result


def _json_patch(data: bytes) -> object:
    return _unchanged(apply_json_patch(_DOCUMENT, strict_json.decode(data)))


def _merge_patch(data: bytes) -> object:
    return _unchanged(apply_merge_patch(_DOCUMENT, strict_json.decode(data)))


def _strategic_patch(data: bytes) -> object:
    return _unchanged(apply_strategic_patch(_DOCUMENT, strict_json.decode(data), _Rules()))


def _json(data: bytes) -> object:
    value, duplicates = strict_json.decode_reporting_duplicates(data)
    # What was accepted can be written again, and means the same.
    assert strict_json.decode(strict_json.encode(value)) == value
    return duplicates


def _yaml(data: bytes) -> object:
    documents = load_documents(data)
    assert all(strict_json.decode(strict_json.encode(document.value)) == document.value for document in documents)
    return documents


def _toml(data: bytes) -> object:
    document = toml.parse(data)
    # As texts, because what is not a number is not equal to itself either.
    assert toml.encode(toml.parse(toml.encode(document))) == toml.encode(document)
    return document


def _text(data: bytes) -> str:
    try:
        return data.decode()
    except UnicodeDecodeError as error:
        raise SelectorError("not-text", "a query parameter is text", hint="send UTF-8") from error


def _label_selector(data: bytes) -> object:
    selector = parse_label_selector(_text(data))
    assert parse_label_selector(str(selector)) == selector
    return selector.matches({"a": "b", "c": "5"})


def _field_selector(data: bytes) -> object:
    selector = parse_field_selector(_text(data))
    assert set(parse_field_selector(str(selector)).terms) == set(selector.terms)
    return selector.matches({"metadata.name": "x"})


def _label_selector_object(data: bytes) -> object:
    selector = label_selector_from_object(strict_json.decode(data))
    return selector.nothing or parse_label_selector(str(selector)) == selector or _fail(selector)


def _fail(selector: object) -> object:
    raise AssertionError(f"{selector} does not read back")


def _continue_token(data: bytes) -> object:
    try:
        text = data.decode("ascii")
    except UnicodeDecodeError as error:
        raise TokenError("not-text", "a query parameter is text", hint="send ASCII") from error
    token = decode_continue_token(text)
    assert decode_continue_token(token.encode()) == token
    return token


def _protobuf(data: bytes) -> object:
    decoded = decode_object(data)
    return strict_json.encode(decoded.value)


_USER_DATA: Final = {"version": VERSION, "pool": "worker", "ticket": "t-1", "server": "https://a.example"}
_HEADERS: Final = [
    {"name": "Authorization", "value": "Bearer t-1"},
    {"name": "X-Fastness-Server", "value": "https://a.example"},
]
_ENTRY: Final = {"source": "http://127.0.0.1:22625/config/worker", "httpHeaders": _HEADERS}
_POINTER: Final = {"ignition": {"version": "3.2.0", "config": {"merge": [_ENTRY]}}}


def _user_data(data: bytes) -> object:
    read = parse_user_data(data)
    # Whatever was accepted has four texts, or six in a pointer: there is no room for anything else.
    words = [read.pool, read.ticket, read.server]
    texts = _texts(strict_json.decode(data))
    assert len(texts) in (4, 6)
    assert all(any(word in text for text in texts) for word in words)
    return read


def _texts(value: Any) -> list[str]:
    if isinstance(value, dict | list):
        below = value.values() if isinstance(value, dict) else value
        return [text for part in below for text in _texts(part)]
    assert isinstance(value, str), "numbers, booleans and null have no place in user-data"
    return [value]


_BODIES = json.loads((Path(__file__).parents[1] / "unit" / "formats" / "data" / "kubectl_1_37_bodies.json").read_text())
_JSON_TOKENS: Final = (
    b"{", b"}", b"[", b"]", b":", b",", b'"', b'"a":', b"null", b"true", b"-1", b"1e9", b"18446744073709551615", b"\\u003a",
    b"\\ud800", b"\\", b"[[", b'{"a":', b"\xc3\xa9",
)  # fmt: skip
_PATCH_TOKENS: Final = (
    *_JSON_TOKENS, b'"$patch":"delete"', b'"$patch":"replace"', b'"$retainKeys":["name"]', b'"$setElementOrder/containers":[]',
    b'"$deleteFromPrimitiveList/finalizers":["f1"]', b'{"name":"a"}', b'"op":"copy"', b'"op":"move"', b'"from":"/spec"',
    b'"path":"/spec/n/0"', b'"path":""', b"/-", b"~1",
)  # fmt: skip


def _server_name(data: bytes) -> str:
    """The name, or that there is none: the parser itself refuses nothing, because TLS reads the bytes again."""
    name = server_name(data)
    if not name:
        raise TokenError("no-name", "no server name", hint="name one")
    return name


def _client_hello(name: str) -> bytes:
    """The first flight of a real client."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    outgoing = ssl.MemoryBIO()
    with suppress(ssl.SSLWantReadError):
        context.wrap_bio(ssl.MemoryBIO(), outgoing, server_hostname=name).do_handshake()
    return outgoing.read()


TARGETS: Final = (
    Target(
        "client-hello",
        _server_name,
        (_client_hello("a.example"), _client_hello("api-int.old.example.com")),
        (b"\x16\x03\x01", b"\x00\x00", b"\x00\x01\x00", b"\xff\xff"),
    ),
    Target(
        "user-data",
        _user_data,
        (strict_json.encode(_USER_DATA), strict_json.encode(_POINTER)),
        (
            *_JSON_TOKENS,
            b'"storage":{},',
            b'"systemd":{},',
            b'"replace":{},',
            b'"version":"3.3.0"',
            b"https://b.example",
        ),
    ),
    Target(
        "json",
        _json,
        (
            b'{"a":[1,2.5,true,null,"x:y"],"b":{"c":{}}}',
            b'{"a":1,"a":{"b":1,"b":2}}',
            b'{"big":18446744073709551615,"s":"\\u003a\\n"}',
            b"[[[[]]]]",
        ),
        _JSON_TOKENS,
    ),
    Target(
        "yaml",
        _yaml,
        (
            b"apiVersion: v1\nkind: ConfigMap\nmetadata:\n  name: a\n  labels: {a: b}\ndata:\n  k: |\n    text\n",
            b"a: &x [1, yes, 0777, 2024-01-01, ~]\nb: *x\nc:\n  <<: {d: 1}\n  e: 'q'\n---\n- !!str 5\n- \"\\u00e9\"\n",
            b'{"a": {"b": [1, "x"]}}',
            b"? a\n: b\n# c\n...\n---\nx: >-\n  folded\n",
        ),
        (
            b"- ",
            b": ",
            b"&a ",
            b"*a",
            b"<<: ",
            b"!!int ",
            b"!x ",
            b"\n  ",
            b"\t",
            b"{",
            b"[",
            b"'",
            b'"',
            b"? ",
            b"---\n",
            b"|\n",
            b"%YAML 1.1\n",
            b"\xff",
        ),
    ),
    Target(
        "toml",
        _toml,
        (
            b'[storage]\ndriver = "overlay"\n[storage.options]\nsize = ""\nadditionalimagestores = [ "/a", \'/b\' ] # c\n',
            b'[[registry]]\nlocation = "a.example"\n[[registry.mirror]]\nlocation = "b"\ninsecure = true\n',
            b'a.b."c d" = {x = 1, y = [1.5, -inf, nan]}\nd = 2026-01-02T03:04:05Z\ne = 0x1F\nf = """\nlines\\\n  """\n',
        ),
        (
            b"[",
            b"]",
            b"[[",
            b"]]",
            b"=",
            b".",
            b"a.b.",
            b'"',
            b"'",
            b'"""',
            b"'''",
            b"{",
            b"}",
            b",",
            b"\n",
            b"#",
            b"\\u00e9",
            b"1e9",
            b"_",
            b"0b1",
            b"9999999999",
            b"2026-01-02",
            b"23:59:60",
            b"+nan",
            b"true",
            b"\xff",
        ),
    ),
    Target(
        "merge patch",
        _merge_patch,
        (b'{"metadata":{"labels":{"k":null,"n":"v"}},"spec":{"n":[]}}', b'{"spec":{"containers":[{"name":"a"}]}}'),
        _PATCH_TOKENS,
    ),
    Target(
        "json patch",
        _json_patch,
        (
            b'[{"op":"add","path":"/spec/n/-","value":{"a":[1]}},{"op":"remove","path":"/metadata/labels/k"}]',
            b'[{"op":"copy","path":"/c","from":"/spec"},{"op":"move","path":"/spec/m","from":"/spec/n"}]',
            b'[{"op":"test","path":"/spec/n","value":[1,2,3]},{"op":"replace","path":"/spec/n/0","value":null}]',
        ),
        _PATCH_TOKENS,
    ),
    Target(
        "strategic merge patch",
        _strategic_patch,
        (
            b'{"spec":{"containers":[{"name":"b","$patch":"delete"},{"name":"c","ports":[{"containerPort":2}]}]}}',
            b'{"metadata":{"$deleteFromPrimitiveList/finalizers":["f1"],"$setElementOrder/finalizers":["f3","f2"],"finalizers":["f3"]}}',
            b'{"spec":{"$setElementOrder/containers":[{"name":"b"},{"name":"a"}]},"metadata":{"labels":{"$patch":"replace","x":"y"}}}',
            b'{"spec":{"$retainKeys":["n"],"n":[4]}}',
        ),
        _PATCH_TOKENS,
    ),
    Target(
        "label selector",
        _label_selector,
        (b"a=b,c!=d,e in (f,g),h notin (i),!j,k,l>1,m<2", b"example.com/a==b", b"in in (in)", b""),
        (
            b",",
            b"=",
            b"==",
            b"!=",
            b"!",
            b"(",
            b")",
            b" in ",
            b" notin ",
            b">",
            b"<",
            b"/",
            b".",
            b" ",
            b"-",
            b"\xc3\xa9",
        ),
    ),
    Target(
        "field selector",
        _field_selector,
        (b"metadata.name=x,spec.nodeName!=y", b"a=b\\,c\\=d\\\\,e==f", b""),
        (b",", b"=", b"==", b"!=", b"\\", b"\\,", b"\\=", b"!", b"\n"),
    ),
    Target(
        "label selector object",
        _label_selector_object,
        (
            b'{"matchLabels":{"a":"b"},"matchExpressions":[{"key":"c","operator":"In","values":["d","e"]}]}',
            b'{"matchExpressions":[{"key":"c","operator":"Exists"},{"key":"d","operator":"DoesNotExist"}]}',
            b"null",
        ),
        (*_JSON_TOKENS, b'"matchLabels":', b'"operator":"NotIn"', b'"values":'),
    ),
    Target(
        "continue token",
        _continue_token,
        (ContinueToken(7, "/registry/a").encode().encode(), ContinueToken(2**63 - 1, "é\0").encode().encode()),
        (b"e30", b"=", b"-", b"_", b"A", base64.urlsafe_b64encode(b'"rv":1')),
    ),
    Target(
        "protobuf body",
        _protobuf,
        tuple(base64.b64decode(case["body"]) for case in _BODIES),
        (
            b"\x0a",
            b"\x12",
            b"\x08\x01",
            b"\xff",
            b"\xff" * 9 + b"\x01",
            b"\x80",
            b"\x0a\x00",
            b"\x12\x02\x0a\x00",
            b"k8s\0",
        ),
    ),
)
