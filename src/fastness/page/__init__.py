"""The page: what stands in the cluster, for people, in a browser.

    markup.py      HTML that is escaped by construction
    sessions.py    one-time links, logins, tokens against forged forms
    admission.py   who comes and what they may: the embedded API's guard, or reviews of any Kubernetes
    sight.py       what a user may see: every read asks the authorizer of the API
    fleet.py       machines as rows: state, what they wait for, who needs a decision
    decisions.py   approve, quarantine, release, written as the user
    record.py      the record, with proofs that are checked before they are shown
    simulator.py   what the page asks of a simulator; controls.py hands it on
    news.py        what changed, for pages that are open; whether the API answers
    views/         what each view reads, as the user
    pages/         one module per view, pure functions from objects to markup
    routes.py      the table of paths, with who may come
    app.py         the ASGI application; server.py puts it behind a listener

Pages are whole without JavaScript; the script only replaces what changed. Nothing is loaded from elsewhere.
"""
