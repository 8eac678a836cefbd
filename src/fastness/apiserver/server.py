"""The API server as one thing, open for the time of a block.

`open_apiserver` puts the parts together in the order in which they depend on each other: vault key → store → seed → catalog →
access → engine → door. Everything lives in one state directory; leaving the block undoes it in reverse and loses nothing.

    STATE/state.db      objects (secrets sealed)      STATE/pki/        authorities, certificates, token key
    STATE/vault.json    the key that seals            STATE/audit.log   one line per write
"""

from __future__ import annotations

import ssl
from collections import Counter
from collections.abc import AsyncIterator, Callable, Collection
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass, field
from datetime import datetime
from functools import cache
from pathlib import Path

from fastness.apiserver import definitions
from fastness.apiserver.admission.admit import Admission, Question, Recorder
from fastness.apiserver.auth import Authenticator, Authorizer, ClientCertificates, ServiceAccountTokens
from fastness.apiserver.catalog import Catalog
from fastness.apiserver.door.app import ApiDoor
from fastness.apiserver.door.audit import Audit
from fastness.apiserver.door.guard import Guard
from fastness.apiserver.engine import EmbeddedApi
from fastness.apiserver.inventory import Inventory
from fastness.apiserver.local import LocalCluster
from fastness.apiserver.lookups import StoreLookups
from fastness.apiserver.loops.controllers import KubeLoops, kube_loops
from fastness.apiserver.seed import seed
from fastness.apiserver.storable import unreadable
from fastness.apiserver.store import Store, StoreSettings
from fastness.formats import json
from fastness.http.bounds import Bounds
from fastness.http.edge import Edge
from fastness.http.health import Health
from fastness.http.listener import Listener, server_context
from fastness.keys.people import IssuerFollower, PeopleSettings
from fastness.keys.pki import ApiPki, kubeconfig
from fastness.keys.ring_files import ring_file
from fastness.keys.vault import Vault
from fastness.kinds.registry import all_kinds
from fastness.kube.access import User
from fastness.kube.admission_rules import Row
from fastness.kube.port import Cluster
from fastness.observe import logs, metrics
from fastness.runtime.clock import Clock, Entropy, SystemClock, SystemEntropy
from fastness.runtime.tasks import background

ISSUER = "https://kubernetes.default.svc"
_log = logs.logger("server")


@dataclass(frozen=True, slots=True)
class ServerOptions:
    """Where the API lives and listens; `kms` is the command that unwraps its vault key, `people` who says who people are."""

    state: Path
    host: str = "127.0.0.1"
    port: int = 0
    simulated: bool = True
    store: StoreSettings | None = None
    bounds: Bounds = field(default_factory=Bounds)
    kms: tuple[str, ...] = ()
    people: PeopleSettings | None = None


@dataclass(frozen=True, slots=True)
class Product:
    """What whoever opens the server asks of writes beyond what Kubernetes asks itself, and how it looks at nodes.

    Without these the server would let everything pass that only the product refuses, so nobody opens one without.
    """

    rules: tuple[Row, ...]
    lookups: Callable[[Store, Clock, bool], StoreLookups]
    question: Callable[[], Question]
    recorder: Callable[[Cluster, Clock, Entropy], Recorder]


@dataclass(frozen=True, slots=True)
class ApiServer:
    """An open API server. `cluster` acts as the control plane itself; `health` takes the checks of whoever runs beside it.

    `api` is the engine, for tests of the room; everybody else has `cluster` and `acting_as`.
    """

    api: EmbeddedApi
    app: Edge
    cluster: LocalCluster
    pki: ApiPki
    health: Health
    guard: Guard
    vault: Vault
    audit: Audit
    _authenticator: Authenticator
    _listener: Listener
    _tls: ssl.SSLContext
    _host: str

    @property
    def url(self) -> str:
        """Where the API is."""
        host = f"[{self._host}]" if ":" in self._host else self._host
        return f"https://{host}:{self._listener.port}"

    def acting_as(self, user: User) -> Cluster:
        """The cluster for somebody in this process: admission and audit see that user, authorization is not asked."""
        return LocalCluster(self.api, user)

    def controllers(self, unowned: Collection[tuple[str, str]]) -> KubeLoops:
        """What Kubernetes does itself, to be run beside the server; `unowned` are kinds that never go with an owner."""
        bundle = self.pki.bundle.decode()
        return kube_loops(self.cluster, Inventory(self.api), self.api.clock, bundle, unowned, self.pki)

    async def reseal(self) -> int:
        """Seal and tag every row with the present key of the vault; how many there were. Raises StoreError."""
        return await self.api.store.reseal(self.vault.macs)

    def kubeconfig(self) -> bytes:
        """The administrator's kubeconfig."""
        return json.encode(kubeconfig(self.url, self.pki.bundle, self.pki.admin))

    def renew(self, now: datetime) -> set[str]:
        """Renew what is due and use it for new connections; the names of what changed."""
        changed = self.pki.renew(now)
        if "serving" in changed:
            self._tls.load_cert_chain(self.pki.serving_file)
        if "ca" in changed:
            self._tls.load_verify_locations(self.pki.directory / "ca.crt")
            self._authenticator.certificates.replace(self.pki.client_authorities)
        return changed

    def publish_expiry(self) -> None:
        """Say in the metrics when certificates expire."""
        for name, issued in (("ca", self.pki.authority.certificate), ("serving", self.pki.serving.certificate)):
            metrics.CERTIFICATE_EXPIRY.labels(name).set(issued.not_after.timestamp())


@asynccontextmanager
async def open_apiserver(
    options: ServerOptions, product: Product, clock: Clock | None = None, entropy: Entropy | None = None
) -> AsyncIterator[ApiServer]:
    """A server on its state directory, listening; raises StoreError, TrustError, OSError for a port in use."""
    async with AsyncExitStack() as stack:
        yield await _assemble(options, product, clock or SystemClock(), entropy or SystemEntropy(), stack)


@cache
def _builtin_kinds() -> Catalog:
    """What every server serves; a process that opens several compiles the schema of a kind once."""
    return Catalog.build(all_kinds())


async def _assemble(
    options: ServerOptions, product: Product, clock: Clock, entropy: Entropy, stack: AsyncExitStack
) -> ApiServer:
    options.state.mkdir(parents=True, exist_ok=True, mode=0o700)
    # The store before everything that listens: a state that is refused must not be announced as ready, nor answer a request.
    store, vault = await _open_store(options, clock, entropy)
    stack.push_async_callback(_close_store, store)
    stack.enter_context(metrics.refreshed_by(lambda: _publish_store(store)))
    now = clock.now()
    pki = ApiPki.open(options.state / "pki", _hosts(options.host), now, entropy)
    await seed(store, entropy, now, pki.bundle.decode())
    lookups = product.lookups(store, clock, options.simulated)
    authorizer = Authorizer(lookups, lookups)
    lookups.use(authorizer.decide, authorizer.policy)
    tokens = ServiceAccountTokens(pki.token_keys, ISSUER, [ISSUER], lookups)
    people = IssuerFollower(options.people, clock) if options.people is not None else None
    if people is not None:
        await stack.enter_async_context(background("people", keys=people.follow))
    authenticator = Authenticator(ClientCertificates(pki.client_authorities), tokens, people)
    catalog = definitions.current(_builtin_kinds(), store)
    admission = Admission(lookups, product.rules, product.question())
    api = EmbeddedApi(store, catalog, clock, entropy, admission, lookups.rbac_changed)
    admission.record_in(product.recorder(LocalCluster(api), clock, entropy))
    guard = Guard(authenticator, authorizer, tokens, clock, entropy)
    health, audit = _health(store), Audit(clock, options.state / "audit.log")
    stack.callback(audit.close)
    # 1.2 because any client of Kubernetes may come; our own doors speak 1.3 only.
    context = server_context(
        pki.serving_file, pki.serving_file, pki.directory / "ca.crt", oldest=ssl.TLSVersion.TLSv1_2
    )
    stack.callback(api.close)
    app = ApiDoor(api, guard, health, audit, options.bounds.body_seconds).app
    listener = Listener(app, host=options.host, port=options.port, tls=context, bounds=options.bounds)
    await listener.start()
    stack.push_async_callback(listener.stop)
    _log.info("store.opened", revision=store.revision, objects=store.stats.objects)
    return ApiServer(
        api, app, LocalCluster(api), pki, health, guard, vault, audit, authenticator, listener, context, options.host
    )


async def _open_store(options: ServerOptions, clock: Clock, entropy: Entropy) -> tuple[Store, Vault]:
    # A key is made for a new state alone. Beside sealed data a missing key is an error: a new one would bury everything.
    fresh = not (options.state / "state.db").exists()
    vault = Vault.open_file(ring_file(options.state / "vault.json", options.kms), clock.now(), entropy, create=fresh)
    identity = {"simulated": "true" if options.simulated else "false"}
    store = await Store.open(
        options.state,
        cipher=vault,
        macs=vault.macs,
        identity=identity,
        clock=clock,
        entropy=entropy,
        settings=options.store,
        judge=unreadable,
    )
    vault.require_macs()  # it opened with its tags: a migration that died before its last step is whole now
    for key, aside in store.aside.items():
        where = {"resource": f"{key.plural}.{key.group}", "namespace": key.namespace, "name": key.name}
        _log.error("object.set-aside", **where, reason=aside.reason)
    return store, vault


def _hosts(host: str) -> list[str]:
    names = ["127.0.0.1", "localhost", "::1", "kubernetes", "kubernetes.default", "kubernetes.default.svc"]
    return names if host in names else [host, *names]


def _health(store: Store) -> Health:
    health = Health()
    health.add("store", lambda: str(store.problem) if store.problem is not None else None)
    health.warn("unreadable", lambda: _unreadable(store))
    return health


def _unreadable(store: Store) -> str | None:
    kinds = Counter(key.plural for key in store.aside)
    counted = ", ".join(f"{count} of {plural}" for plural, count in sorted(kinds.items()))
    return f"objects that cannot be read are set aside: {counted}; `fastness state list` names them" if kinds else None


def _publish_store(store: Store) -> None:
    stats = store.stats
    metrics.STORE_REVISION.set(stats.revision)
    metrics.STORE_OBJECTS.set(stats.objects)
    metrics.STORE_ASIDE.set(len(store.aside))
    metrics.STORE_LOG.set(stats.log_entries)
    metrics.STORE_WAITING.set(stats.pending_changes)
    metrics.STORE_COMMITS.set(stats.commits)
    metrics.STORE_FAILURES.set(stats.failures)


async def _close_store(store: Store) -> None:
    await store.close()
    _log.info("store.closed", revision=store.revision)
