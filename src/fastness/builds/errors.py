"""What can go wrong with a build.

BuildError
├── BuildFailed       the Containerfile, or the builder, failed: the same inputs fail again
├── TransferFailed    a registry did not give or take what it should: may be well later
└── NoBuilder         nothing here can build
"""

from __future__ import annotations

from fastness.runtime.errors import FastnessError


class BuildError(FastnessError):
    """A sentence, a stable code, and what to do; `pushing` where the image was built, and nothing but the push is missing."""

    code = "build"
    pushing: bool = False


class BuildFailed(BuildError):
    """The build itself failed."""

    code = "build-failed"

    def __init__(self, message: str, hint: str = "", *, pushing: bool = False) -> None:
        super().__init__(message, hint)
        self.pushing = pushing


class TransferFailed(BuildError):
    """An image was not pulled, pushed or deleted; `absent` where the registry says that it is not there."""

    code = "build-transfer"

    def __init__(self, message: str, hint: str = "", *, absent: bool = False, pushing: bool = False) -> None:
        super().__init__(message, hint)
        self.absent = absent
        self.pushing = pushing


class NoBuilder(BuildError):
    """There is nothing here that builds."""

    code = "no-builder"
