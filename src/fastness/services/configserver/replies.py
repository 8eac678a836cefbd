"""The bytes that machines get, made once per (pool, rendered config, version) and kept.

Nothing is rendered or encoded per request. A reply is thrown away when its rendered config is no longer the one that the
pool hands out; how many are kept is bounded.
"""

from __future__ import annotations

import hashlib
from collections import OrderedDict
from typing import NamedTuple

from fastness.cluster.informers import Informer
from fastness.domain.machineconfig.serving import configuration_of, document
from fastness.model.kind import JsonObject

MAX_REPLIES = 64
MAX_KEPT_BYTES = 256 * 1024 * 1024


class Reply(NamedTuple):
    """A config as it goes out."""

    body: bytes
    etag: bytes
    config: str


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
        self._kept: OrderedDict[tuple[str, str, str], Reply] = OrderedDict()
        self._bytes = 0

    def pool(self, name: str) -> JsonObject | None:
        """The pool, if there is one."""
        return self._pools.get("", name)

    def of(self, pool: str, version: str) -> Reply:
        """The reply for a pool in an Ignition version; raises NoConfig, CannotServe."""
        found = self._pools.get("", pool)
        if found is None:
            raise NoConfig(known=False)
        name = configuration_of(found)
        config = self._configs.get("", name) if name else None
        if config is None:
            raise NoConfig(known=True)
        key = (pool, name, version)
        kept = self._kept.get(key)
        if kept is None:
            kept = self._keep(key, document(config, version))
        return kept

    def _keep(self, key: tuple[str, str, str], body: bytes) -> Reply:
        reply = Reply(body, b'"%b"' % hashlib.sha256(body).hexdigest()[:32].encode(), key[1])
        self._kept[key] = reply
        self._bytes += len(body)
        while len(self._kept) > MAX_REPLIES or (self._bytes > MAX_KEPT_BYTES and len(self._kept) > 1):
            _, dropped = self._kept.popitem(last=False)
            self._bytes -= len(dropped.body)
        return reply
