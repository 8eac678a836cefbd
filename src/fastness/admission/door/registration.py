"""Keeps the ValidatingWebhookConfiguration as it must be: entries, CA bundle and path of the moment.

Level-triggered: it looks whenever the doors' authority or the configuration changes, and at an interval. Somebody who deletes or
edits the configuration to get a pod past it finds it restored within moments. Several replicas write the same and do no harm; if
somebody else keeps writing something different (a replica that was given another address), it is told and the pace slows down.

The configuration also has the path on which reviews count as those of the API server. An API server shows a webhook no credential
of its own, so whoever reaches the port could ask for a review in anybody's name. That is harmless where only an answer comes of
it. Where the person goes on the record it is not: such reviews come on a path that is derived from the webhook's key of the
record and stands in the configuration alone, which administrators read. A review on another path is answered, and nothing is
written down.
"""

from __future__ import annotations

import asyncio
from collections import deque
from contextlib import ExitStack
from typing import Any, Final

from fastness.admission.door.configuration import NAME, RESOURCE, REVIEW_PATH, Reachable, configuration
from fastness.crypto.digests import sha256
from fastness.keys.certificates import DoorCertificates
from fastness.keys.errors import DamagedKeys
from fastness.kinds.objects import object_name
from fastness.kube.errors import ApiError
from fastness.kube.informers import Informer
from fastness.kube.port import Cluster, PatchType, WriteOptions
from fastness.observe import logs
from fastness.record.live.door_keys import DoorSigner
from fastness.runtime.clock import Clock
from fastness.runtime.tasks import news_or_time

LOOK_SECONDS: Final = 300.0
RETRY_SECONDS: Final = 5.0
WRITES_A_MINUTE: Final = 6
_AS: Final = WriteOptions(manager="fastness-webhook", force=True)
_CONTEXT: Final = b"fastness.dev/webhook-path/v1\n"
_PATHS_IN_USE: Final = 2  # the API server uses the old path until it has seen the new configuration
_log = logs.logger("webhook")


class RecordedPath:
    """The path of the moment, and the one before it."""

    def __init__(self, signer: DoorSigner) -> None:
        self._signer = signer
        self._paths: list[str] = []

    async def current(self) -> str:
        """The path for the configuration; changes with the key. Raises DamagedKeys, ApiError."""
        # Ed25519 signatures are deterministic: all replicas, which share the key, find the same path.
        path = f"{REVIEW_PATH}/{sha256((await self._signer.current()).sign(_CONTEXT)).hex}"
        if path not in self._paths:
            self._paths = [path, *self._paths][:_PATHS_IN_USE]
        return path

    def counts(self, path: str) -> bool:
        """Whether a review on this path comes from an API server that has our configuration."""
        return path in self._paths


class Registration:
    """Writes the configuration where it differs."""

    def __init__(
        self,
        cluster: Cluster,
        registered: Informer,
        certificates: DoorCertificates,
        where: Reachable,
        clock: Clock,
        path: RecordedPath,
    ) -> None:
        self._cluster = cluster
        self._registered = registered
        self._certificates = certificates
        self._where = where
        self._path = path
        self._clock = clock
        self._news = asyncio.Event()
        self._written: deque[float] = deque(maxlen=WRITES_A_MINUTE)

    async def settle(self) -> bool:
        """Write the configuration if it is not right; whether it was written. Raises ApiError, DamagedKeys."""
        desired = configuration(self._where, self._certificates.current.doors.bundle, await self._path.current())
        stored = self._registered.get("", NAME)
        if stored is not None and stored.get("webhooks") == desired["webhooks"]:
            return False
        await self._cluster.patch(RESOURCE, NAME, desired, PatchType.APPLY, "", _AS)
        return True

    async def run(self) -> None:
        """Follow authority and configuration until cancelled."""

        def tell_of_ours(old: Any, new: Any) -> None:
            if object_name(new or old).name in (NAME, self._certificates.name):
                self._news.set()

        with ExitStack() as stack:
            for informer in (self._registered, self._certificates.informer):
                stack.callback(informer.subscribe(tell_of_ours))
            while True:
                self._news.clear()
                pause = LOOK_SECONDS
                try:
                    if await self.settle():
                        _log.info("webhook.registered", name=NAME)
                        await self._pace()
                except (ApiError, DamagedKeys) as error:
                    _log.warning("webhook.unregistered", error=error, hint=error.hint)
                    pause = RETRY_SECONDS
                await news_or_time(self._news, self._clock, pause)

    async def _pace(self) -> None:
        """Let no quarrel about the configuration become a storm of writes."""
        now = self._clock.monotonic()
        self._written.append(now)
        if len(self._written) == WRITES_A_MINUTE and now - self._written[0] < 60:
            _log.warning("webhook.contested", name=NAME, writes=WRITES_A_MINUTE)
            await self._clock.sleep(60 - (now - self._written[0]))
