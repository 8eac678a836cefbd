"""The bytes that machines get, made once per (pool, rendered config, version) and kept.

Nothing is rendered or encoded per request. A reply is good for the object that it was made of: when the pool hands out another
config, or somebody writes to the one it has, the next request makes a new reply in its place. How many are kept is bounded; the
one that was asked for longest ago goes first. Nothing that an informer holds is changed.

`RenderedConfigs` is all of it as a ResourceSource: whoever serves machines has to bring a Grant.
"""

from __future__ import annotations

import hashlib
from typing import NamedTuple, Protocol

from fastness.http.refusals import Refusal
from fastness.kinds.kind import JsonObject
from fastness.kinds.objects import object_name
from fastness.kinds.trusted_execution.subject import Basis, Grant
from fastness.kube.informers import Informer
from fastness.machineconfig.serving import (
    CannotServe,
    UnsupportedAccept,
    configuration_of,
    document,
    negotiate,
    rendered_object,
)
from fastness.protocol.kbs_path import ResourcePath, is_pool_config
from fastness.protocol.node_trust import NodeTrust
from fastness.release.configs import Config
from fastness.release.source import Query, require_for
from fastness.runtime.cache import BoundedCache

MAX_REPLIES = 512
# Bounded by weight as well: 512 configs of megabytes would be more memory than the process has.
MAX_KEPT_BYTES = 256 * 1024 * 1024


class Reply(NamedTuple):
    """A config as it goes out, its name, the object that it was made of, and what else is in it."""

    body: bytes
    etag: bytes
    config: str
    source: JsonObject
    trust: NodeTrust | None = None
    kubeconfig: str = ""


class NoConfig(Exception):
    """The pool is not known, or has nothing rendered yet."""

    def __init__(self, *, pool_exists: bool) -> None:
        super().__init__("the pool has no rendered config yet" if pool_exists else "no such pool")
        self.pool_exists = pool_exists


class BesideConfigs(Protocol):
    """What machines that boot get beside their configuration."""

    def __call__(self, pool: str = "") -> NodeTrust | None:
        """As it is now; for a machine of a pool that has proved itself, with what that pool alone gets."""


def no_trust(pool: str = "") -> NodeTrust | None:
    """Nothing beside the configuration."""
    return None


class Replies:
    """Makes replies and keeps them."""

    def __init__(self, pools: Informer, configs: Informer, trust: BesideConfigs = no_trust) -> None:
        self._pools = pools
        self._configs = configs
        self._trust = trust
        self._kept = BoundedCache[tuple[str, str], Reply](
            MAX_REPLIES, heaviest=MAX_KEPT_BYTES, weigh=lambda reply: len(reply.body)
        )

    def of(self, pool: str, version: str, kubeconfig: str = "", *, proven: bool = False) -> Reply:
        """The reply for a pool in an Ignition version, with a kubeconfig or without; raises NoConfig, CannotServe.

        `proven`: with what machines of the pool get that have proved themselves, and nobody else.
        """
        pool_object = self._pools.get("", pool)
        if pool_object is None:
            raise NoConfig(pool_exists=False)
        name = configuration_of(pool_object)
        config = self._configs.get("", name) if name else None
        if config is None:
            raise NoConfig(pool_exists=True)
        form = f"{version}{' kubeconfig' if kubeconfig else ''}{' proven' if proven else ''}"
        key, trust = (pool, form), self._trust(pool) if proven else self._trust()
        reply = self._kept.use(key)
        # An informer never changes an object, it puts another in its place: the same object has the same content.
        if reply is None or reply.source is not config or reply.trust is not trust or reply.kubeconfig != kubeconfig:
            return self._keep(key, document(config, version, kubeconfig, trust), config, trust, kubeconfig)
        return reply

    def rendered(self, name: str) -> Reply | None:
        """The rendered config of this name as the object that agents read; None when there is none."""
        config = self._configs.get("", name)
        if config is None:
            return None
        key = ("", name)
        reply = self._kept.use(key)
        if reply is None or reply.source is not config:
            return self._keep(key, rendered_object(config), config)
        return reply

    def _keep(
        self,
        key: tuple[str, str],
        body: bytes,
        config: JsonObject,
        trust: NodeTrust | None = None,
        kubeconfig: str = "",
    ) -> Reply:
        etag = b'"%b"' % hashlib.sha256(body).hexdigest()[:32].encode()
        reply = Reply(body, etag, object_name(config).name, config, trust, kubeconfig)
        self._kept.put(key, reply)
        return reply


class RenderedConfigs:
    """The replies of this process, each for a Grant."""

    def __init__(self, replies: Replies) -> None:
        self._replies = replies

    def serves(self, path: ResourcePath) -> bool:
        """Whether a path is the configuration of a pool."""
        return is_pool_config(path)

    async def read(self, grant: Grant, path: ResourcePath, query: Query) -> Config:
        """The configuration that Ignition `accept`s, or the `rendered` one of that name; raises Refusal.

        With a `kubeconfig` the first is the one for a machine that joins by it.
        """
        require_for(grant, path)
        rendered = query.get("rendered", "")
        if rendered:
            reply = self._replies.rendered(rendered)
            if reply is None:
                raise Refusal(503, "not-rendered", "the rendered config is not there yet")
        else:
            proven = grant.basis is Basis.VERDICT
            reply = self._of_pool(path.type, query.get("accept", ""), query.get("kubeconfig", ""), proven=proven)
        return Config(reply.body, reply.etag, reply.config)

    def _of_pool(self, pool: str, accept: str, kubeconfig: str, *, proven: bool) -> Reply:
        try:
            return self._replies.of(pool, negotiate(accept), kubeconfig, proven=proven)
        except (UnsupportedAccept, CannotServe) as error:
            raise Refusal(400, error.code, error.message) from error
        except NoConfig as error:
            # Ignition ends at the first 4xx: a pool that nobody has rendered yet must be a state that passes.
            if error.pool_exists:
                raise Refusal(503, "not-rendered", "the pool has no rendered config yet") from error
            raise Refusal(404, "unknown-pool", "there is no such pool") from error
