r"""JSONPath as Kubernetes uses it in printer columns, `kubectl wait` and `scale` paths; compiled once, run for every row.

    parser.py  From text to a compiled path
    steps.py   The steps of a compiled path: functions from the values found so far to the values found next

Understood: `.field`, `['field']`, escaped dots (`.labels.app\.io/name`, `['app\.io/name']`), `.*`, `[*]`, `[2]`, `[-1]`,
`[1:3]`, `[::2]`, unions (`['a','b']`, `[0,2]`), recursive descent (`..name`), and filters with one comparison or a test for
existence (`[?(@.type=="Ready")]`). `@` and `$` both mean the value at hand.

* Compiling is total: a `JsonPath` or a `JsonPathError`. Length, nesting and the number of steps are bounded.
* Running is total too: a path that does not fit the object (an index into a string, a comparison of different types) finds
  nothing, as a printer column shows nothing. Work is bounded by `MAX_VISITS` values, so that `..*..*` costs little.
* A missing field finds nothing; a field that is null finds `None`.
* Quotes are single and do not protect a dot: `['a.b']` means `.a.b`. That is what Kubernetes does, so it is what is done here.
* Wildcards walk objects in the order of their keys, so that answers are stable.

The tables of the embedded API (`apiserver/tables`) are the main reader.
"""

from fastness.formats.jsonpath.parser import JsonPath, JsonPathError, compile_path

__all__ = ["JsonPath", "JsonPathError", "compile_path"]
