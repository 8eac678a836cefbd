"""Tables: what `kubectl get` prints, made by the server.

A client that asks for `as=Table;v=v1;g=meta.k8s.io` gets column definitions and rows of cells, ready to print. Rules:

* Custom kinds print their JSONPath columns (`columns.py`); native kinds have a function each (`native/`).
* Dates are ages against the `now` that the caller gives, in the notation of `ages.py`.
* A row carries its object's metadata, nothing, or the whole object, as `includeObject` asks.
* The first table of a watch carries the column definitions; those that follow do not.

`request.py` reads what the client asked for, `render.py` makes the table; both are pure.
"""

from fastness.apiserver.tables.render import ListMeta, encode_table, render_table
from fastness.apiserver.tables.request import Include, TableRequest, partial_object, representation

__all__ = ["Include", "ListMeta", "TableRequest", "encode_table", "partial_object", "render_table", "representation"]
