"""Kinds of OpenShift and its companions that users of the manuals touch.

They are stored as they come: `spec` and `status` keep whatever they hold. What is exact is what a client sees first: groups,
versions, names, short names, scope, printer columns, subresources. A cluster that has the real operators has these definitions
already; the label `fastness.dev/set=platform` tells an installer which ones those are.
"""

LABELS = {"fastness.dev/set": "platform"}
