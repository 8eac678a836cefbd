"""Issues certificates to the doors: each role's into that role's own Secret, and nobody else holds the keys of the authorities.

    doors-ca, internal-ca       renewed with overlap; a successor issues when the images know it
    <role>-certificates         whatever is due: dates, another generation, more names, a clock that was ahead

A door says in its Secret by which names it is dialled (`keys.certificates`); its role follows from the Secret, which only its
own account and this loop write. Dates are looked at every few seconds: no news tells of a clock that was set.
In `fastness up` this loop runs before the doors open, everywhere else it is one of the controllers.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterable, Sequence
from contextlib import asynccontextmanager
from typing import Final

from fastness.attestation.live.successor_guard import SuccessorGuard
from fastness.keys.authorities import SECRETS, AuthoritySecret, LiveAuthority, named, nobody_objects
from fastness.keys.certificates import content, names_in, read, renewed, secret_name
from fastness.keys.doors import DOORS
from fastness.keys.internal import INTERNAL
from fastness.kinds.fastness_dev import NAMESPACE
from fastness.kinds.kind import Resource
from fastness.kinds.objects import ObjectName, metadata, object_name
from fastness.kinds.trusted_execution.approvals import APPROVED_IMAGE
from fastness.kube.controllers.controller import Done, Object, Source
from fastness.kube.controllers.fenced import FencedCluster
from fastness.kube.controllers.runner import Runner
from fastness.kube.errors import Conflict, NotFound
from fastness.kube.informers import Informers
from fastness.kube.port import Cluster, PatchType, WriteOptions
from fastness.observe import logs, metrics
from fastness.protocol.door import DoorRole
from fastness.runtime.clock import Clock, Entropy
from fastness.runtime.tasks import background

FAMILY: Final = "door-certificates"
AUTHORITY_SECONDS: Final = 600.0
DATES_SECONDS: Final = 15.0
_AUTHORITIES: Final = {ObjectName(NAMESPACE, kind.name): kind for kind in (DOORS, INTERNAL)}
_ROLES: Final = {ObjectName(NAMESPACE, secret_name(role)): role for role in DoorRole}
_AS: Final = WriteOptions(manager="door-certificates")
_log = logs.logger("rotation")


def _if_of_a_role(secret: Object) -> Iterable[ObjectName]:
    return (object_name(secret),) if object_name(secret) in _ROLES else ()


def _every_if_authority(secret: Object) -> Iterable[ObjectName]:
    return (*_AUTHORITIES, *_ROLES) if object_name(secret) in _AUTHORITIES else ()


def _doors_authority(_: Object) -> Iterable[ObjectName]:
    return (ObjectName(NAMESPACE, DOORS.name),)


class DoorIssuer:
    """Keeps authorities and certificates of doors good."""

    name = FAMILY
    writes: Sequence[Resource] = (SECRETS,)
    always: Sequence[ObjectName] = tuple(_AUTHORITIES)
    # Each Secret by its name: the account of the controllers reads no other ones of that namespace.
    sources: Sequence[Source] = (
        *(Source(SECRETS, keys=_if_of_a_role, scope=named(key.name)) for key in _ROLES),
        *(Source(SECRETS, keys=_every_if_authority, scope=named(key.name)) for key in _AUTHORITIES),
        Source(APPROVED_IMAGE.resource, keys=_doors_authority),
    )

    def __init__(self, cluster: Cluster, informers: Informers, clock: Clock, entropy: Entropy) -> None:
        self._cluster = cluster
        self._informers = informers
        self._clock = clock
        self._entropy = entropy
        self._authorities: dict[str, LiveAuthority] = {}
        self._images_know = SuccessorGuard(informers.of(APPROVED_IMAGE.resource))

    async def reconcile(self, key: ObjectName) -> Done:
        """One authority, or the certificates of one role; raises DamagedAuthority, ApiError."""
        if key in _AUTHORITIES:
            await self._renew(_AUTHORITIES[key])
            return Done(again_after=AUTHORITY_SECONDS)
        await self._issue(_ROLES[key])
        return Done(again_after=DATES_SECONDS)

    async def _authority(self, kind: AuthoritySecret) -> LiveAuthority:
        live = self._authorities.get(kind.name)
        if live is None:
            live = await LiveAuthority.open(kind, self._cluster, self._informers, self._clock, self._entropy)
            self._authorities[kind.name] = live
        return live

    async def _renew(self, kind: AuthoritySecret) -> None:
        live = await self._authority(kind)
        await live.renew(self._cluster, self._images_know if kind is DOORS else nobody_objects)
        metrics.CERTIFICATE_EXPIRY.labels(kind.name).set(live.current.issuing.certificate.not_after.timestamp())

    async def _issue(self, role: DoorRole) -> None:
        """Issue what is due to a role whose doors have asked; whoever changed the Secret meanwhile brings us back."""
        name = secret_name(role)
        secret = self._informers.of(SECRETS, named(name)).get(NAMESPACE, name)
        names = names_in(secret) if secret is not None else ()
        if secret is None or not names:
            return
        doors, internal = [(await self._authority(kind)).current for kind in (DOORS, INTERNAL)]
        held = read(secret)
        due = renewed(role, names, held, doors, internal, self._clock.now())
        if held is not None and content(due) == content(held):
            return
        patch = {"metadata": {"resourceVersion": metadata(secret)["resourceVersion"]}, "data": content(due)}
        try:
            await self._cluster.patch(SECRETS, name, patch, PatchType.MERGE, NAMESPACE, _AS)
        except (Conflict, NotFound):
            return
        _log.info("pki.renewed", what=name)


@asynccontextmanager
async def issuing(cluster: Cluster, informers: Informers, clock: Clock, entropy: Entropy) -> AsyncIterator[None]:
    """The issuer alone, for the time of the block: for doors that open before the other controllers run."""
    fenced = FencedCluster(cluster, DoorIssuer.name, DoorIssuer.writes)
    runner = Runner([DoorIssuer(fenced, informers, clock, entropy)], informers, clock, entropy)
    async with background(FAMILY, run=runner.run):
        yield
