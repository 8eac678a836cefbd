"""Admission on a real Kubernetes: the same rules as in the embedded API, behind a validating webhook.

* `reviews.py`: AdmissionReview v1 to the request of `admission`, and its answer back. Pure.
* `configuration.py`: the ValidatingWebhookConfiguration, as data. Pure.
* `lookups.py`: what the rules must know, from informers and the policy engine.
* `app.py`: the door; `registration.py`: keeps the configuration and its CA bundle right; `server.py`: all of it, for a while.

Everything fails closed: a review that cannot be answered is a refusal, and the API server refuses when nobody answers it. What is
asked is kept narrow instead, so that a webhook that is down stops confidential workloads and nothing else.
"""
