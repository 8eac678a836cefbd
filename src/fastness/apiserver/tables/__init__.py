"""Tables: what `kubectl get` prints, made by the server.

    ages.py     Time for people: how long ago, in two or three significant figures, as Kubernetes prints it
    columns.py  Columns of custom kinds: JSONPath in, cells out
    native/     Printers of the kinds of Kubernetes itself, one small function each
    printer.py  A printer: the columns of a kind and the function that fills them for one object
    reader.py   Rows from stored bytes, decoding only what the columns show
    render.py   Objects in, table out
    request.py  Which form of a list, an object or a watch event the client wants

A client that asks for `as=Table;v=v1;g=meta.k8s.io` gets column definitions and rows of cells, ready to print. Rules:

* Custom kinds print their JSONPath columns; native kinds have a function each.
* Dates are ages against the `now` that the caller gives.
* A row carries its object's metadata, nothing, or the whole object, as `includeObject` asks.
* The first table of a watch carries the column definitions; those that follow do not.
"""

from fastness.apiserver.tables.render import ListMeta, encode_table, render_table
from fastness.apiserver.tables.request import Include, TableRequest, partial_object, representation

__all__ = ["Include", "ListMeta", "TableRequest", "encode_table", "partial_object", "render_table", "representation"]
