"""The page: what stands in the cluster, for people, in a browser.

    admission.py     Who comes, what they may, and the cluster as they may change it: one question with two ways to answer
    acts.py          What somebody does on the page: decide about a machine, or let something happen to a virtual one
    app.py           The page over HTTP: its table of routes, its views, and what people do on it
    fleet.py         Machines as a fleet: one row each, filters, and who needs a decision
    live_updates.py  What changed, told to pages that are open, and whether the API answers
    markup.py        HTML whose text is escaped by construction
    pages/           The views: pure functions from what a user may see to markup
    provider_login.py  Logging in at an identity provider: authorization code flow with PKCE, state and nonce
    record.py        The record as pages read it: its newest entries, and one entry with the proof that it is in
    routes.py        The views of the page with their paths, where a login may lead, and the stylesheet and the script
    server.py        The page behind a listener: caches, sessions, certificate and its rotation, for the time of a block
    sessions.py      Who is logged in: one-time links, sessions, and proofs that a form is ours
    simulator.py     What the page asks of a simulator, where the machines of a cluster are virtual ones
    view_scope.py    What a user may see
    views/           From a request to a view: what each one reads, as the user
    visits.py        Who comes to the page: the session of a request, forms that are ours, logging in and out

Pages are whole without JavaScript; the script only replaces what changed. Nothing is loaded from elsewhere.
"""
