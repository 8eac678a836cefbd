"""What doors hand out: resources that only a Grant opens.

    content = await read_resource(sources, grant, path, query)      # the first source that serves the path and has it

A source is a place where resources lie or are made: sealed secrets, Secrets that a KbsConfig names, configurations, bootstrap
tokens. The broker has a list of them and knows nothing else of what it hands out; gate and config server read configurations from
one. There is no way to read that does not begin with a Grant, and `release.authorise` alone makes those.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Protocol, TypeVar

from fastness.crypto.secret import SecretBytes
from fastness.kinds.trusted_execution.subject import Grant
from fastness.protocol.kbs_path import ResourcePath

Content_co = TypeVar("Content_co", covariant=True)
Query = Mapping[str, str]


class ResourceSource(Protocol[Content_co]):
    """A place where resources lie."""

    def serves(self, path: ResourcePath) -> bool:
        """Whether resources of this path may lie here."""

    async def read(self, grant: Grant, path: ResourcePath, query: Query) -> Content_co:
        """The resource that the grant is for; raises Refusal, ApiError, CryptoError."""


@dataclass(frozen=True, slots=True)
class Content:
    """A resource: the bytes, and what the record shall say of them beside the grant, never a secret.

    Of a configuration, `rendered` is the name by which a running machine asked for it: it must be sent there still when the bytes
    leave. `what` is the word of the record; `note` is written down elsewhere when the release is on the record.
    """

    value: SecretBytes
    facts: Mapping[str, str] = field(default_factory=dict)
    is_config: bool = False
    rendered: str = ""
    what: str = "release"
    note: Callable[[], Awaitable[None]] | None = None


BrokerSource = ResourceSource[Content | None]


async def read_resource(
    sources: Sequence[BrokerSource], grant: Grant, path: ResourcePath, query: Query
) -> Content | None:
    """What the first source has that serves the path, None when none has it; raises Refusal, ApiError, CryptoError."""
    # Before any source is asked: a path that changed between grant and read would open what nobody decided about.
    require_for(grant, path)
    for source in sources:
        content = await source.read(grant, path, query) if source.serves(path) else None
        if content is not None:
            return content
    return None


def require_for(grant: Grant, path: ResourcePath) -> None:
    """Go on only with the very resource that was granted; raises ValueError, which is a defect of the door."""
    if grant.resource != str(path):
        raise ValueError(f"a grant for {grant.resource} opens nothing else")
