"""JSON values as YAML text that Kubernetes reads back as the same values.

PyYAML and the Go library differ in what a plain scalar means: `1e3` is a text to the one and a number to the other. A text is
quoted when either would take it for something else. Members are sorted, one on a line, so that a change of one is a change of
one line.
"""

from typing import Any, Final

import yaml

from fastness.formats.yaml_scalars import resolve

_TEXT: Final = "tag:yaml.org,2002:str"


class _Dumper(yaml.CSafeDumper):
    def ignore_aliases(self, data: Any) -> bool:
        return True


def _represent_text(dumper: yaml.CSafeDumper, text: str) -> yaml.ScalarNode:
    # Some line ends of YAML 1.1 are folded into blanks even between single quotes.
    plain = text.isprintable() and isinstance(resolve(text), str)
    return dumper.represent_scalar(_TEXT, text, style=None if plain else '"')


_Dumper.add_representer(str, _represent_text)


def encode(value: Any) -> str:
    """The text of a value made of objects, lists, texts, numbers, booleans and null."""
    return str(
        yaml.dump(value, Dumper=_Dumper, sort_keys=True, default_flow_style=False, allow_unicode=True, width=4096)
    )
