"""References of container images: where an image is, and which bytes are meant.

    parse_image("registry.example/os:9@sha256:…")    ImageReference(repository, tag, digest)
    canonical("registry.example/os:9@sha256:…")      "registry.example/os@sha256:…": the tag says nothing beside a digest
    same_image(a, b)                                 equal digests are the same image, whatever the names; else equal texts

The grammar is that of the distribution specification, with a registry always named: nothing here completes a short name, because
what it would be completed with depends on the machine.
"""

from __future__ import annotations

import re
from typing import Final, NamedTuple

from fastness.formats.errors import ImageReferenceError

MAX_LENGTH: Final = 1024
_HOST: Final = r"(?:[A-Za-z0-9](?:[A-Za-z0-9.-]*[A-Za-z0-9])?|\[[0-9A-Fa-f:]+\])(?::[0-9]{1,5})?"
_PART: Final = r"[a-z0-9]+(?:(?:\.|_{1,2}|-+)[a-z0-9]+)*"
_REFERENCE: Final = re.compile(
    rf"(?P<repository>{_HOST}(?:/{_PART})+)(?::(?P<tag>[A-Za-z0-9_][A-Za-z0-9_.-]{{0,127}}))?"
    r"(?:@(?P<digest>sha256:[0-9a-f]{64}|sha512:[0-9a-f]{128}))?",
    re.ASCII,
)


class ImageReference(NamedTuple):
    """An image by its repository, and by tag, digest or both."""

    repository: str
    tag: str = ""
    digest: str = ""

    def __str__(self) -> str:
        tag = f":{self.tag}" if self.tag and not self.digest else ""
        return f"{self.repository}{tag}" + (f"@{self.digest}" if self.digest else "")


def parse_image(text: str) -> ImageReference:
    """Read a reference; raises ImageReferenceError."""
    # Bounded first: what comes from a config may have any length, and expressions are matched against all of it.
    match = _REFERENCE.fullmatch(text) if len(text) <= MAX_LENGTH else None
    if match is None:
        raise ImageReferenceError(
            "image-reference", f"{text[:80]!r} is not the name of an image",
            hint="Write registry/repository@sha256:…, with 64 hexadecimal digits.",
        )  # fmt: skip
    return ImageReference(match["repository"], match["tag"] or "", match["digest"] or "")


def digest_of(text: str) -> str:
    """The digest in a reference; empty where it has none."""
    return text.rpartition("@")[2] if "@" in text else ""


def canonical(text: str) -> str:
    """The reference without what does not decide: its tag, where there is a digest. What is no reference stays as it is."""
    try:
        return str(parse_image(text))
    except ImageReferenceError:
        return text


def same_image(first: str, second: str) -> bool:
    """Whether two references mean the same bytes: by digest where both have one, else only when they are the same text."""
    digests = digest_of(first), digest_of(second)
    return digests[0] == digests[1] if all(digests) else first == second
