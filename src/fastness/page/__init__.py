"""The page: what stands in the cluster, for people, in a browser.

    admission.py     Who comes, what they may, and the cluster as they may change it: one question with two ways to answer
    app.py           The ASGI application of the page
    assets.py        The stylesheet and the script, under names that change with their content
    controls.py      What somebody asks of the simulator, out of a form; behind the same authorizer as everything else
    decisions.py     Decisions about a machine, taken on the page: written as the user who asks
    fleet.py         Machines as a fleet: one row each, filters, and who needs a decision
    live_updates.py  What changed, told to pages that are open, and whether the API answers
    markup.py        HTML whose text is escaped by construction
    pages/           The views: pure functions from what a user may see to markup
    record.py        The record as pages read it: its newest entries, and one entry with the proof that it is in
    routes.py        The paths of the page, with who may come
    server.py        The page behind a listener: caches, sessions, certificate and its rotation, for the time of a block
    sessions.py      Who is logged in: one-time links, sessions, and proofs that a form is ours
    simulator.py     What the page asks of a simulator, where the machines of a cluster are virtual ones
    view_scope.py    What a user may see
    views/           From a request to a view: what each one reads, as the user

Pages are whole without JavaScript; the script only replaces what changed. Nothing is loaded from elsewhere.
"""
