"""Templates of rules: Go's text/template with sprig, as Node Feature Discovery runs them.

    builtins.py     The functions that text/template itself has
    calls.py        Functions with the types of what they take
    collections.py  Sprig's functions on lists and dictionaries, on defaults, on types, and on JSON
    numbers.py      Sprig's arithmetic
    patterns.py     Sprig's functions on regular expressions
    run.py          Running the tree of a template
    show.py         How Go prints
    texts.py        Sprig's functions on texts
    values.py       Values of a template, as Go sees them, and how much may be made of them
    versions.py     Sprig's `semver` and `semverCompare`

    {{ range .pci.device }}vendor-{{ .vendor }}=true
    {{ end }}

`formats/gotemplate` reads a template; here it is run over what a rule matched. The result is lines `key=value`. Left out of sprig
is what looks at the world (environment, names of hosts, the clock) and what makes something up (keys, random texts, passwords):
labels of one node must be the same at every look. So are a few functions that nobody writes rules with; all are refused by name.
A field that does not exist is an error, steps, sizes and depth are bounded, and errors carry line and column.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import lru_cache
from typing import Any, Final

from fastness.formats.errors import TemplateError
from fastness.formats.gotemplate import MAX_TEXT, Template, parse_template
from fastness.workloads.features.errors import BadTemplate
from fastness.workloads.features.templates.builtins import BUILTINS
from fastness.workloads.features.templates.calls import Function
from fastness.workloads.features.templates.collections import COLLECTIONS
from fastness.workloads.features.templates.numbers import NUMBERS
from fastness.workloads.features.templates.patterns import PATTERNS
from fastness.workloads.features.templates.run import run_template
from fastness.workloads.features.templates.texts import TEXTS
from fastness.workloads.features.templates.values import TypedList, TypedMap
from fastness.workloads.features.templates.versions import VERSIONS

__all__ = ["FUNCTIONS", "MAX_TEXT", "lines", "output", "parsed", "run"]

# Sprig's win where both have one: its `slice` takes lists alone.
FUNCTIONS: Final[Mapping[str, Function]] = {**BUILTINS, **TEXTS, **PATTERNS, **NUMBERS, **COLLECTIONS, **VERSIONS}
_ELEMENT: Final = "map[string]string"


@lru_cache(maxsize=1024)
def parsed(template: str) -> Template:
    """The template as a tree; raises BadTemplate."""
    try:
        return parse_template(template, FUNCTIONS)
    except TemplateError as error:
        raise BadTemplate(error.code, error.message, error.hint) from error


def run(template: str, data: Mapping[str, Any]) -> dict[str, str]:
    """The lines of a template over matched elements, by domain and feature; raises BadTemplate."""
    return lines(output(template, data))


def output(template: str, data: Mapping[str, Any]) -> str:
    """What a template writes; raises BadTemplate."""
    return run_template(parsed(template), FUNCTIONS, _typed(data))


def _typed(data: Mapping[str, Any]) -> TypedMap:
    """Matched elements with the types that they have in Go."""
    domains = {
        domain: TypedMap(
            {name: TypedList(map(TypedMap, elements), of=_ELEMENT) for name, elements in features.items()},
            of=f"[]{_ELEMENT}",
        )
        for domain, features in data.items()
    }
    return TypedMap(domains, of=f"map[string][]{_ELEMENT}")


def lines(text: str) -> dict[str, str]:
    """`key=value` per line, blank lines left out; raises BadTemplate."""
    entries: dict[str, str] = {}
    for line in text.split("\n"):
        if not line.strip():
            continue
        key, separator, value = line.partition("=")
        if not separator:
            raise BadTemplate("not-a-line", f"{line[:80]!r} has no '='", "Each line of the result is key=value.")
        entries[key.strip()] = value.strip()
    return entries
