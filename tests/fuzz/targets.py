"""The parsers of the Kubernetes API, and that of user-data, as fuzz targets: what each is fed and what it knows."""

import base64
import gzip
import io
import json
import sqlite3
import ssl
import struct
import tarfile
from contextlib import suppress
from pathlib import Path
from typing import Any, Final

from fastness.formats import cosign, oci, toml
from fastness.formats import json as strict_json
from fastness.formats.client_hello import server_name
from fastness.formats.continue_token import ContinueToken, decode_continue_token
from fastness.formats.coreos_stream import parse_stream
from fastness.formats.errors import SelectorError, TemplateError, TokenError
from fastness.formats.gotemplate import parse_template
from fastness.formats.image_reference import parse_image
from fastness.formats.oci_layer import file_in_layer
from fastness.formats.oci_tree import LayerReader, Room, merged
from fastness.formats.os_status import bootc_status, rpm_ostree_status
from fastness.formats.package_lists import DPKG, RPM
from fastness.formats.patch import MergeRule, apply_json_patch, apply_merge_patch, apply_strategic_patch
from fastness.formats.protobuf import decode_object
from fastness.formats.regexp import compile_regexp
from fastness.formats.selectors import label_selector_from_object, parse_field_selector, parse_label_selector
from fastness.formats.yaml import load_documents
from fastness.machineconfig.live.package_databases import packages
from fastness.protocol.node_trust import NodeTrust, parse_node_trust
from fastness.protocol.unlock_note import MAGIC, NOTE_BYTES, TpmIdentity, UnlockNote, read_note, written
from fastness.protocol.user_data import VERSION, parse_user_data
from fastness.workloads.features.templates import FUNCTIONS
from tests.component.workloads.template_table import TABLES, templates
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


def _template(data: bytes) -> object:
    return parse_template(data.decode("utf-8", "surrogateescape"), FUNCTIONS)


def _rpm_database() -> bytes:
    """A database with one header: a name and a version."""
    index = struct.pack(">IIiIIIiI", 1000, 6, 0, 1, 1001, 6, 2, 1)
    connection = sqlite3.connect(":memory:")
    connection.execute("PRAGMA page_size=512")
    connection.execute("CREATE TABLE Packages (hnum INTEGER PRIMARY KEY, blob BLOB NOT NULL)")
    connection.execute("INSERT INTO Packages (blob) VALUES (?)", (struct.pack(">II", 2, 4) + index + b"a\x001\0",))
    connection.commit()
    return bytes(connection.serialize())


def _regexp(data: bytes) -> object:
    """A pattern, and its run over a text that no pattern may hold up."""
    regexp = compile_regexp.__wrapped__(data.decode("utf-8", "surrogateescape"))
    steps = [0]
    regexp.search("a" * 6 + "b", 0, lambda count: steps.__setitem__(0, steps[0] + count))
    assert steps[0] <= 8 * (len(regexp.program) + 1)
    return regexp


def _reads(data: bytes) -> bool:
    """Whether a template is one of the corpus: the table has those that are refused as well."""
    try:
        return bool(_template(data))
    except TemplateError:
        return False


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


def _image(data: bytes) -> object:
    content = oci.manifest(data)
    assert not isinstance(content, oci.Manifest) or content.size >= 0
    return content


def _image_name(data: bytes) -> object:
    reference = oci.reference(data.decode(errors="surrogateescape"))
    # What is asked for is what was named; a tag beside a digest says nothing more.
    again = oci.reference(str(reference))
    assert (again.registry, again.repository, again.version) == (
        reference.registry,
        reference.repository,
        reference.version,
    )
    return reference


def _image_login(data: bytes) -> object:
    return oci.credentials(data, oci.Reference("quay.example", "team/app"))


def _layer(data: bytes) -> object:
    return file_in_layer(data, "a", most=1024 * 1024)


def _tree(data: bytes) -> object:
    """A layer in pieces, on top of another, and the tree of both."""
    below = LayerReader(lambda _: True, Room())
    below.feed(_tar())
    reader = LayerReader(lambda path: not path.startswith("b"), Room(1024 * 1024, 64 * 1024))
    for at in range(0, len(data), 500):
        reader.feed(data[at : at + 500])
    layer = reader.finish()
    assert not any(".." in path.split("/") for path in layer.members)
    return merged([below.finish(), layer])


def _signatures(data: bytes) -> object:
    return cosign.parts(data) if b'"layers"' in data else cosign.signed_digest(data)


_SIGNED: Final = (
    b'{"critical":{"identity":{"docker-reference":"a"},"image":{"docker-manifest-digest":"sha256:%s"},'
    b'"type":"cosign container image signature"},"optional":null}'
) % (b"0" * 64)


def _tar() -> bytes:
    sink = io.BytesIO()
    with tarfile.open(fileobj=sink, mode="w", format=tarfile.PAX_FORMAT) as archive:
        for name in ("b" * 120, "a"):
            entry = tarfile.TarInfo(name)
            entry.size = 3
            archive.addfile(entry, io.BytesIO(b"abc"))
    return sink.getvalue()


def _challenge(data: bytes) -> object:
    return oci.challenge(data.decode(errors="replace"))


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


def _image_reference(data: bytes) -> object:
    reference = parse_image(_text(data))
    assert parse_image(str(reference)).digest == reference.digest
    return reference


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


_UNLOCK: Final = UnlockNote(
    "0d7d1f0c-5f2c-4c7b-9a7e-0123456789ab", "https://a.example", TpmIdentity(b"a", b"b", "ab" * 32)
)
_NOTE: Final = written(_UNLOCK, b"")[1].ljust(NOTE_BYTES, b"\0")


def _user_data(data: bytes) -> object:
    read = parse_user_data(data)
    # Whatever was accepted has four texts, or six in a pointer: there is no room for anything else.
    words = [read.pool, read.ticket, read.server]
    texts = _texts(strict_json.decode(data))
    assert len(texts) in (4, 6)
    assert all(any(word in text for text in texts) for word in words)
    return read


def _node_trust(data: bytes) -> object:
    trust = parse_node_trust(data)
    assert parse_node_trust(trust.body) == trust
    # The only text that becomes part of a path: nothing in it climbs or descends.
    assert not any("/" in host or host in (".", "..") for host in trust.registries)
    return trust


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

_PATTERNS: Final = (
    b"^v?([0-9]+)\\.(?P<minor>[0-9]+).*$", b"(a+)+$", b"(?i:abc|d[^e-g]*)?\\bx{2,5}?", b"[[:alpha:]\\d_-]+\\x41\\Qa.b\\E",
    b"(|a)*(?s).",
)  # fmt: skip
_PATTERN_TOKENS: Final = (
    b"(", b")", b"(?:", b"(?i)", b"(?P<n>", b"[", b"]", b"[^", b"[:digit:]", b"a-z", b"*", b"+", b"?", b"{1,3}", b"{0}", b"|",
    b"^", b"$", b"\\b", b"\\d", b"\\x{1f}", b"\\Q", b"\\E", b"\\", b".",
)  # fmt: skip
_TEMPLATES: Final = tuple(
    template.encode() for table in TABLES for template in templates(table) if _reads(template.encode())
)
_TEMPLATE_TOKENS: Final = (
    b"{{", b"}}", b"{{-", b"-}}", b"{{/*", b"*/}}", b"range ", b"if ", b"with ", b"else ", b"end", b"define ", b"template ",
    b"block ",
    b"break", b"continue", b"$x", b" := ", b" = ", b" | ", b"(", b")", b".a.b", b'"x"', b"`", b"'a'", b"0x1f", b"1e3", b"nil",
    b"true",
    b"len ", b"{{end}}", b", ", b"\\x",
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
    Target("regexp", _regexp, _PATTERNS, _PATTERN_TOKENS, calls_per_byte=2000),
    Target("go-template", _template, _TEMPLATES[:60], _TEMPLATE_TOKENS),
    Target(
        "node-trust",
        _node_trust,
        (
            NodeTrust(kubelet_ca="x", registries={"r.example:5000": "y", "a": ""}, pull_secret="{}").body,
            NodeTrust().body,
        ),
        (
            *_JSON_TOKENS,
            b'"registries":{"../x":""}',
            b'"registries":{"a/b":""}',
            b'"kubeletCA":1',
            b"..",
            b"/",
            b":5000",
            b"\\u0000",
        ),
    ),
    Target(
        "client-hello",
        _server_name,
        (_client_hello("a.example"), _client_hello("api-int.old.example.com")),
        (b"\x16\x03\x01", b"\x00\x00", b"\x00\x01\x00", b"\xff\xff"),
    ),
    Target(
        "unlock-note",
        read_note,
        (_NOTE, _NOTE[8192:] + _NOTE[:8192]),
        (*_JSON_TOKENS, MAGIC, b"\0" * 8, b"https://"),
        600,
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
        "image",
        _image,
        (
            b'{"config":{"digest":"sha256:%s","size":3},"layers":[{"digest":"sha256:%s","size":7}]}'
            % (b"0" * 64, b"1" * 64),
            b'{"manifests":[{"digest":"sha256:%s","size":3,"platform":{"os":"linux","architecture":"amd64"}}]}'
            % (b"0" * 64),
        ),
        (
            *_JSON_TOKENS,
            b'"digest":',
            b'"size":-1',
            b'"layers":',
            b'"manifests":',
            b'"platform":',
            b"sha256:",
            b"9" * 20,
        ),
    ),
    Target(
        "labels of an image",
        oci.labels,
        (b'{"config":{"Labels":{"io.openshift.os.streamclass":"rhel-10","containers.bootc":"1"}}}', b'{"config":{}}'),
        (*_JSON_TOKENS, b'"config":', b'"Labels":', b"null", b"1"),
    ),
    Target(
        "challenge of a registry",
        _challenge,
        (
            b'Bearer realm="https://auth.example/token",service="quay.example",scope="repository:a:pull"',
            b"Basic realm=x",
        ),
        (b"=", b'"', b"Bearer ", b"Basic ", b",", b"\\", b"\xff"),
    ),
    Target(
        "layer of an image",
        _layer,
        (_tar(), gzip.compress(_tar(), mtime=0)),
        (b"\0" * 512, b"\xff", b"7777777", b"ustar", b"path=", b"L", b"x", b"g", b"S", b"\x1f\x8b"),
        calls_per_byte=200,
        base_calls=20000,
    ),
    Target(
        "tree of an image",
        _tree,
        (_tar(), gzip.compress(_tar(), mtime=0)),
        (
            b"\0" * 512,
            b"\xff",
            b"7777777",
            b"ustar",
            b"path=",
            b"L",
            b"x",
            b"g",
            b"S",
            b".wh.",
            b".wh..wh..opq",
            b"../",
            b"\x80",
        ),
        calls_per_byte=200,
        base_calls=20000,
    ),
    Target(
        "signature of an image",
        _signatures,
        (
            _SIGNED,
            b'{"layers":[{"mediaType":"application/vnd.dev.cosign.simplesigning.v1+json","digest":"sha256:%s","size":3,'
            b'"annotations":{"dev.cosignproject.cosign/signature":"AAAA"}}],"config":{"digest":"sha256:%s","size":1}}'
            % (b"0" * 64, b"1" * 64),
        ),
        (*_JSON_TOKENS, b'"critical":', b'"image":', b"sha256:", b'"layers":', b'"annotations":', b"null"),
    ),
    Target(
        "image name",
        _image_name,
        (
            b"quay.example:5000/team/app@sha256:" + b"0" * 64,
            b"localhost/a/b:1",
            b"quay.example/a:1@sha256:" + b"1" * 64,
        ),
        (b"/", b":", b"@", b"..", b"sha256:", b"%2f", b"?", b"#", b"_", b"--", b" ", b"\xff"),
    ),
    Target(
        "credentials of a registry",
        _image_login,
        (b'{"auths":{"quay.example":{"auth":"dTpw"},"quay.example/team":{"username":"u","password":"p"}}}', b"{}"),
        (*_JSON_TOKENS, b'"auths":', b'"auth":', b"=", b'"', b"\xff"),
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
        "image reference",
        _image_reference,
        (b"registry.example:5000/os/base:9@sha256:" + b"a" * 64, b"r.example/os:latest", b"[::1]:5000/a"),
        (b":", b"@", b"/", b"sha256:", b"..", b"-", b"A", b"\n"),
    ),
    Target(
        "database of rpm",
        lambda data: packages(RPM[0], data),
        (_rpm_database(),),
        (b"Packages", b"\0" * 8, b"\0\0\x03\xe8", b"SQLite format 3", b"CREATE VIEW", b"\xff\xff\xff\xff"),
        calls_per_byte=2000,
    ),
    Target(
        "paragraphs of dpkg",
        lambda data: packages(DPKG[0], data),
        (b"Package: a\nStatus: install ok installed\nVersion: 1\nArchitecture: all\n\nPackage: b\nStatus: x\n",),
        (b"Package:", b"\n\n", b" installed", b":", b"\xff"),
    ),
    Target(
        "bootc status",
        bootc_status,
        (
            b'{"apiVersion":"org.containers.bootc/v1","status":{"booted":{"image":{"image":{"image":"r.example/os:1"},'
            b'"imageDigest":null},"incompatible":false,"composefs":{"bootType":"Uki"}},"staged":null}}',
        ),
        (*_JSON_TOKENS, b'"staged":', b'"downloadOnly":true', b'"image":', b'"imageDigest":"sha256:'),
    ),
    Target(
        "rpm-ostree status",
        rpm_ostree_status,
        (
            b'{"deployments":[{"booted":true,"container-image-reference":"ostree-remote-image:f:docker://r.example/os:1",'
            b'"requested-packages":["a"]},{"custom-origin":["pivot://x"]}],"transaction":null}',
        ),
        (*_JSON_TOKENS, b'"staged":true', b'"transaction":["x"]', b'"pinned":', b'"requested-packages":'),
    ),
    Target(
        "continue token",
        _continue_token,
        (ContinueToken(7, "/registry/a").encode().encode(), ContinueToken(2**63 - 1, "é\0").encode().encode()),
        (b"e30", b"=", b"-", b"_", b"A", base64.urlsafe_b64encode(b'"rv":1')),
    ),
    Target(
        "stream metadata",
        parse_stream,
        (
            b'{"stream":"s","architectures":{"x86_64":{"artifacts":{"qemu":{"release":"9.8.20260428-0","formats":{"qcow2.gz":'
            b'{"disk":{"location":"https://m/a","sha256":"ab"}}}}},"images":{"aws":{"regions":{"r":{"release":"1","image":"ami-0"}}},'
            b'"gcp":{"release":"1","project":"p","name":"n"}},"rhel-coreos-extensions":{"marketplace":{"azure":{"ocp":{"hyperVGen1":'
            b'{"publisher":"p","offer":"o","sku":"s","version":"1"}}}}}}}}',
            b'{"architectures":{}}',
        ),
        (*_JSON_TOKENS, b'"architectures":', b'"images":', b'"regions":', b'"artifacts":', b'"disk":'),
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
