"""A Kubernetes API server in one process: what kube-apiserver, etcd and kube-controller-manager are to a small cluster.

It serves whatever kinds it is given to the real kubectl, keeps them in one file, and knows the floor and nothing of the product:
rules, records and lookups of a product are handed in (`app/product.py`).

    async with open_apiserver(ServerOptions(state), product, clock, entropy) as server:
        server.cluster                the port of controllers in this process; `acting_as(user)` for anybody else
        server.controllers(unowned)   what Kubernetes does itself, to be run by whoever runs controllers
        server.health, server.url     what `/readyz` says, and where clients go

This module is the only face of the room: the names below, and no other module of it, are for `app` and `cli`. They are loaded
when they are first used, because a verb that looks after a state directory needs a tenth of the room. The parts:

    server.py         The API server as one thing, open for the time of a block
    state_files.py    A state directory without a server: copies of it, and work on one that nobody has open
    door/             The Kubernetes API of embedded mode, over HTTPS, for the real kubectl
    auth/             Who is asking, and may they: authentication and authorization of the embedded API
    engine.py         The embedded API without HTTP: what every verb does
    local.py          The in-process adapter of the `Cluster` port
    verbs/            What each verb does
    schema/           Structural schemas at run time: prune, default, validate, and judge the schemas of users' CRDs
    fields/           Who owns which field of an object, and server-side apply
    strategies/       What the server itself does to objects of a kind, beside their schema
    admission/        The server's own rules, and the place where rules given from outside are asked
    store/            The embedded API's store: what etcd is to Kubernetes, in one process and one file
    catalog/          What the embedded API serves now: the built-in kinds, and those of users' CustomResourceDefinitions
    documents/        What the server says about itself: discovery and OpenAPI
    tables/           Tables: what `kubectl get` prints, made by the server
    loops/            What Kubernetes does itself: embedded mode only
    accept.py         Which of our representations a client wants: the `Accept` header as Kubernetes clients write it
    call.py           One request to the embedded API, without HTTP
    definitions.py    CustomResourceDefinition objects and what follows from them
    inventory.py      What there is, across all kinds: for the loops that Kubernetes itself runs
    large_objects.py  Work on one large object, away from the event loop
    lookups.py        What authentication, authorization and admission must know of the store
    meta.py           Metadata: the part that every object has, and the server's own fields in it
    refusals.py       Refusals in the words that Kubernetes clients know
    seed.py           What an API server has from its first second
    storable.py       What may be stored, and how it is read again: nothing goes in that would not come out
    subresources.py   Subresources that are not a part of the object: scale, eviction, binding, approval, finalize

**What a request passes.** `kubectl apply --server-side -f pool.yaml`, file by file:

1. `server.py` has put the parts together, in the order in which they depend on each other: vault key, store
   (`store/store.py`), first objects (`seed.py`), catalog (`definitions.py` reads the CustomResourceDefinitions out of the
   store), access, engine, door.
2. `http/edge.py` serves the table of routes of `door/app.py`: resources, and what is served beside them (`door/about.py`), each
   with what a caller must show. `verbs/paths.py` takes the path of a resource apart; `door/errors.py` makes a Status of errors.
3. `door/guard.py` asks who and whether: `auth/authenticator.py` makes a `User` of a certificate (`auth/certificates.py`) or a
   token (`auth/tokens.py`, `auth/joining.py`), `auth/authorizer.py` asks the node authorizer and RBAC of
   `kube/access`. `lookups.py` is what both know of the store.
4. `catalog/catalog.py` says whether there is such a resource. `door/bodies.py` decodes JSON, YAML or protobuf within bounds;
   `door/resources.py` makes a `Call` (`call.py`) of it and goes to `engine.py`, which has every verb without HTTP. From
   here on a controller in process (`local.py`, the `Cluster` port) takes the same way.
5. A write enters `verbs/writes.py`, the pipeline in the order of Kubernetes. `verbs/drafts.py` prunes and defaults what was
   sent (`schema/compiled.py`), `verbs/edits.py` does what a PUT or PATCH means, `verbs/applies.py` what an apply means.
6. `verbs/managed.py` asks `fields/tracking.py` who owns which field: `fields/merge.py` merges, `fields/compare.py` finds
   conflicts, `fields/managed.py` writes managedFields.
7. `meta.py` fills in the server's own fields; `strategies/strategy.py` is what a kind adds, `strategies/natives.py` for those
   of Kubernetes. `schema/validation.py` finds what is wrong and `schema/cel/rules.py` runs the rules; `refusals.py` says it
   in the words that clients know, without the values of secrets.
8. `admission/admit.py` asks the rules: those of any Kubernetes (`admission/own.py`), then those handed in.
9. `store/store.py` decides with the latest state and `store/writer.py` commits many changes at once: rows by
   `store/journal.py`, made durable by `store/database.py`, sealed by `store/seal.py`. Only then `store/snapshot.py` shows the
   change and `store/history.py` tells watchers. `verbs/convert.py` turns the stored version into the one that was asked for.
10. `door/forms.py` writes the answer as object, metadata or table (`tables/render.py`); `door/audit.py` writes its line.

A read goes 2, 3, then `verbs/reads.py` over `verbs/selection.py` to the snapshot; a watch `verbs/watches.py` and
`door/streams.py`; a delete `verbs/deletes.py`, whose finalizers and owners `loops/garbage.py` and `loops/namespaces.py` look
after; scale, eviction and the like `subresources.py`; discovery and OpenAPI `documents/discovery.py` and
`documents/openapi`. How it differs from a kube-apiserver stands in docs/explanation/embedded-api.md.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from fastness.apiserver.door.audit import AuditEntry as AuditEntry
    from fastness.apiserver.local import LocalCluster as LocalCluster
    from fastness.apiserver.lookups import StoreLookups as StoreLookups
    from fastness.apiserver.loops.controllers import KubeLoops as KubeLoops
    from fastness.apiserver.loops.controllers import kube_loops as kube_loops
    from fastness.apiserver.server import ApiServer as ApiServer
    from fastness.apiserver.server import Product as Product
    from fastness.apiserver.server import ServerOptions as ServerOptions
    from fastness.apiserver.server import open_apiserver as open_apiserver
    from fastness.apiserver.state_files import authenticate_state as authenticate_state
    from fastness.apiserver.state_files import back_up as back_up
    from fastness.apiserver.state_files import check_with_key as check_with_key
    from fastness.apiserver.state_files import checked_copy as checked_copy
    from fastness.apiserver.state_files import identity_of as identity_of
    from fastness.apiserver.state_files import object_in as object_in
    from fastness.apiserver.state_files import objects_of as objects_of
    from fastness.apiserver.state_files import open_backup as open_backup
    from fastness.apiserver.state_files import remove_unreadable as remove_unreadable
    from fastness.apiserver.state_files import restore_backup as restore_backup
    from fastness.apiserver.state_files import unreadable_objects as unreadable_objects
    from fastness.apiserver.state_files import verify_backup as verify_backup
    from fastness.apiserver.state_files import write_backup as write_backup
    from fastness.apiserver.store.errors import StoreError as StoreError
    from fastness.apiserver.store.files import RECORD as RECORD
    from fastness.apiserver.store.records import BackupReport as BackupReport
    from fastness.apiserver.store.records import Key as Key
    from fastness.apiserver.store.records import StoreSettings as StoreSettings
    from fastness.apiserver.store.restore import RestoreReport as RestoreReport
    from fastness.apiserver.store.set_aside import Aside as Aside
    from fastness.apiserver.verbs.paths import Target as Target

# Equal to the imports above (a test compares), which only a type checker reads.
EXPORTS: Final = {
    "door.audit": ("AuditEntry",),
    "local": ("LocalCluster",),
    "lookups": ("StoreLookups",),
    "loops.controllers": ("KubeLoops", "kube_loops"),
    "server": ("ApiServer", "Product", "ServerOptions", "open_apiserver"),
    "state_files": (
        "authenticate_state", "back_up", "check_with_key", "checked_copy", "identity_of", "object_in", "objects_of",
        "open_backup", "remove_unreadable", "restore_backup", "unreadable_objects", "verify_backup", "write_backup",
    ),
    "store.errors": ("StoreError",),
    "store.files": ("RECORD",),
    "store.records": ("BackupReport", "Key", "StoreSettings"),
    "store.restore": ("RestoreReport",),
    "store.set_aside": ("Aside",),
    "verbs.paths": ("Target",),
}  # fmt: skip
_HOMES: Final = {name: home for home, names in EXPORTS.items() for name in names}

if not TYPE_CHECKING:  # a type checker that knew of it would take every name for one that exists

    def __getattr__(name: str) -> object:
        """A name of the face, from the module that has it."""
        if name not in _HOMES:
            raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
        value = globals()[name] = getattr(import_module(f"{__name__}.{_HOMES[name]}"), name)
        return value
