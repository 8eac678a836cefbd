"""How images are named in this group.

A *tag form* is where something will be pushed, a *digest form* is what was pushed: only the second says exactly which bytes.
The host needs a dot, so that a short name never resolves through somebody's search list.
"""

from __future__ import annotations

from fastness.kinds import schema as s

_REPOSITORY = r"^([a-zA-Z0-9-]+\.)+[a-zA-Z0-9-]+(:[0-9]{2,5})?(/[a-zA-Z0-9_.-]{1,61})*/[a-zA-Z0-9_.-]+"
TAGGED = _REPOSITORY + r":[a-zA-Z0-9_][a-zA-Z0-9._-]{0,127}$"
DIGESTED = _REPOSITORY + r"@sha256:[a-f0-9]{64}$"
LONGEST = 447


def tagged(description: str) -> s.Fragment:
    """A pull specification with a tag."""
    return s.string(description, pattern=TAGGED, minLength=1, maxLength=LONGEST)


def digested(description: str) -> s.Fragment:
    """A pull specification with a digest."""
    return s.string(description, pattern=DIGESTED, minLength=1, maxLength=LONGEST)
