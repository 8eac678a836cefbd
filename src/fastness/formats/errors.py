"""The errors of every parser in this package.

Bytes that reach a parser were written by somebody else, so a parser is a total function: it returns a value or raises
one `FormatError`. Any other exception that leaves a parser is a defect, and the fuzz targets look for exactly that.

    FormatError                 base; never raised itself
    ├── JsonError               not JSON, or beyond a limit
    ├── YamlError               not YAML that Kubernetes accepts; `line` counts from 1
    ├── TomlError               not TOML, beyond a limit, or a value that TOML has no words for
    ├── ProtobufError           not the Kubernetes envelope, or a damaged message
    ├── SelectorError           label or field selector
    ├── TokenError              continue token
    ├── QuantityError           quantity, int-or-percent
    ├── DurationError           duration
    ├── DataUrlError            data URL, its compression or its hash
    ├── StreamError             CoreOS stream metadata
    ├── UserDataError           user-data with anything but pool, ticket and server; `path` is a JSON pointer (RFC 6901)
    ├── OciError                an image of a registry, its name, or credentials for it (`oci`)
    ├── ImageError              a boot image, its signatures, or a store of firmware variables
    ├── ImageReferenceError     the name of a container image
    ├── OsStatusError           what `bootc status` or `rpm-ostree status` printed
    ├── CpioError               the initial file system of a boot image (`cpio`)
    ├── Luks2Error              the header of an encrypted volume (`luks2`)
    ├── ElfError                a program or a library of Linux (`elf`)
    ├── RegexpError             a regular expression (`regexp`)
    ├── TemplateError           a template of Go's text/template (`gotemplate`); the message begins with line and column
    ├── IgnitionError           Ignition configs; the tree is in `ignition.problems`
    └── PatchError              `status` is the HTTP code a Kubernetes API server answers with
        ├── MalformedPatch      400: the patch itself is wrong
        ├── PatchTooLarge       413: the patch is well formed but asks for too much
        └── PatchFailed         422: the patch does not fit the object

- `code` is stable and machine-readable, `hint` tells the reader what to do.
- `path` is a field path in Kubernetes' notation (`spec.items[2].name`), empty for the whole document.
"""

from __future__ import annotations

from typing import ClassVar

from fastness.runtime.errors import CodedError


class FormatError(CodedError):
    """What was wrong with some bytes: a stable code, a sentence, where, and what to do."""

    def __init__(self, code: str, message: str, path: str = "", hint: str = "") -> None:
        super().__init__(code, message, hint)
        self.path = path

    def __str__(self) -> str:
        return f"{self.path}: {self.message}" if self.path else self.message


class JsonError(FormatError):
    """The bytes are not JSON, or JSON beyond a limit."""


class YamlError(FormatError):
    """The bytes are not YAML that Kubernetes accepts; `line` counts from 1."""

    def __init__(self, code: str, message: str, path: str = "", hint: str = "", line: int = 0) -> None:
        super().__init__(code, message, path, hint)
        self.line = line

    def __str__(self) -> str:
        return f"line {self.line}: {super().__str__()}" if self.line else super().__str__()


class TomlError(FormatError):
    """A text is not TOML or beyond a limit, or a value cannot be written as TOML."""


class ProtobufError(FormatError):
    """The bytes are not the Kubernetes envelope, or hold a damaged message."""


class StreamError(FormatError):
    """The bytes are not CoreOS stream metadata, or more of it than a release has."""


class SelectorError(FormatError):
    """A label or field selector cannot be understood."""


class TokenError(FormatError):
    """A continue token was not made by this server, or is damaged."""


class QuantityError(FormatError):
    """A quantity or an int-or-percent cannot be understood."""


class DurationError(FormatError):
    """A duration cannot be understood."""


class DataUrlError(FormatError):
    """A data URL cannot be read, decompressed or verified."""


class UserDataError(FormatError):
    """User-data says something that a machine does not take from its host; `path` is a JSON pointer (RFC 6901)."""


class PatchError(FormatError):
    """A patch cannot be applied; `status` is the HTTP code for it."""

    status: ClassVar[int] = 422


class MalformedPatch(PatchError):
    """The patch itself is wrong."""

    status = 400


class PatchTooLarge(PatchError):
    """The patch asks for more operations or growth than is allowed."""

    status = 413


class PatchFailed(PatchError):
    """The patch is well formed but does not fit the object."""

    status = 422


class RegexpError(FormatError):
    """A regular expression cannot be read, or is beyond a limit."""


class TemplateError(FormatError):
    """A template cannot be read; `at` is the place in its text, and the message begins with line and column."""

    def __init__(self, code: str, message: str, path: str = "", hint: str = "", at: int = 0) -> None:
        super().__init__(code, message, path, hint)
        self.at = at


class ImageError(FormatError):
    """The bytes are not the image or firmware store that was asked for."""

    def __init__(self, code: str, message: str, path: str = "", hint: str = "") -> None:
        super().__init__(
            code, message, path, hint or "Give the file as it was built; it may be cut off or of another kind."
        )


class ImageReferenceError(FormatError):
    """The text is not the name of a container image."""


class OsStatusError(FormatError):
    """What a program that deploys operating systems printed cannot be read."""


class Luks2Error(FormatError):
    """The bytes are not a LUKS2 header, or say something that is not read here; `path` is a path in its JSON."""

    def __init__(self, code: str, message: str, path: str = "", hint: str = "") -> None:
        super().__init__(
            code, message, path, hint or "The disk was changed or is another one: see what its host attached."
        )
