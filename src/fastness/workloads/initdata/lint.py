"""Every rule about init data, each with a code, a severity and a reason.

Linting goes on where a consumer would stop: values that lack their quotes and texts that are not closed are mended for the rest
of the look, so that a template full of gaps shows all of them at once. What is mended is itself a finding.

| code | about | | code | about |
| --- | --- | --- | --- | --- |
| E1 | base64, gzip, trailing bytes | | E9 | aa and cdh name different brokers |
| E2 | UTF-8, TOML | | E10 | addresses of image policies |
| E3 | version | | E11, E12 | package and syntax of the policy |
| E4 | algorithm | | E13 | size |
| E5 | table data | | W1 | no policy |
| E6 | aa.toml, cdh.toml are TOML | | W2 | a broker that only one cluster reaches |
| E7 | key broker client | | W3 | gaps of a template |
| E8 | https, http and certificates | | W4, W5, S1 | unknown members, unknown entries, secrets |
"""

from __future__ import annotations

import re
import tomllib
from collections.abc import Iterator, Mapping
from typing import Any, Final
from urllib.parse import urlsplit

from fastness.formats.initdata import ALGORITHMS, VERSIONS, InitDataError, decode_init_data, encode_init_data
from fastness.protocol.kbs_path import UriError, parse_uri
from fastness.workloads.initdata.finding import Finding, Severity

ENTRIES: Final = ("aa.toml", "cdh.toml", "policy.rego")
# The written specification names sha-256 too; the runtime takes the form without a dash alone.
EXACT: Final = tuple(name for name in ALGORITHMS if "-" not in name)
WARN_ENCODED: Final = 200 * 1024
# The bound of Kubernetes on all annotations of an object together.
MAX_ENCODED: Final = 256 * 1024
CLIENTS: Final = ("cc_kbc", "offline_fs_kbc")
CREDENTIALS: Final = "/run/confidential-containers/cdh/"
_GAP: Final = re.compile(r"<[A-Za-z][A-Za-z0-9_ -]{0,60}>")
_BARE: Final = re.compile(r"(?m)^(\s*[\w.\"'-]+\s*=\s*)(<[^<>\n\"']{1,80}>)[ \t]*$")
_OPEN: Final = re.compile(r"(?m)^(\s*[\w.\"-]+\s*=\s*)(['\"])(?!\2\2)([^'\"\n]*)$")
_SECRETS: Final = (
    ("a private key", re.compile(r"-----BEGIN [A-Z ]{0,30}PRIVATE KEY-----")),
    # A JWT: base64url of `{"` begins with eyJ.
    ("a token", re.compile(r"\beyJ[A-Za-z0-9_-]{8,}\.eyJ[A-Za-z0-9_-]{8,}\.")),
    # Access key ids of AWS, lasting and temporary ones.
    ("an access key", re.compile(r"\b(?:AKIA|ASIA)[A-Z0-9]{16}\b")),
    (
        "a password",
        re.compile(r"(?i)\b(?:password|passwd|secret_key|api_key|apikey|auth_token)\b\s*[=:]\s*['\"]?[^\s'\"<]{4,}"),
    ),
    ("a password in an address", re.compile(r"[a-z][a-z0-9+.-]*://[^/\s:@'\"]{1,64}:[^/\s@'\"]{1,128}@")),
)
E, W = Severity.ERROR, Severity.WARNING


def lint_encoded(encoded: str) -> tuple[list[Finding], bytes | None]:
    """What is wrong with an annotation; the text inside, if there is one, is for `lint_text`."""
    try:
        text = decode_init_data(encoded)
    except InitDataError as error:
        code = "E13" if error.code in ("init-data-too-large", "init-data-bomb") else "E1"
        return [Finding(code, E, error.message, error.hint, "annotation")], None
    return _size(len(encoded.strip())), text


def _size(length: int) -> list[Finding]:
    if length > MAX_ENCODED:
        return [Finding("E13", E, f"{length} characters; an object's annotations hold {MAX_ENCODED}", _SHORTEN)]
    if length > WARN_ENCODED:
        return [Finding("E13", W, f"{length} characters, close to the {MAX_ENCODED} of all annotations", _SHORTEN)]
    return []


_SHORTEN: Final = "Shorten the policy, or give certificates by reference."


def lint_text(raw: bytes, *, sized: bool = False) -> tuple[list[Finding], dict[str, str]]:
    """What is wrong with a document, without its policy; and its entries, as far as they can be read.

    `sized` means that its encoded form was measured already (`lint_encoded`): packing costs more than all other rules.
    """
    try:
        text = raw.decode()
    except UnicodeDecodeError:
        return [Finding("E2", E, "not UTF-8", "Save the file as UTF-8.")], {}
    findings = [] if sized else _size(len(encode_init_data(raw)))
    document, problems = _mended(text, "E2", "")
    findings += problems
    if document is None:
        return [*findings, *_gaps(text, "")], {}
    findings += _head(document)
    data = document.get("data")
    entries = {key: value for key, value in data.items() if isinstance(value, str)} if isinstance(data, dict) else {}
    findings += _data(data)
    for name, value in {"": _outside(document), **entries}.items():
        findings += [*_gaps(value, name), *_secrets(value, name)]
    findings += _inner(entries)
    return findings, entries


def _outside(document: Mapping[str, Any]) -> str:
    return "\n".join(str(value) for key, value in document.items() if key != "data")


def _mended(text: str, code: str, where: str) -> tuple[dict[str, Any] | None, list[Finding]]:
    """The TOML in a text; if it is none, what remains readable after the usual gaps are closed."""
    try:
        return tomllib.loads(text), []
    except (tomllib.TOMLDecodeError, RecursionError) as error:
        findings = [Finding(code, E, f"not TOML: {error}", "Close every text with the quote that opened it.", where)]
    mended = _BARE.sub(r'\1"\2"', text)
    try:
        return tomllib.loads(mended), findings
    except (tomllib.TOMLDecodeError, RecursionError):
        try:
            return tomllib.loads(_OPEN.sub(r"\1\2\3\2", mended)), findings
        except (tomllib.TOMLDecodeError, RecursionError):
            return None, findings


def _head(document: Mapping[str, Any]) -> Iterator[Finding]:
    version, algorithm = document.get("version"), document.get("algorithm")
    if version not in VERSIONS:
        yield Finding("E3", E, f"version is {version!r}", f"Write version = {VERSIONS[0]!r}.", "version")
    # The runtime of the host looks the hash up by this name and calls what it gets: nil, for any other spelling.
    if algorithm not in EXACT:
        reason = (
            "with this value the runtime on the host crashes" if isinstance(algorithm, str) else "it must be a text"
        )
        yield Finding(
            "E4", E, f"algorithm is {algorithm!r}; {reason}", f"Write one of {', '.join(EXACT)}.", "algorithm"
        )
    for name in document:
        if name not in ("version", "algorithm", "data"):
            yield Finding("W4", W, f"nobody reads the member {name!r}", "Remove it, or move it below [data].", name)


def _data(data: Any) -> Iterator[Finding]:
    if not isinstance(data, dict):
        yield Finding("E5", E, "there is no table data", "Put the entries below [data].", "data")
        return
    for name, value in data.items():
        if not isinstance(value, str):
            yield Finding("E5", E, "not a text", "Put the whole entry in quotes.", f"data.{name}")
        elif name not in ENTRIES:
            yield Finding(
                "W5", Severity.INFO, "delivered to the guest, and read by nothing there", "Remove it.", f"data.{name}"
            )
    # The policy in upstream's own guest images allows everything.
    if "policy.rego" not in data:
        yield Finding(
            "W1", W, "no policy: that of the guest image decides, and you may not know it",
            "Add a policy; `fastness policy agent write` makes one.", "data",
        )  # fmt: skip


def _gaps(text: str, where: str) -> Iterator[Finding]:
    for gap in dict.fromkeys(_GAP.findall(text)):
        yield Finding("W3", W, f"the gap {gap} was not filled in", "Write the value there.", where)


def _secrets(text: str, where: str) -> Iterator[Finding]:
    # Init data is measured and not encrypted: the host that starts the guest reads all of it.
    for what, pattern in _SECRETS:
        if pattern.search(text):
            yield Finding(
                "S1", E, f"{what} for every host to read", "Keep it at the key broker, and name it here.", where
            )


def _inner(entries: Mapping[str, str]) -> list[Finding]:
    findings: list[Finding] = []
    read: dict[str, Mapping[str, Any]] = {}
    for name in ("aa.toml", "cdh.toml"):
        if name in entries:
            document, problems = _mended(entries[name], "E6", name)
            findings += problems
            read[name] = document or {}
    aa, cdh = read.get("aa.toml"), read.get("cdh.toml")
    if aa is not None:
        findings += _aa(aa)
    if cdh is not None:
        findings += _cdh(cdh)
    brokers = {url for url in (_url(aa, "token_configs", "kbs"), _url(cdh, "kbc")) if url}
    if len(brokers) > 1:
        findings.append(
            Finding(
                "E9", W, f"two brokers: {', '.join(sorted(brokers))}", "Name the same in both.", "aa.toml, cdh.toml"
            )
        )
    return findings


def _aa(document: Mapping[str, Any]) -> Iterator[Finding]:
    configs = _table(document, "token_configs")
    if not any(isinstance(configs.get(name), dict) for name in ("kbs", "coco_as")):
        yield Finding(
            "E7", W, "no token_configs: the guest gets no token", "Add [token_configs.kbs] with a url.", "aa.toml"
        )
    kbs = _table(configs, "kbs")
    yield from _broker(kbs.get("url"), kbs.get("cert"), "cert", "aa.toml: token_configs.kbs")
    yield from _broker(_table(configs, "coco_as").get("url"), "-", "cert", "aa.toml: token_configs.coco_as")


def _cdh(document: Mapping[str, Any]) -> Iterator[Finding]:
    kbc = _table(document, "kbc")
    name, url = kbc.get("name"), kbc.get("url")
    if name not in CLIENTS:
        yield Finding("E7", E, f"kbc.name is {name!r}", f"Write one of {', '.join(CLIENTS)}.", "cdh.toml: kbc")
    elif name == "cc_kbc" and not url:
        yield Finding("E7", E, "cc_kbc has no url", "Add the address of the key broker.", "cdh.toml: kbc")
    yield from _broker(url, kbc.get("kbs_cert"), "kbs_cert", "cdh.toml: kbc")
    image = _table(document, "image")
    for key in ("image_security_policy_uri", "sigstore_config_uri", "authenticated_registry_credentials_uri",
                "registry_configuration_uri"):  # fmt: skip
        if key in image and not _is_resource(image[key]):
            yield Finding(
                "E10",
                E,
                f"{key} is {image[key]!r}",
                "Write kbs:///repository/type/tag or file:///path.",
                "cdh.toml: image",
            )
    credentials = document.get("credentials", [])
    for entry in credentials if isinstance(credentials, list) else ():
        path = entry.get("path") if isinstance(entry, dict) else None
        # The guest writes what it fetched to this path: outside the directory it could replace any file of its own.
        if not isinstance(path, str) or not path.startswith(CREDENTIALS) or "/../" in path:
            yield Finding(
                "E10", E, f"a credential goes to {path!r}", f"Put it below {CREDENTIALS}.", "cdh.toml: credentials"
            )


def _broker(url: Any, certificate: Any, key: str, where: str) -> Iterator[Finding]:
    """What is wrong with the address of a broker and the certificate for it; `-` stands for one that is not expected."""
    if url is None or (isinstance(url, str) and _GAP.search(url)):
        return
    parts = _split(url)
    if parts is None:
        yield Finding("E7", E, f"{url!r} is not an http or https address", "Write https://host.", where)
        return
    scheme, host = parts
    if scheme == "http" and certificate not in (None, "-"):
        yield Finding(
            "E8", E, f"{key} with an http address is refused by the guest", f"Use https, or delete {key}.", where
        )
    if scheme == "http":
        yield Finding(
            "E8", W, "plain http: the host sees and changes what is said", "Use https with a certificate.", where
        )
    if scheme == "https" and certificate is None:
        yield Finding(
            "E8", W, f"https without {key}: works only for publicly trusted certificates", f"Add {key}.", where
        )
    if _internal(host):
        yield Finding(
            "W2",
            W,
            f"{host} is known inside one cluster only",
            "Use an address that guests reach from everywhere.",
            where,
        )


def _split(url: Any) -> tuple[str, str] | None:
    try:
        parts = urlsplit(url) if isinstance(url, str) else None
        host = parts.hostname if parts else None
    except ValueError:
        return None
    return (parts.scheme, host) if parts and host and parts.scheme in ("http", "https") else None


def _internal(host: str) -> bool:
    last = host.rpartition(".")[2]
    if re.fullmatch(r"[0-9.]+|.*:.*", host):
        return False
    # No public top-level domain has a dash, but for the encoded ones; names of namespaces often do.
    return "." not in host or last in ("svc", "local", "internal") or ("-" in last and not last.startswith("xn--"))


def _is_resource(value: Any) -> bool:
    if not isinstance(value, str):
        return False
    if value.startswith("file:///"):
        return True
    if _GAP.search(value):
        return value.startswith("kbs:///")
    try:
        parse_uri(value)
    except UriError:
        return False
    return True


def _table(document: Mapping[str, Any], name: str) -> Mapping[str, Any]:
    table = document.get(name)
    return table if isinstance(table, dict) else {}


def _url(document: Mapping[str, Any] | None, *path: str) -> str:
    for name in path:
        document = _table(document or {}, name)
    url = (document or {}).get("url")
    return url.rstrip("/") if isinstance(url, str) else ""
