"""Structural schemas at run time: prune, default, validate, and judge the schemas of users' CRDs.

    compiled.py     the door: CompiledSchema
    structural.py   the other door: structural_problems, for CustomResourceDefinitions
    node.py         a schema as a graph that the walks share
    pruning.py      unknown fields · defaulting.py  missing ones
    accept.py       the fast yes, in Rust · validation.py  the exact no, with reasons · types.py  the no of native kinds
    lists.py        sets and maps · embedded.py  objects inside objects · cel/  rules
    formats.py      formats of texts · patterns.py  regular expressions

Everything here is pure: no I/O, no clock. The REST engine calls it between decoding and storing.
"""

from fastness.apiserver.schema.compiled import CompiledSchema
from fastness.apiserver.schema.structural import structural_problems

__all__ = ["CompiledSchema", "structural_problems"]
