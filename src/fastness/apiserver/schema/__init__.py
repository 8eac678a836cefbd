"""Structural schemas at run time: prune, default, validate, and judge the schemas of users' CRDs.

    accept.py               The fast way to say yes: the structural part of a schema, in the words of jsonschema-rs
    causes.py               How a problem is written: the path of a field, and the cause types of Kubernetes
    cel/                    Rules in CEL (`x-kubernetes-validations`): compile them against a schema, evaluate them on objects
    compiled.py             A schema that is ready to work: prune, default, validate
    correlation.py          Which old value belongs to a new one, and whether the two are the same
    defaulting.py           Filling in defaults, and nulls that mean "not set"
    embedded.py             Embedded resources: objects inside an object that are Kubernetes objects themselves
    formats.py              Formats of strings, with the meaning an API server gives them
    lists.py                Lists that are sets or maps: no entry, or no combination of keys, may come twice
    node.py                 The compiled form of a structural schema: a graph of nodes with what lies below each of them
    patterns.py             Regular expressions with the meaning Kubernetes gives them
    pruning.py              Dropping what a schema does not know, as an API server does before it stores
    structural.py           What an API server refuses in the schema of a CustomResourceDefinition
    structural_defaults.py  Defaults in a CRD: each must be pruned, and valid by the very schema it stands in
    structural_keywords.py  Which keywords a CRD's schema may use, and together with which others
    types.py                What a typed decoder refuses: values of the wrong JSON type, and numbers that do not fit
    validation.py           The exact way to say no: every problem of an object's structure

Everything here is pure: no I/O, no clock. The REST engine calls `compiled` between decoding and storing; `structural` is asked
about the schemas of CustomResourceDefinitions.
"""

from fastness.apiserver.schema.compiled import CompiledSchema
from fastness.apiserver.schema.structural import structural_problems

__all__ = ["CompiledSchema", "structural_problems"]
