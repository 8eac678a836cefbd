"""A Kubernetes API as its client sees it: one port, the client of any API server, informers, controllers.

    port.py             The `Cluster` port: all that controllers and doors know of an API server
    errors.py           Why the API said no, the same for both adapters, and why it could not even be asked
    positions.py        Positions in the history of a cluster: may a watch go on from one, or is this another cluster?
    readable.py         How large and how deep an object may be that anything here reads
    events.py           Events: what a controller or a door tells the user about an object
    client/             The HTTPS adapter: the `Cluster` port on any Kubernetes API server
    informers/          Informers: the list-and-watch dance, done once for everyone
    controllers/        What every controller shares
    access/             Who may do what: pure decisions of authorization
    admission.py        The nouns of admission: what is asked, what is looked up, what is answered
    admission_rules.py  Tables of admission rules, and running one over a write
    budgets.py          How many pods a disruption budget lets go now
    confirmation.py     The word that confirms one change which lowers protection, for any kind
    eviction.py         Emptying a node, one pod at a time, through the API; disruption budgets hold
    served_kinds.py     A cluster that does not serve every kind: one that nobody defined reads as a kind without objects
    places.py           Where objects count: the one table of which namespaces a namespaced kind is read from

The port is all that controllers and doors know: get, list, watch, create, patch, delete, with resource versions. Two adapters
have it: `client/` speaks HTTPS to any Kubernetes API server, `apiserver` keeps the objects itself. One contract suite runs
against both, and the embedded API is compared request by request with a real kube-apiserver.
"""
