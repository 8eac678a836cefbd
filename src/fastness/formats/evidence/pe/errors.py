"""The one error of the parsers of boot images and firmware variables."""

from __future__ import annotations

from fastness.formats.errors import FormatError


class ImageError(FormatError):
    """The bytes are not the image or firmware store that was asked for."""

    def __init__(self, code: str, message: str, path: str = "", hint: str = "") -> None:
        super().__init__(
            code, message, path, hint or "Give the file as it was built; it may be cut off or of another kind."
        )
