"""Admission on a real Kubernetes: the same rules as in the embedded API, behind a validating webhook.

    app.py            The door that an API server knocks on with every write that it was told to ask about
    configuration.py  What the API server is told to ask us, as data
    lookups.py        What the rules must know, on a cluster that is not ours
    registration.py   Keeps the ValidatingWebhookConfiguration as it must be: entries, CA bundle and path of the moment
    reviews.py        AdmissionReview v1, read and answered
    server.py         The webhook as one thing that can be opened and closed: caches, authority, listener, rotation, registration

Everything fails closed: a review that cannot be answered is a refusal, and the API server refuses when nobody answers it.
What is asked is kept narrow instead, so that a webhook that is down stops confidential workloads and nothing else.
"""
