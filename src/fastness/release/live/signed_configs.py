"""The config server's word: a configuration for one machine, put together and signed where nobody else can sign.

    credential → whose it is → Grant → configuration of the pool, with that machine's overlays → signature

* The credential is what the machine itself showed. It is verified here, whoever forwards it: a gate or a broker that was taken
  over gets configurations of machines that came to it, and no signature for others.
* A token counts when the issuer signed it for this audience, it is live, of this pool, and nothing that it names was revoked. A
  rendered config by name (day two) must be written on its Machine, and so must the overlays that are asked for on top.
  A join ticket counts where attestation is only watched.
* Copies are for a broker that delivers from copies, and only while the cluster says so. They are signed without a machine: the
  broker's seal names it. Overlays are in none of them.
* The signing key is the config server's alone. Its public half is in the image, so it changes with images and not by itself.
"""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime, timedelta
from typing import Final

from fastness.crypto.eddsa import SEED_BYTES, Ed25519Signer
from fastness.crypto.secret import SecretBytes
from fastness.enrolment.live.tickets import TicketCache, TicketProblem
from fastness.http.refusals import Refusal
from fastness.keys.errors import BadToken, NoTokenKeys, TicketUnclear
from fastness.keys.keyrings import KeySecret, LiveKeys, Publication, Ring, RingKey
from fastness.kinds.fastness_dev.cluster import CONFIDENTIAL_CLUSTER
from fastness.kinds.fastness_dev.join_ticket import JOIN_TICKET
from fastness.kinds.fastness_dev.rollout import NODE_OVERLAY
from fastness.kinds.fastness_dev.trust_model import Mode
from fastness.kinds.kind import JsonObject
from fastness.kinds.machineconfiguration import names
from fastness.kinds.trusted_execution.subject import Basis, Grant, ProvenCaller, Subject
from fastness.kube.informers import Informers
from fastness.kube.port import Cluster
from fastness.machineconfig.rollout.nodes import rendered_pool
from fastness.protocol.config_proof import Copied, Served, ServedToNode, Statement, signed
from fastness.protocol.kbs_path import pool_config
from fastness.release.configs import Config, ConfigRequest, PlainConfigs
from fastness.release.ear import proven_caller
from fastness.release.live.join_credentials import JoinCredentials
from fastness.release.live.node_trust import TrustDocuments
from fastness.release.live.overlays import Overlays, recipient
from fastness.release.live.releases import Assignments, grant_here
from fastness.release.live.revocations import MachineRevocations
from fastness.release.live.settings import Settings
from fastness.release.live.tokens import GATE, Revocations, TokenVerifier
from fastness.runtime.clock import Clock, Entropy

# Ten years, because the public half is measured into images: a key that ended by itself would stop machines that nobody touched.
LIFETIME: Final = timedelta(days=3650)
# A slow machine gets its answer in that time; a recorded one is of no use after it, nonce or not.
SIGNATURE_LIFETIME: Final = timedelta(minutes=5)
# A copy outlives the config server for a while; the broker asks for a new one long before.
SHORTEST_COPY, LONGEST_COPY, INTERVALS = timedelta(hours=1), timedelta(hours=24), 6
_OTHER_POOL = {"other-pool": ("wrong-pool", "the machine of this token belongs to another pool")}


def _made(entropy: Entropy) -> SecretBytes:
    return SecretBytes(entropy.token(SEED_BYTES))


def _signers(ring: Ring) -> tuple[Ed25519Signer, ...]:
    return tuple(Ed25519Signer(key.material) for key in ring)


def _jwks(ring: Sequence[RingKey]) -> JsonObject:
    return {"keys": [signer.verifier.jwk() for signer in _signers(tuple(ring))]}


CONFIG_JWKS: Final = Publication("config-public-keys", _jwks)
CONFIG_KEYS: Final = KeySecret("config-signing-keys", LIFETIME, _made, CONFIG_JWKS)
STUB_SECONDS: Final = timedelta(minutes=1)  # it was looked at for this request alone


class ConfigSigner:
    """Signs configurations with the key of now."""

    def __init__(self, keys: LiveKeys[tuple[Ed25519Signer, ...]]) -> None:
        self._keys = keys

    @classmethod
    async def open(cls, cluster: Cluster, informers: Informers, clock: Clock, entropy: Entropy) -> ConfigSigner:
        """The signer of this cluster, its key made if there is none; raises DamagedKeys, ApiError."""
        return cls(await LiveKeys.open(CONFIG_KEYS, cluster, informers, clock, entropy, _signers))

    def sign(self, served: Served | ServedToNode, now: datetime) -> str:
        """The signature of an answer."""
        return self.sign_until(served, now + SIGNATURE_LIFETIME)

    def sign_until(self, statement: Statement, until: datetime) -> str:
        """The signature of a statement that counts until then."""
        return signed(statement, self._keys.current[0], until)

    def jwks(self) -> list[JsonObject]:
        """The public halves, for the image's trust.json."""
        return [dict(signer.verifier.jwk()) for signer in self._keys.current]


class Forwarded:
    """Authorises the machine whose credential was forwarded."""

    def __init__(
        self,
        tokens: TokenVerifier,
        revocations: Revocations,
        settings: Settings,
        tickets: TicketCache,
        assignments: Assignments,
        clock: Clock,
    ) -> None:
        self._tokens = tokens
        self._revocations = revocations
        self._settings = settings
        self._tickets = tickets
        self._assignments = assignments
        self._clock = clock

    async def grant(self, request: ConfigRequest) -> Grant:
        """Leave for the machine that showed the credential to have what is asked for; raises Refusal, ApiError."""
        scheme, _, credential = request.credential.partition(" ")
        # Asked here again although the gate asked: a gate that was taken over must not be able to turn enforcement off
        # (decision 27).
        watching = self._settings.current.mode is Mode.AUDIT
        booting = not request.rendered and not request.trust
        if scheme.lower() == "bearer" and watching and booting:
            caller, revoked = await self._by_ticket(credential.strip(), request.pool), False
        else:
            caller = self._by_token(scheme, credential.strip())
            revoked = self._revocations.revoked(caller.claims)
        path, rules = request.path, self._settings.current.rules
        grant = grant_here(caller, path, rules, self._clock.now(), revoked=revoked, words=_OTHER_POOL)
        if request.rendered:
            await self._assignments.check(caller.subject, request.rendered, caller.verdict)
        return grant

    def _by_token(self, scheme: str, token: str) -> ProvenCaller:
        if scheme.lower() != "dpop":
            raise Refusal(401, "token-required", "forward the token of the machine")
        try:
            # Signature and time alone: the proof of possession was made to the gate, for its URL, and cannot be made to us.
            claims = self._tokens.verify(token, GATE)
        except NoTokenKeys as error:
            raise Refusal(503, error.code, error.message) from error
        except BadToken as error:
            raise Refusal(401, error.code, error.message) from error
        caller = proven_caller(claims)
        if caller is None:
            raise Refusal(403, "wrong-pool", "this token names no machine of a pool")
        return caller

    async def _by_ticket(self, text: str, pool: str) -> ProvenCaller:
        try:
            ticket = self._tickets.cached(text, pool)
            # A ticket of a moment ago may not be in the cache; the API is asked once before a machine is sent away.
            if ticket.problem is TicketProblem.UNKNOWN:
                ticket = await self._tickets.look_up(text, pool)
        except TicketUnclear as unclear:
            raise Refusal(503, unclear.code, unclear.message) from unclear
        if ticket.problem is TicketProblem.WRONG_POOL:
            raise Refusal(403, "wrong-pool", "this ticket is for another pool")
        if not ticket.good:
            raise Refusal(401, "ticket-required", "show a join ticket that is good for this pool")
        subject = Subject("", f"ticket:{ticket.name}", f"ticket:{ticket.name}", pool)
        return ProvenCaller(subject, "", {}, self._clock.now() + self._settings.current.token_lifetime, Basis.AUDIT)


class ServedConfigs:
    """Configurations that the config server signs."""

    def __init__(
        self,
        plain: PlainConfigs,
        trust: PlainConfigs,
        forwarded: Forwarded,
        overlays: Overlays,
        signer: ConfigSigner,
        settings: Settings,
        clock: Clock,
        credentials: JoinCredentials | None = None,
    ) -> None:
        self.plain = plain
        self._trust = trust
        self._credentials = credentials
        self._forwarded = forwarded
        self._overlays = overlays
        self.signer = signer
        self._settings = settings
        self._clock = clock

    @classmethod
    async def open(
        cls,
        cluster: Cluster,
        informers: Informers,
        clock: Clock,
        entropy: Entropy,
        plain: PlainConfigs,
        trust: TrustDocuments | None = None,
        credentials: JoinCredentials | None = None,
    ) -> ServedConfigs:
        """With the signing key of this cluster and caches that know what is there; raises DamagedKeys, ApiError."""
        confidential, overlays = informers.of(CONFIDENTIAL_CLUSTER.resource), informers.of(NODE_OVERLAY.resource)
        tickets, revocations = informers.of(JOIN_TICKET.resource), MachineRevocations(cluster, informers, clock)
        for informer in (confidential, overlays, tickets):
            await informer.synced()
        await revocations.synced()
        settings = Settings(confidential)
        forwarded = Forwarded(
            await TokenVerifier.following(informers, clock), revocations, settings,
            TicketCache(cluster, tickets, clock), Assignments(cluster), clock,
        )  # fmt: skip
        signer = await ConfigSigner.open(cluster, informers, clock, entropy)
        trust = trust or await TrustDocuments.following(informers)
        return cls(plain, trust, forwarded, Overlays(overlays), signer, settings, clock, credentials)

    async def fetch(self, request: ConfigRequest) -> Config:
        """The configuration of the machine that showed the credential, signed for its request; raises Refusal, ApiError."""
        grant = await self._forwarded.grant(request)
        if request.trust:
            return self._signed(request, grant, await self._trust.read(grant, request.path, {}))
        rendered, overlay = names.split_target(request.rendered)
        plain = await self.plain.read(grant, request.path, {"accept": request.accept, "rendered": rendered})
        who = recipient(grant.caller.claims)
        config = self._overlays.over_rendered(plain, who, overlay) if rendered else self._overlays.over(plain, who)
        return self._signed(request, grant, config)

    def _signed(self, request: ConfigRequest, grant: Grant, config: Config) -> Config:
        subject = grant.subject
        served = Served(
            config.body, request.pool, subject.machine, request.nonce, request.rendered,
            # A ticket shows no key: what nobody proved is not signed.
            subject.thumbprint if grant.basis is Basis.VERDICT else "", request.trust,
        )  # fmt: skip
        return config._replace(signature=self.signer.sign(served, self._clock.now()))

    async def stub(self, pool: str, accept: str, server_name: str) -> Config:
        """The configuration of a pool for a stub that came under a name, with what it joins by; raises Refusal, ApiError."""
        now, rules = self._clock.now(), self._settings.current.rules
        # Decided here again although the gate decided: one that was taken over gets no pool that was not opened to stubs.
        caller = ProvenCaller(Subject("", server_name, server_name, pool), "", {}, now + STUB_SECONDS, Basis.STUB)
        grant, path = grant_here(caller, pool_config(pool), rules, now), pool_config(pool)
        if self._credentials is None:
            return await self.plain.read(grant, path, {"accept": accept})
        query = {"accept": accept, "kubeconfig": self._credentials.kubeconfig()}
        config = await self.plain.read(grant, path, query)
        return config._replace(body=await self._credentials.filled(config.body, pool, stub=server_name))

    async def copy(self, pool: str, accept: str, rendered: str = "") -> Config:
        """The configuration of a pool, or a rendered config, for the broker to keep; raises Refusal."""
        now, demands = self._clock.now(), self._settings.current
        # A copy that is renewed on change only should outlive an outage; one on a schedule is not served for long anyway.
        scheduled = min(max(SHORTEST_COPY, INTERVALS * demands.delivery.interval), LONGEST_COPY)
        lifetime = scheduled if demands.delivery.sync == "Scheduled" else LONGEST_COPY
        until = (now + lifetime).replace(microsecond=0)
        broker = ProvenCaller(Subject("", "broker", "broker", pool), "", {}, until, Basis.COPY)
        grant = grant_here(broker, pool_config(pool), demands.rules, now)
        if rendered and rendered_pool(rendered) != pool:
            # Or a broker that was taken over has one pool's files signed as another's, and hands them to machines of that one.
            raise Refusal(403, "wrong-pool", "this rendered config is of another pool")
        plain = await self.plain.read(grant, pool_config(pool), {"accept": accept, "rendered": rendered})
        signature = self.signer.sign_until(Copied(plain.body, pool, plain.name), until)
        return plain._replace(signature=signature, until=until)
