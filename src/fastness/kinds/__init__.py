"""What exists: the nouns.

One package per API group, one module per kind or small family. A module declares its kinds as data (`Kind`): group, version,
names, scope, schema, printer columns, subresources. Everything else is derived from those entries: the REST paths and the
discovery of the embedded API, the CRD manifests in `deploy/crds`, the tables that kubectl prints, the reference pages.
Adding a kind touches one file; `registry.py` finds it.
"""
