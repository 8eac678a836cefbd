"""The command `fastness`: one file per family of verbs.

`main.py` knows the names and one-line helps of all verbs and imports a family only when one of its verbs runs, so that
`--help` and completion stay fast. `output.py` prints, `exits.py` lists the exit codes, `errors.py` turns what the layers
raise into a sentence with a hint.
"""
