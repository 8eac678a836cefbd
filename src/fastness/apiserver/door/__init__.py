"""The Kubernetes API of embedded mode, over HTTPS, for the real kubectl.

`app.py` is the ASGI application: it authenticates, authorizes by the route's `auth` column, calls a handler and turns
whatever comes back into an answer. `routes.py` is the table. `resources.py` has the verbs on objects, `streams.py` watches,
`apiserver.auth.reviews` the questions about access, `bodies.py` reads what clients send, `forms.py` writes what they asked for.
Decisions are all elsewhere: in the other packages of `apiserver`, and in `kube.access`.
"""
