"""The manual of confidential containers as a table of commands: what each prints there, what it prints here.

`rows.yaml` is the table, `manifests/` holds the files that its commands name, `oc` is a client for the verbs that kubectl does
not have. `tests/e2e/manual` walks the table; `tools/docs.py` prints it as docs/reference/seed-001.md.
"""
