"""Verbs about the configuration of machines.

cluster_state.py  The objects that a plan is made from, asked of a cluster
explanations.py   `fastness render --explain PATH`: who wrote a part of a config, why, and who said something else later
images.py         What `fastness plan` and `fastness validate` say about MachineOSConfigs
offline.py        The objects that a plan is made from, out of manifests
overlays.py       What `fastness plan` and `fastness blame` say about NodeOverlays
plan.py           `fastness plan` and `blame`: what a change would do, and where a part of a config came from
plan_view.py      A plan for people: per pool what changes, per node what happens, and what would go wrong
registries.py     What `fastness plan` makes of objects about registries
state_options.py  Options of verbs that ask a cluster, or files in its place
validate.py       `fastness validate` and `render`: machine configuration in files, before a cluster sees it
"""
