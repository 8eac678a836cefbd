"""Why an image cannot be measured ahead of time.

OsImageError                code, hint
├── Unpredictable           what a machine would measure depends on more than the image and the variables
├── NotBootable             firmware with these variables would refuse the image
└── BadManifest             a list of measurements cannot be read, or does not add up
"""

from __future__ import annotations

from typing import ClassVar


class OsImageError(Exception):
    """Base of the package: a stable `code` and a `hint` for the operator."""

    default_hint: ClassVar[str] = "See the message."

    def __init__(self, code: str, message: str, hint: str = "") -> None:
        super().__init__(message)
        self.code = code
        self.message = message
        self.hint = hint or self.default_hint


class Unpredictable(OsImageError):
    """The image is good, and its measurements depend on something that is not in it."""

    default_hint = "Boot the image once on a trusted machine and approve what it measured."


class NotBootable(OsImageError):
    """Firmware with these variables does not start the image."""

    default_hint = "Sign the image with a key that the firmware's db holds, or give the variables of the right machine."


class BadManifest(OsImageError):
    """A manifest of measurements is damaged."""

    default_hint = "Make the manifest again with `fastness measure -o json`."
