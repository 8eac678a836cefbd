"""Help for whoever runs a cluster: the checks of `doctor`, and support bundles.

    cluster_health.py  What a running cluster says about itself, as findings of `fastness doctor`
    doctor.py          `fastness doctor`: what is installed, what is missing, what to do
    finding.py         A finding of `fastness doctor`: what was looked for, what is there, what it is good for, and how to get it
    gather.py          Collecting a support bundle over the API: ask, redact, write, within bounds
    gather_manual.py   The part of a bundle that the manual's own collector would write
    host_check.py      What `fastness doctor` says about confidential containers
    installation.py    What `fastness doctor` says about an installation on a Kubernetes: before it, and afterwards
    layout.py          Where things lie in a bundle, and the page that leads to them
    places.py          Places of objects in which users write what may be anything, so that only its size is shown
    redact.py          Objects and text without secrets, for people outside
    selftest.py        `fastness selftest`: do the doors of a running cluster do what they are there for?
    selftest_walk.py   A made-up machine from its ticket to its configuration and to its refusal, or a stranger who is refused
    shapes.py          Strings that look like keys, whatever the field is called: long, mixed, without words in them
    stored.py          How much room the record and the evidence take in the API server, beside a bound
    support.py         `fastness support bundle`: what somebody needs to help, without secrets

What a bundle holds and must not is pure (`layout`, `places`, `redact`, `shapes`); `gather` does the asking.
"""
