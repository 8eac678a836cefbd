"""What a version of systemd-boot does with the command line of the image that it starts: measure it, and hand it over.

Only versions that were booted here and compared are listed; what another version would do is not guessed.

* It reads the command line out of the image and passes it as load options, which it measures first (PCR 12).
* The boot stub takes load options in the place of its own line and measures them once more. With Secure Boot on it does not look
  at them when it has a line of its own.
* Newer versions measure their configuration as well, which lies on a disk that anybody writes.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

from fastness.formats.evidence.pe.loader import Loader
from fastness.formats.evidence.pe.uki import Uki
from fastness.images.errors import Unpredictable


@dataclass(frozen=True, slots=True)
class LoaderRules:
    """One version: the boot stubs that it was booted with."""

    stubs: tuple[int, ...]


LOADERS: Final[Mapping[int, LoaderRules]] = {252: LoaderRules(stubs=(252,))}


def passed_line(loader: Loader, uki: Uki) -> str:
    """The command line that the boot loader passes to an image; raises Unpredictable."""
    rules = LOADERS.get(loader.version)
    if rules is None or uki.stub not in rules.stubs:
        versions = ", ".join(f"{version} with stub {stub}" for version, rule in LOADERS.items() for stub in rule.stubs)
        raise Unpredictable(
            "unknown-loader",
            f"systemd-boot {loader.name} with systemd-stub {uki.stub_name} has not been compared with a boot",
            f"Use systemd-boot {versions}, or approve what a trusted machine measured.",
        )
    content = uki.sections.get(".cmdline", b"").removesuffix(b"\n")
    # The loader turns bytes into UTF-16 and the stub tidies that: a plain line is the same for both.
    if not content or not all(0x20 <= byte < 0x7F for byte in content) or content != content.strip():
        raise Unpredictable(
            "odd-command-line",
            "the command line in the image is empty, is not plain ASCII, or has blanks at its ends",
            "Build the image with a plain command line: boot loader and boot stub treat others differently.",
        )
    return content.decode("ascii")
