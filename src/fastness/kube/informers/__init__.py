"""Informers: the list-and-watch dance, done once for everyone.

    cache.py      The state of an informer, without I/O: objects by key, indexes, and what a change or a new list means
    informer.py   One informer: a cache that follows a cluster
    joined.py     One informer over several namespaces, for kinds that count in more than one
    placed.py     From where objects count (`kube.places`) to where informers look
    set_aside.py  The objects of one resource that are set aside: by name, with the reason, logged once and counted
    shared.py     Shared informers: one per resource and scope, however many ask

Controllers read caches and are told which objects changed; `kube/controllers` turns that into keys to reconcile.
"""

from fastness.kube.informers.cache import Cache, Indexer, InformerError, Key, key_of
from fastness.kube.informers.informer import Handler, Informer
from fastness.kube.informers.shared import Informers

__all__ = ["Cache", "Handler", "Indexer", "Informer", "InformerError", "Informers", "Key", "key_of"]
