"""Why an image cannot be measured ahead of time.

OsImageError                code, hint
├── Unpredictable           what a machine would measure depends on more than the image and the variables
├── NotBootable             firmware with these variables would refuse the image
└── BadManifest             a list of measurements cannot be read, or does not add up
"""

from __future__ import annotations

from fastness.runtime.errors import CodedError


class OsImageError(CodedError):
    """Base of the package: a stable `code` and a `hint` for the operator."""

    hint = "See the message."


class Unpredictable(OsImageError):
    """The image is good, and its measurements depend on something that is not in it."""

    hint = "Boot the image once on a trusted machine and approve what it measured."


class NotBootable(OsImageError):
    """Firmware with these variables does not start the image."""

    hint = "Sign the image with a key that the firmware's db holds, or give the variables of the right machine."


class BadManifest(OsImageError):
    """A manifest of measurements is damaged."""

    hint = "Make the manifest again with `fastness measure -o json`."
