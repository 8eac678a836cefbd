r"""Label selectors and field selectors: what `kubectl -l` and `--field-selector` send, and the LabelSelector of objects.

    fields.py      Field selectors, as in `kubectl --field-selector` and the `fieldSelector` query parameter
    label_text.py  The text form of label selectors, as in `kubectl -l` and the `labelSelector` query parameter
    labels.py      Label selectors as values: requirements, the selector they form, and the LabelSelector object of the API

A selector is a tuple of requirements that all must hold. Parsing gives an immutable value with `matches`; `str()` gives the
canonical text (requirements by key, values sorted and unique), so two selectors that mean the same compare equal.

- Label selector text: `a=b`, `a==b`, `a!=b`, `a in (b,c)`, `a notin (b)`, `a`, `!a`, `a>1`, `a<1`, joined by commas. The words
  `in` and `notin` are operators only between a key and a list; elsewhere they are names like any other.
- `!=` and `notin` also match objects without the label. `>` and `<` compare 64-bit integers, and never match anything else.
- Field selector text: `a=b`, `a==b`, `a!=b`; in a value `\`, `,` and `=` are written with a backslash before them. Which
  fields exist is the registry's business: `fields` lists the ones that were asked for.
- A missing LabelSelector object selects nothing, an empty one everything: Kubernetes' rule, and a classic trap.

List, watch and delete-collection use these on every object, so `matches` allocates nothing.
"""

from fastness.formats.selectors.fields import FieldSelector, FieldTerm, parse_field_selector
from fastness.formats.selectors.label_text import parse_label_selector
from fastness.formats.selectors.labels import (
    EVERYTHING,
    NOTHING,
    LabelSelector,
    Operator,
    Requirement,
    label_selector_from_object,
    requirement,
)

__all__ = [
    "EVERYTHING",
    "NOTHING",
    "FieldSelector",
    "FieldTerm",
    "LabelSelector",
    "Operator",
    "Requirement",
    "label_selector_from_object",
    "parse_field_selector",
    "parse_label_selector",
    "requirement",
]
