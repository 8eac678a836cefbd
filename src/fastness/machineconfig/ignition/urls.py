"""The URLs of a config, read as the machine's own reader does.

Ignition hands every source to Go's URL parser, then looks at the scheme. A URL that another library finds odd may be good
for it, and the other way round, so the parts of that parser that can refuse are written down here: control characters, the
scheme, the authority with its port and user, and percent escapes in path and fragment. The query is never refused.

Schemes came over time: `gs` in 3.2, `arn` (objects and access points of S3) in 3.4; spec 2 had `oem`.
"""

import re
from typing import Final, NamedTuple
from urllib.parse import unquote_plus

from fastness.formats import data_url
from fastness.formats.errors import DataUrlError

# Go's url.Parse refuses these outright: a line end that got through would put a second line into the head of a request.
_CONTROL: Final = re.compile(r"[\x00-\x1f\x7f]")
_SCHEME: Final = re.compile(r"([A-Za-z][A-Za-z0-9+.-]*):")
_BAD_ESCAPE: Final = re.compile(r"%(?![0-9A-Fa-f]{2})", re.ASCII)
_USER: Final = re.compile(r"[A-Za-z0-9\-._:~!$&'()*+,;=%@]*", re.ASCII)
# Bytes beyond ASCII pass; of ASCII only what may stand in a host name unescaped.
_HOST: Final = re.compile(r"(?:[A-Za-z0-9\-._~!$&'()*+,;=:\[\]<>\"]|[^\x00-\x7f]|%[89A-Fa-f][0-9A-Fa-f])*")
_BRACKETS: Final = re.compile(r"\[[^\]]*\](?::\d*)?", re.ASCII)

_SINCE: Final = {"http": 0, "https": 0, "tftp": 0, "s3": 0, "data": 0, "gs": 2, "arn": 4}
LEGACY_SCHEMES: Final = frozenset({"http", "https", "tftp", "s3", "data", "oem"})


class Url(NamedTuple):
    """The parts that the checks look at."""

    scheme: str
    opaque: str
    query: str


class BadUrl(NamedTuple):
    """Why a URL is refused."""

    code: str
    message: str


_INVALID: Final = BadUrl("invalid-url", "the URL cannot be understood")
_ARN: Final = BadUrl("invalid-arn", "must name an object of S3: arn:<partition>:s3:::<bucket>/<key>")
_VERSION_ID: Final = BadUrl("invalid-version-id", "versionId must not be empty")


def split(text: str) -> Url | None:
    """Take a URL apart; None where Go's parser gives up."""
    if _CONTROL.search(text):
        return None
    text, _, fragment = text.partition("#")
    if _BAD_ESCAPE.search(fragment):
        return None
    match = _SCHEME.match(text)
    if match is None:
        return None if text.startswith(":") or ":" in text.split("/", 1)[0] else Url("", "", "")
    scheme = match[1].lower()
    rest, _, query = text[match.end() :].partition("?")
    # net/url: what does not begin with a slash is opaque, and neither authority nor path is looked at.
    if not rest.startswith("/"):
        return Url(scheme, rest, query)
    path = rest
    if rest.startswith("//"):
        authority, slash, path = rest[2:].partition("/")
        path = slash + path
        if not _good_authority(authority):
            return None
    return None if _BAD_ESCAPE.search(path) else Url(scheme, "", query)


def _good_authority(authority: str) -> bool:
    # From the right, as net/url does: taken from the left, `good@evil@host` would be checked for another host than the one that
    # is asked.
    user, at, host = authority.rpartition("@")
    if at and (not _USER.fullmatch(user) or _BAD_ESCAPE.search(user)):
        return False
    if host.startswith("["):
        return _BRACKETS.fullmatch(host) is not None
    name, colon, port = host.rpartition(":")
    # Python's isdigit alone takes digits of every script; Go takes ASCII and refuses the rest.
    if colon and port and not (port.isascii() and port.isdigit()):
        return False
    return _HOST.fullmatch(name if colon else host) is not None


def problem(text: str, minor: int) -> BadUrl | None:
    """What is wrong with a source in spec 3.<minor>; None for a good one."""
    if text.startswith("data:"):
        return _data_problem(text)
    url = split(text)
    if url is None:
        return _INVALID
    # A list of what is allowed, as everywhere: what a library behind another scheme would fetch (file, ftp) is not asked.
    since = _SINCE.get(url.scheme)
    if since is None:
        return BadUrl("invalid-scheme", f"the scheme must be one of {', '.join(schemes(minor))}")
    if since > minor:
        return BadUrl("invalid-scheme", f"the scheme {url.scheme} exists only since spec 3.{since}")
    if url.scheme == "data":
        return _data_problem(text)
    if url.scheme == "arn" and not _good_arn(f"arn:{url.opaque}"):
        return _ARN
    if url.scheme in ("s3", "arn") and _empty_version_id(url.query):
        return _VERSION_ID
    return None


def legacy_problem(text: str) -> BadUrl | None:
    """What is wrong with a source in spec 2.2, where an empty one is an empty file."""
    if not text:
        return None
    url = split(text)
    if url is None:
        return _INVALID
    if url.scheme not in LEGACY_SCHEMES:
        return BadUrl("invalid-scheme", f"the scheme must be one of {', '.join(sorted(LEGACY_SCHEMES))}")
    if url.scheme == "data":
        return _data_problem(text)
    return _VERSION_ID if url.scheme == "s3" and _empty_version_id(url.query) else None


def schemes(minor: int) -> list[str]:
    """The schemes of spec 3.<minor>."""
    return [scheme for scheme, since in _SINCE.items() if since <= minor]


def scheme_since(text: str) -> int:
    """The minor of spec 3 that first knew the scheme of a good URL."""
    url = split(text)
    return _SINCE.get(url.scheme, 0) if url else 0


def _data_problem(text: str) -> BadUrl | None:
    try:
        data_url.check(text)
    except DataUrlError as error:
        return BadUrl(error.code, error.message)
    return None


def _good_arn(text: str) -> bool:
    sections = text.split(":", 5)
    # An ARN names things of every service of that cloud; Ignition fetches only objects of S3.
    if len(sections) != 6 or sections[2] != "s3":
        return False
    parts = text.count("/") + 1
    return parts >= 3 if sections[5].startswith("accesspoint/") else parts >= 2


def _empty_version_id(query: str) -> bool:
    for pair in query.split("&"):
        name, _, value = pair.partition("=")
        # net/url drops pairs that it cannot read, and since Go 1.17 those with a semicolon, without failing.
        if ";" in pair or _BAD_ESCAPE.search(pair) or unquote_plus(name) != "versionId":
            continue
        # The first one decides, as with Go's Query().Get.
        return not value
    return False
