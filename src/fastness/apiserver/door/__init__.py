"""The Kubernetes API of embedded mode, over HTTPS, for the real kubectl.

    about.py      What is served beside resources: health, version, metrics, the index, discovery and OpenAPI
    app.py        The API as a door: its table of routes, what each demands, and the way of a request to a verb
    audit.py      The audit log of the API: one line per write
    bodies.py     What clients send: JSON, YAML, or the protobuf of kubectl's typed commands
    errors.py     What errors become at the API: `Status` objects, as every Kubernetes client reads them
    forms.py      The form in which a client wants its answer: objects, metadata only, or a table
    guard.py      Who is asking and what may they: the API door's view of `apiserver/auth`
    resources.py  The verbs on objects, from HTTP to the engine and back
    streams.py    Watches over HTTP: one JSON event per line, until the client leaves or the time is over

Handlers are thin: what a verb does is decided in `apiserver/verbs`, who may ask in `apiserver/auth` and `kube/access`.
"""
