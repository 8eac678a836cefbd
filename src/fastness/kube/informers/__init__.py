"""Informers: the list-and-watch dance, done once for everyone.

`cache.py` is the state without I/O (objects, indexes, what a new list changes), `set_aside.py` the names of objects that cannot
be used, `informer.py` keeps one cache in step with a cluster, `placed.py` says which namespaces it looks into and `joined.py`
makes one of several, `shared.py` gives one informer per resource and scope to all who ask and runs them.

Controllers read caches and are told which objects changed; `kube/controllers` turns that into keys to reconcile.
"""

from fastness.kube.informers.cache import Cache, Indexer, Key, key_of
from fastness.kube.informers.errors import InformerError
from fastness.kube.informers.informer import Handler, Informer
from fastness.kube.informers.shared import Informers

__all__ = ["Cache", "Handler", "Indexer", "Informer", "InformerError", "Informers", "Key", "key_of"]
