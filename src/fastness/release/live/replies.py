"""The bytes that machines get, made once per (pool, rendered config, version) and kept.

Nothing is rendered or encoded per request. A reply is good for the object that it was made of: when the pool hands out another
config, or somebody writes to the one it has, the next request makes a new reply in its place. How many are kept is bounded; the
one that was asked for longest ago goes first. Nothing that an informer holds is changed.
"""

from __future__ import annotations

import hashlib
from typing import NamedTuple

from fastness.kinds.kind import JsonObject
from fastness.kinds.objects import object_name
from fastness.kube.informers import Informer
from fastness.machineconfig.serving import configuration_of, document, rendered_object
from fastness.runtime.cache import BoundedCache

MAX_REPLIES = 512
MAX_KEPT_BYTES = 256 * 1024 * 1024


class Reply(NamedTuple):
    """A config as it goes out, its name, and the object that it was made of."""

    body: bytes
    etag: bytes
    config: str
    source: JsonObject


class NoConfig(Exception):
    """The pool is not known, or has nothing rendered yet."""

    def __init__(self, *, known: bool) -> None:
        super().__init__("the pool has no rendered config yet" if known else "no such pool")
        self.known = known


class Replies:
    """Makes replies and keeps them."""

    def __init__(self, pools: Informer, configs: Informer) -> None:
        self._pools = pools
        self._configs = configs
        self._kept = BoundedCache[tuple[str, str], Reply](
            MAX_REPLIES, heaviest=MAX_KEPT_BYTES, weigh=lambda reply: len(reply.body)
        )

    def of(self, pool: str, version: str) -> Reply:
        """The reply for a pool in an Ignition version; raises NoConfig, CannotServe."""
        found = self._pools.get("", pool)
        if found is None:
            raise NoConfig(known=False)
        name = configuration_of(found)
        config = self._configs.get("", name) if name else None
        if config is None:
            raise NoConfig(known=True)
        key = (pool, version)
        kept = self._kept.use(key)
        # An informer never changes an object, it puts another in its place: the same object has the same content.
        if kept is None or kept.source is not config:
            return self._keep(key, document(config, version), config)
        return kept

    def rendered(self, name: str) -> Reply | None:
        """The rendered config of this name as the object that agents read; None when there is none."""
        config = self._configs.get("", name)
        if config is None:
            return None
        key = ("", name)
        kept = self._kept.use(key)
        if kept is None or kept.source is not config:
            return self._keep(key, rendered_object(config), config)
        return kept

    def _keep(self, key: tuple[str, str], body: bytes, config: JsonObject) -> Reply:
        reply = Reply(body, b'"%b"' % hashlib.sha256(body).hexdigest()[:32].encode(), object_name(config).name, config)
        self._kept.put(key, reply)
        return reply
