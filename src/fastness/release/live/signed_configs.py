"""The config server's word: a configuration for one machine, put together and signed where nobody else can sign.

    credential → whose it is → configuration of the pool, with that machine's overlays → signature

* The credential is what the machine itself showed. It is verified here, whoever forwards it: a gate or a broker that was taken
  over gets configurations of machines that came to it, and no signature for others.
* A token counts when the issuer signed it for this audience, it is live, of this pool, and nothing that it names was revoked. A
  rendered config by name (day two) must be written on its Machine. A join ticket counts where attestation is only watched.
* Copies are for a broker that delivers from copies, and only while the cluster says so. They are signed without a machine: the
  broker's seal names it. Overlays are in none of them.
"""

from __future__ import annotations

from datetime import timedelta

from fastness.enrolment.live.ticket_cache import TicketCache
from fastness.enrolment.live.tickets import TicketProblem
from fastness.http.refusals import Refusal
from fastness.keys.errors import BadToken, NoTokenKeys, TicketUnclear
from fastness.kinds.fastness_dev.cluster import CONFIDENTIAL_CLUSTER, NAME
from fastness.kinds.fastness_dev.join_ticket import JOIN_TICKET
from fastness.kinds.fastness_dev.rollout import NODE_OVERLAY
from fastness.kinds.fastness_dev.trust_model import Mode, mode_of
from fastness.kinds.trusted_execution.subject import Basis, Subject
from fastness.kube.informers import Informer, Informers
from fastness.kube.port import Cluster
from fastness.machineconfig.rollout.nodes import rendered_pool
from fastness.machineconfig.serving import CannotServe, UnsupportedAccept, negotiate
from fastness.protocol.config_proof import Copied, Served
from fastness.release.authorise import ProvenCaller
from fastness.release.configs import Config, ConfigRequest, PlainConfigs, delivery_of
from fastness.release.ear import standing
from fastness.release.live.assignments import Assignments
from fastness.release.live.overlays import Overlays, recipient
from fastness.release.live.replies import NoConfig, Replies
from fastness.release.live.revocations import MachineRevocations
from fastness.release.live.signer import ConfigSigner
from fastness.release.live.tokens import GATE, Revocations, TokenVerifier
from fastness.runtime.clock import Clock, Entropy

# A copy outlives the config server for a while; the broker asks for a new one long before.
SHORTEST_COPY, LONGEST_COPY, INTERVALS = timedelta(hours=1), timedelta(hours=24), 6


class RenderedConfigs:
    """The replies of this process."""

    def __init__(self, replies: Replies) -> None:
        self._replies = replies

    async def fetch(self, pool: str, accept: str, rendered: str = "") -> Config:
        """The configuration; raises Refusal."""
        if rendered:
            found = self._replies.rendered(rendered)
            if found is None:
                raise Refusal(503, "not-rendered", "the rendered config is not there yet")
            return Config(found.body, found.etag, found.config)
        try:
            reply = self._replies.of(pool, negotiate(accept))
        except UnsupportedAccept as error:
            raise Refusal(400, error.code, error.message) from error
        except NoConfig as error:
            if error.known:
                raise Refusal(503, "not-rendered", "the pool has no rendered config yet") from error
            raise Refusal(404, "unknown-pool", "there is no such pool") from error
        except CannotServe as error:
            raise Refusal(400, error.code, error.message) from error
        return Config(reply.body, reply.etag, reply.config)


class Forwarded:
    """Recognises the machine whose credential was forwarded."""

    def __init__(
        self,
        tokens: TokenVerifier,
        revocations: Revocations,
        confidential: Informer,
        tickets: TicketCache,
        assignments: Assignments,
        clock: Clock,
    ) -> None:
        self._tokens = tokens
        self._revocations = revocations
        self._confidential = confidential
        self._tickets = tickets
        self._assignments = assignments
        self._clock = clock

    async def caller(self, wanted: ConfigRequest) -> ProvenCaller:
        """Who may have what is asked for; raises Refusal, ApiError."""
        scheme, _, shown = wanted.credential.partition(" ")
        watching = mode_of(self._confidential.get("", NAME)) is Mode.AUDIT
        if scheme.lower() == "bearer" and watching and not wanted.rendered:
            return await self._by_ticket(shown.strip(), wanted.pool)
        if scheme.lower() != "dpop":
            raise Refusal(401, "token-required", "forward the token of the machine")
        try:
            claims = self._tokens.verify(shown.strip(), GATE)
        except NoTokenKeys as error:
            raise Refusal(503, error.code, error.message) from error
        except BadToken as error:
            raise Refusal(401, error.code, error.message) from error
        caller = standing(claims)
        if caller is None or caller.subject.pool != wanted.pool:
            raise Refusal(403, "wrong-pool", "the machine of this token belongs to another pool")
        if self._revocations.revoked(claims):
            raise Refusal(403, "revoked", "this machine is no longer trusted", caller.verdict)
        if wanted.rendered:
            await self._assignments.check(caller.subject, wanted.rendered, caller.verdict)
        return caller

    async def _by_ticket(self, ticket: str, pool: str) -> ProvenCaller:
        try:
            found = self._tickets.known(ticket, pool)
            if found.problem is TicketProblem.UNKNOWN:
                found = await self._tickets.asked(ticket, pool)
        except TicketUnclear as unclear:
            raise Refusal(503, unclear.code, unclear.message) from unclear
        if found.problem is TicketProblem.WRONG_POOL:
            raise Refusal(403, "wrong-pool", "this ticket is for another pool")
        if not found.good:
            raise Refusal(401, "ticket-required", "show a join ticket that is good for this pool")
        subject = Subject("", f"ticket:{found.name}", f"ticket:{found.name}", pool)
        return ProvenCaller(subject, "", {}, self._clock.now(), Basis.AUDIT)


class ServedConfigs:
    """Configurations that the config server signs."""

    def __init__(
        self,
        plain: PlainConfigs,
        forwarded: Forwarded,
        overlays: Overlays,
        signer: ConfigSigner,
        confidential: Informer,
        clock: Clock,
    ) -> None:
        self.plain = plain
        self._forwarded = forwarded
        self._overlays = overlays
        self.signer = signer
        self._confidential = confidential
        self._clock = clock

    @classmethod
    async def open(
        cls, cluster: Cluster, informers: Informers, clock: Clock, entropy: Entropy, plain: PlainConfigs
    ) -> ServedConfigs:
        """With the signing key of this cluster and caches that know what is there; raises DamagedKeys, ApiError."""
        confidential, overlays = informers.of(CONFIDENTIAL_CLUSTER.resource), informers.of(NODE_OVERLAY.resource)
        tickets, revocations = informers.of(JOIN_TICKET.resource), MachineRevocations(cluster, informers, clock)
        for informer in (confidential, overlays, tickets):
            await informer.synced()
        await revocations.synced()
        forwarded = Forwarded(
            await TokenVerifier.following(informers, clock), revocations, confidential,
            TicketCache(cluster, tickets, clock), Assignments(cluster), clock,
        )  # fmt: skip
        signer = await ConfigSigner.open(cluster, informers, clock, entropy)
        return cls(plain, forwarded, Overlays(overlays), signer, confidential, clock)

    async def fetch(self, wanted: ConfigRequest) -> Config:
        """The configuration of the machine that showed the credential, signed for its request; raises Refusal, ApiError."""
        caller = await self._forwarded.caller(wanted)
        plain = await self.plain.fetch(wanted.pool, wanted.accept, wanted.rendered)
        # A running machine lays its overlays over a rendered config by itself, as it did when it was installed.
        config = plain if wanted.rendered else self._overlays.over(plain, recipient(caller.claims))
        subject = caller.subject
        served = Served(
            config.body, wanted.pool, subject.machine, wanted.nonce, wanted.rendered,
            subject.thumbprint if caller.basis is Basis.VERDICT else "",
        )  # fmt: skip
        return config._replace(signature=self.signer.sign(served, self._clock.now()))

    async def copy(self, pool: str, accept: str, rendered: str = "") -> Config:
        """The configuration of a pool, or a rendered config, for the broker to keep; raises Refusal."""
        delivery = delivery_of(self._confidential.get("", NAME))
        if not delivery.copies:
            raise Refusal(401, "token-required", "copies are not how configurations are delivered: forward a token")
        if rendered and rendered_pool(rendered) != pool:
            # Or a broker that was taken over has one pool's files signed as another's, and hands them to machines of that one.
            raise Refusal(403, "wrong-pool", "this rendered config is of another pool")
        plain = await self.plain.fetch(pool, accept, rendered)
        # A copy that is renewed on change only should outlive an outage; one on a schedule is not served for long anyway.
        scheduled = min(max(SHORTEST_COPY, INTERVALS * delivery.interval), LONGEST_COPY)
        lifetime = scheduled if delivery.sync == "Scheduled" else LONGEST_COPY
        until = (self._clock.now() + lifetime).replace(microsecond=0)
        signature = self.signer.sign_until(Copied(plain.body, pool, plain.name), until)
        return plain._replace(signature=signature, until=until)
