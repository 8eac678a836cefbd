"""A Kubernetes API server in one process: what kube-apiserver, etcd and kube-controller-manager are to a small cluster.

It serves whatever kinds it is given to the real kubectl, keeps them in one file, and knows the floor and nothing of the product:
rules, records and lookups of a product are handed in (`app/product.py`). Only `app`, `cli` and `sim` may import it. The parts:

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
    redaction.py      Refusals about objects whose values are secret
    refusals.py       Refusals in the words that Kubernetes clients know
    seed.py           What an API server has from its first second
    storable.py       What may be stored, and how it is read again: nothing goes in that would not come out
    subresources.py   Subresources that are not a part of the object: scale, eviction, binding, approval, finalize

**What a request passes.** `kubectl apply --server-side -f pool.yaml`, file by file:

1. `door/server.py` has put the parts together, in the order in which they depend on each other: vault key, store
   (`store/store.py`), first objects (`seed.py`), catalog (`definitions.py` reads the CustomResourceDefinitions out of the
   store), access, engine, door.
2. `door/app.py` is the ASGI application. `door/routes.py` is its table: resources, and what is served besides them, each with
   what a caller must show; `verbs/paths.py` takes the path of a resource apart.
3. `door/guard.py` asks who and whether: `auth/authenticator.py` makes a `User` of a certificate (`auth/certificates.py`) or a
   token (`auth/tokens.py`, `auth/bootstrap.py`, `auth/joining.py`), `auth/authorizer.py` asks the node authorizer and RBAC of
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
   in the words that clients know, `redaction.py` without the values of secrets.
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
