"""One schema that exercises every rule, and objects and schemas that break them: the material of the comparison."""

from __future__ import annotations

from typing import Any

GROUP = "specimen.fastness.dev"

TEXT = {"type": "string"}
BRIEF = {"type": "string", "maxLength": 64}  # an API server refuses rules whose cost it cannot bound
SPEC: dict[str, Any] = {
    "type": "object",
    "required": ["must"],
    "x-kubernetes-validations": [
        {"rule": "!has(self.low) || !has(self.high) || self.low <= self.high", "message": "low must not exceed high"},
        {"rule": "!has(self.since) || self.since > timestamp('2020-01-01T00:00:00Z')", "fieldPath": ".since"},
        {"rule": "!has(self.foo__dash__bar) || self.foo__dash__bar != 'no'", "reason": "FieldValueForbidden",
         "fieldPath": "['foo-bar']", "messageExpression": "'not ' + self.foo__dash__bar"},
        {"rule": "!has(self.half) || self.half * 2.0 < 10.0", "reason": "FieldValueRequired"},
        {"rule": "!has(self.percent) || (type(self.percent) == int ? self.percent < 100 : self.percent.matches('^[0-9]+%$'))"},
        {"rule": "!has(self.memory) || quantity(self.memory).isLessThan(quantity('2Gi'))"},
        {"rule": "!has(self.words) || self.words.all(w, w.size() < 5 || w.startsWith('long-'))"},
        {"rule": "self.?opt.orValue('fine') != 'bad'"},
        {"rule": "!has(self.numbers) || self.numbers.isSorted() && self.numbers.sum() < 10"},
        {"rule": "!has(self.site) || (isURL(self.site) && url(self.site).getScheme() == 'https')"},
        {"rule": "!has(self.net) || cidr(self.net).containsIP('10.0.0.1')"},
        {"rule": "!has(self.index) || self.words[self.index] == self.words[self.index]"},
    ],
    "properties": {
        "must": {"type": "string", "default": "given"},
        "short": {"type": "string", "maxLength": 3},
        "long": {"type": "string", "minLength": 3},
        "pattern": {"type": "string", "pattern": "^[a-z]+$"},
        "folded": {"type": "string", "pattern": "(?i)^abc"},
        "enum": {"type": "string", "enum": ["one", "two"]},
        "number-enum": {"type": "integer", "enum": [1, 2]},
        "low": {"type": "integer", "minimum": 1},
        "high": {"type": "integer", "maximum": 10},
        "above": {"type": "integer", "minimum": 1, "exclusiveMinimum": True},
        "below": {"type": "number", "maximum": 10, "exclusiveMaximum": True},
        "half": {"type": "number"},
        "even": {"type": "integer", "multipleOf": 2},
        "int32": {"type": "integer", "format": "int32"},
        "int64": {"type": "integer", "format": "int64"},
        "flag": {"type": "boolean"},
        "maybe": {"type": "string", "nullable": True},
        "percent": {"x-kubernetes-int-or-string": True, "maxLength": 8},
        "since": {"type": "string", "format": "date-time"},
        "day": {"type": "string", "format": "date"},
        "span": {"type": "string", "format": "duration"},
        "blob": {"type": "string", "format": "byte"},
        "mail": {"type": "string", "format": "email"},
        "host": {"type": "string", "format": "hostname"},
        "ip4": {"type": "string", "format": "ipv4"},
        "ip6": {"type": "string", "format": "ipv6"},
        "cidr": {"type": "string", "format": "cidr"},
        "mac": {"type": "string", "format": "mac"},
        "uuid": {"type": "string", "format": "uuid"},
        "uri": {"type": "string", "format": "uri"},
        "made-up": {"type": "string", "format": "made-up"},
        "words": {"type": "array", "maxItems": 3, "minItems": 1, "items": {"type": "string", "maxLength": 12}},
        "numbers": {"type": "array", "maxItems": 5, "items": {"type": "integer"}},
        "set": {"type": "array", "x-kubernetes-list-type": "set", "items": TEXT},
        "names": {
            "type": "array", "x-kubernetes-list-type": "map", "x-kubernetes-list-map-keys": ["key", "zone"],
            "maxItems": 8,
            "items": {"type": "object", "required": ["key"], "properties": {
                "key": {"type": "string", "maxLength": 8}, "zone": {"type": "string", "default": "eu"},
                "size": {"type": "integer", "x-kubernetes-validations": [{"rule": "self >= oldSelf",
                "message": "may not shrink"}]},
                "limit": {"type": "integer", "maximum": 5},
            }},
        },
        "map": {"type": "object", "minProperties": 1, "maxProperties": 2, "additionalProperties": {"type": "integer"}},
        "ruled": {"type": "object", "maxProperties": 8, "additionalProperties": {
            "type": "integer", "x-kubernetes-validations": [{"rule": "self > 0", "reason": "FieldValueDuplicate"}]}},
        "kept": {"type": "object", "x-kubernetes-preserve-unknown-fields": True,
                 "properties": {"known": {"type": "object", "properties": {"a": {"type": "integer"}}}}},
        "free": {"x-kubernetes-preserve-unknown-fields": True},
        "template": {"type": "object", "x-kubernetes-embedded-resource": True,
        "x-kubernetes-preserve-unknown-fields": True},
        "foo-bar": BRIEF, "opt": BRIEF, "memory": BRIEF, "site": BRIEF, "net": BRIEF, "index": {"type": "integer"},
        "fixed": {"type": "string", "maxLength": 20, "x-kubernetes-validations": [
            {"rule": "self == oldSelf", "message": "is immutable"}]},
        "grown": {"type": "integer", "x-kubernetes-validations": [
            {"rule": "!oldSelf.hasValue() || self >= oldSelf.value()", "optionalOldSelf": True}]},
        "either": {"type": "object", "properties": {"a": TEXT, "b": TEXT}, "oneOf": [{"required": ["a"]},
        {"required": ["b"]}]},
        "some": {"type": "object", "properties": {"a": TEXT, "b": {"type": "integer"}},
                 "anyOf": [{"required": ["a"]}, {"properties": {"b": {"minimum": 5}}, "required": ["b"]}]},
        "all": {"type": "integer", "allOf": [{"minimum": 2}, {"maximum": 4}]},
        "not": {"type": "string", "not": {"enum": ["forbidden"]}},
        "deep": {"type": "object", "default": {}, "properties": {
            "level": {"type": "integer", "default": 7},
            "list": {"type": "array", "items": {"type": "object", "properties": {"x": {"type": "string",
            "default": "y"}}}}}},
    },
}  # fmt: skip

SCHEMA: dict[str, Any] = {"type": "object", "properties": {"spec": SPEC, "status": {"type": "object"}}}


def definition(plural: str, kind: str, schema: dict[str, Any]) -> dict[str, Any]:
    """A CustomResourceDefinition around a schema."""
    return {
        "apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition",
        "metadata": {"name": f"{plural}.{GROUP}"},
        "spec": {
            "group": GROUP, "scope": "Namespaced", "names": {"plural": plural, "singular": kind.lower(), "kind": kind},
            "versions": [{"name": "v1", "served": True, "storage": True, "schema": {"openAPIV3Schema": schema}}],
        },
    }  # fmt: skip


OBJECTS: tuple[dict[str, Any], ...] = (
    {}, {"must": None}, {"must": 1}, {"short": "abcd"}, {"short": "äöü"}, {"long": "ab"}, {"pattern": "ABC"},
    {"pattern": "abc\n"},
    {"folded": "xABC"}, {"folded": "ABCD"}, {"enum": "three"}, {"enum": None}, {"enum": 5}, {"number-enum": 3},
    {"number-enum": 1.0},
    {"low": 0}, {"low": 5, "high": 4}, {"high": 11}, {"above": 1}, {"below": 10}, {"below": 9.5}, {"half": 5},
    {"half": 4},
    {"half": "x"}, {"even": 3}, {"even": 4.0}, {"even": 4.5}, {"int32": 2**31}, {"int32": 1.5}, {"int64": 2**63 - 1},
    {"int64": 2**63},
    {"flag": "true"}, {"flag": 1}, {"flag": True}, {"maybe": None}, {"maybe": 3}, {"short": None}, {"percent": 3},
    {"percent": "3%"},
    {"percent": "x"}, {"percent": 1.5}, {"percent": True}, {"percent": 100},
    {"since": "2021-01-01T00:00:00Z"}, {"since": "2019-01-01T00:00:00Z"}, {"since": "yesterday"},
    {"since": "2021-13-01T00:00:00Z"},
    {"since": "2021-01-01T24:00:00Z"}, {"since": "2021-01-01t00:00:00.5+02:00"}, {"day": "2021-02-30"},
    {"day": "2024-02-29"},
    {"span": "1h30m"}, {"span": "3 days"}, {"span": "soon"}, {"span": "1.5h"}, {"blob": "YWJj"}, {"blob": "???"},
    {"blob": ""},
    {"mail": "a@b.c"}, {"mail": "nobody"}, {"host": "a.example"}, {"host": "-a"}, {"host": "x_y"}, {"ip4": "1.2.3.4"},
    {"ip4": "::1"},
    {"ip4": "1.2.3"}, {"ip4": "01.2.3.4"}, {"ip6": "::1"}, {"ip6": "1.2.3.4"}, {"cidr": "10.0.0.0/8"},
    {"cidr": "10.0.0.0/33"},
    {"mac": "00:11:22:33:44:55"}, {"mac": "00:11"}, {"uuid": "123e4567-e89b-12d3-a456-426614174000"}, {"uuid": "x"},
    {"uri": "https://a/b"}, {"uri": "a b"}, {"uri": "/x"}, {"uri": "x"}, {"made-up": "anything"},
    {"words": []}, {"words": ["a", "b", "c", "d"]}, {"words": ["a", 1, None]}, {"words": ["toolong"]},
    {"words": ["long-one"]},
    {"words": "x"}, {"words": ["a"], "index": 0}, {"words": ["a"], "index": 5},
    {"set": ["a", "b", "a", "a"]}, {"set": ["a"]}, {"names": [{"key": "a"}, {"key": "a"}]}, {"names": [{"key": "a"},
    {"key": "a", "zone": "us"}]},
    {"names": [{"key": "b"}, {"key": "a"}]}, {"numbers": [1, 2]}, {"numbers": [2, 1]}, {"numbers": [5, 6]},
    {"names": [{}]}, {"names": [3]}, {"names": [{"key": "a", "size": 1, "nope": 2}]},
    {"map": {}}, {"map": {"a": 1, "b": 2, "c": 3}}, {"map": {"a": "x"}}, {"map": {"a": None}}, {"ruled": {"a": 1,
    "b.c": -1}},
    {"kept": {"x": {"y": 1}, "known": {"a": 1, "b": 2}}}, {"kept": 3}, {"free": {"a": [1, {"b": None}]}}, {"free": 5},
    {"template": {}}, {"template": {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "x"}, "x": 1}},
    {"template": {"apiVersion": "a/b/c", "kind": "9x"}}, {"template": {"apiVersion": 1, "kind": ""}},
    {"template": {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "a/b", "labels": {"bad key!": "x"}}}},
    {"template": {"apiVersion": "v1", "kind": "Pod", "metadata": {"labels": {"a": "bad value!"}, "namespace": "Bad"}}},
    {"template": {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "x", "bogus": 1, "labels": {"a": "b"}}}},
    {"template": {"apiVersion": "v1", "kind": "Pod", "metadata": "x"}}, {"template": {"apiVersion": "v1",
    "kind": "Pod", "metadata": {"name": 5}}},
    {"template": "x"}, {"template": {"apiVersion": "v1", "kind": ""}}, {"template": {"apiVersion": "", "kind": "A-b"}},
    {"foo-bar": "no"}, {"foo-bar": "yes"}, {"opt": "bad"}, {"opt": "good"}, {"memory": "1Gi"}, {"memory": "3Gi"},
    {"memory": "x"},
    {"site": "https://a"}, {"site": "http://a"}, {"site": "::"}, {"net": "10.0.0.0/8"}, {"net": "11.0.0.0/8"},
    {"net": "x"},
    {"either": {}}, {"either": {"a": "x"}}, {"either": {"a": "x", "b": "y"}}, {"some": {}}, {"some": {"b": 1}},
    {"some": {"b": 6}},
    {"all": 1}, {"all": 3}, {"all": 5}, {"not": "forbidden"}, {"not": "fine"}, {"unknown": 1, "deep": {"more": 1,
    "level": None}},
    {"deep": {"list": [{}, {"x": None}, {"x": "z", "q": 1}]}}, {"deep": None}, {"deep": {"list": [None]}}, {"deep": []},
    {"must": "x", "short": "long", "enum": "x", "low": 0, "opt": "bad"}, {"fixed": "first"}, {"grown": 5},
)  # fmt: skip

UPDATES: tuple[tuple[dict[str, Any], dict[str, Any]], ...] = (
    ({"fixed": "a"}, {"fixed": "a"}), ({"fixed": "a"}, {"fixed": "b"}), ({"fixed": "a"}, {}), ({}, {"fixed": "b"}),
    ({"grown": 5}, {"grown": 6}), ({"grown": 5}, {"grown": 4}),
    ({"names": [{"key": "a", "size": 5}]}, {"names": [{"key": "a", "size": 4}]}),
    ({"names": [{"key": "a", "size": 5}]}, {"names": [{"key": "a", "zone": "us", "size": 4}]}),
    ({"names": [{"key": "a", "size": 5}, {"key": "b", "size": 1}]}, {"names": [{"key": "b", "size": 2}]}),
    ({"low": 1}, {"low": 0}), ({"set": ["a"]}, {"set": ["a", "a"]}),
)  # fmt: skip

SCHEMAS: dict[str, dict[str, Any]] = {
    "no type at the root": {"properties": {"a": TEXT}},
    "root is a list": {"type": "array", "items": TEXT},
    "field without a type": {"type": "object", "properties": {"a": {"description": "x"}}},
    "array without items": {"type": "object", "properties": {"a": {"type": "array"}}},
    "items without a type": {"type": "object", "properties": {"a": {"type": "array", "items": {}}}},
    "unknown type": {"type": "object", "properties": {"a": {"type": "text"}}},
    "additionalProperties at the root": {"type": "object", "additionalProperties": TEXT},
    "additionalProperties beside properties": {"type": "object", "properties": {
        "a": {"type": "object", "properties": {"b": TEXT}, "additionalProperties": TEXT}}},
    "type in an alternative": {"type": "object", "properties": {"a": {"type": "string",
    "anyOf": [{"type": "string"}]}}},
    "default in an alternative": {"type": "object", "properties": {"a": {"type": "string",
    "allOf": [{"default": "x"}]}}},
    "description in an alternative": {"type": "object", "properties": {"a": {"type": "string",
    "not": {"description": "x"}}}},
    "field only in an alternative": {"type": "object", "properties": {
        "a": {"type": "object", "oneOf": [{"properties": {"b": {"minimum": 1}}}]}}},
    "int-or-string with its anyOf": {"type": "object", "properties": {
        "a": {"x-kubernetes-int-or-string": True, "anyOf": [{"type": "integer"}, {"type": "string"}]}}},
    "int-or-string that preserves": {"type": "object", "properties": {
        "a": {"x-kubernetes-int-or-string": True, "x-kubernetes-preserve-unknown-fields": True}}},
    "preserve false": {"type": "object", "properties": {"a": {"type": "object",
    "x-kubernetes-preserve-unknown-fields": False}}},
    "embedded resource that is no object": {"type": "object", "properties": {
        "a": {"type": "string", "x-kubernetes-embedded-resource": True}}},
    "embedded resource without fields": {"type": "object", "properties": {
        "a": {"type": "object", "x-kubernetes-embedded-resource": True}}},
    "map without keys": {"type": "object", "properties": {"a": {
        "type": "array", "x-kubernetes-list-type": "map", "items": {"type": "object", "properties": {"k": TEXT}}}}},
    "map with a key that is no field": {"type": "object", "properties": {"a": {
        "type": "array", "x-kubernetes-list-type": "map", "x-kubernetes-list-map-keys": ["z"],
        "items": {"type": "object", "properties": {"k": TEXT}}}}},
    "map with an optional key": {"type": "object", "properties": {"a": {
        "type": "array", "x-kubernetes-list-type": "map", "x-kubernetes-list-map-keys": ["k"],
        "items": {"type": "object", "properties": {"k": TEXT}}}}},
    "keys without a map": {"type": "object", "properties": {"a": {
        "type": "array", "x-kubernetes-list-map-keys": ["k"], "items": {"type": "object", "properties": {"k": TEXT}}}}},
    "unknown list type": {"type": "object", "properties": {"a": {
        "type": "array", "x-kubernetes-list-type": "bag", "items": TEXT}}},
    "list type on an object": {"type": "object", "properties": {"a": {"type": "object",
    "x-kubernetes-list-type": "set"}}},
    "set of granular objects": {"type": "object", "properties": {"a": {
        "type": "array", "x-kubernetes-list-type": "set", "items": {"type": "object", "properties": {"k": TEXT}}}}},
    "unknown map type": {"type": "object", "properties": {"a": {"type": "object", "x-kubernetes-map-type": "odd"}}},
    "uniqueItems": {"type": "object", "properties": {"a": {"type": "array", "uniqueItems": True, "items": TEXT}}},
    "reference": {"type": "object", "properties": {"a": {"type": "string", "$ref": "#/x"}}},
    "definitions": {"type": "object", "definitions": {"x": TEXT}},
    "patternProperties": {"type": "object", "properties": {"a": {"type": "object", "patternProperties": {"x": TEXT}}}},
    "bad pattern": {"type": "object", "properties": {"a": {"type": "string", "pattern": "(a"}}},
    "pattern that looks ahead": {"type": "object", "properties": {"a": {"type": "string", "pattern": "(?=a)"}}},
    "default of the wrong type": {"type": "object", "properties": {"a": {"type": "string", "default": 5}}},
    "default with unknown fields": {"type": "object", "properties": {
        "a": {"type": "object", "properties": {"b": TEXT}, "default": {"c": 1}}}},
    "default out of range": {"type": "object", "properties": {"a": {"type": "integer", "minimum": 3, "default": 1}}},
    "default that breaks a rule": {"type": "object", "properties": {
        "a": {"type": "integer", "default": 1, "x-kubernetes-validations": [{"rule": "self > 3"}]}}},
    "default in metadata": {"type": "object", "properties": {
        "metadata": {"type": "object", "properties": {"name": {"type": "string", "default": "x"}}}}},
    "metadata beyond names": {"type": "object", "properties": {
        "metadata": {"type": "object", "properties": {"labels": {"type": "object", "additionalProperties": TEXT}}}}},
    "metadata that restricts the name": {"type": "object", "properties": {
        "metadata": {"type": "object", "properties": {"name": {"type": "string", "pattern": "^x"}}}}},
    "metadata that is a text": {"type": "object", "properties": {"metadata": TEXT}},
    "kind that is a number": {"type": "object", "properties": {"kind": {"type": "integer"}}},
    "nullable root": {"type": "object", "nullable": True},
    "type null": {"type": "object", "properties": {"a": {"type": "null"}}},
    "rule that does not parse": {"type": "object", "x-kubernetes-validations": [{"rule": "self.a ==="}],
    "properties": {"a": TEXT}},
    "rule on an unknown field": {"type": "object", "x-kubernetes-validations": [{"rule": "self.b == 'x'"}],
    "properties": {"a": TEXT}},
    "rule that is no truth": {"type": "object", "properties": {
        "a": {"type": "integer", "x-kubernetes-validations": [{"rule": "self + 1"}]}}},
    "rule with mixed types": {"type": "object", "properties": {
        "a": {"type": "integer", "x-kubernetes-validations": [{"rule": "self == 'x'"}]}}},
    "rule with an unknown function": {"type": "object", "properties": {
        "a": {"type": "string", "maxLength": 9, "x-kubernetes-validations": [{"rule": "self.shout() == 'x'"}]}}},
    "rule without text": {"type": "object", "properties": {"a": {"type": "string", "maxLength": 9,
    "x-kubernetes-validations": [{"rule": " "}]}}},
    "rule with a broken message": {"type": "object", "properties": {"a": {"type": "string", "maxLength": 9,
    "x-kubernetes-validations": [
        {"rule": "self != ''", "messageExpression": "self.nothing()"}]}}},
    "rule with an unknown reason": {"type": "object", "properties": {"a": {"type": "string", "maxLength": 9,
    "x-kubernetes-validations": [
        {"rule": "self != ''", "reason": "Because"}]}}},
    "rule with a path to nowhere": {"type": "object", "properties": {"a": {
        "type": "object", "properties": {"b": {"type": "string"}},
        "x-kubernetes-validations": [{"rule": "self.b != ''", "fieldPath": ".c"}]}}},
    "oldSelf in an atomic list": {"type": "object", "properties": {"a": {"type": "array", "maxItems": 9, "items": {
        "type": "integer", "x-kubernetes-validations": [{"rule": "self >= oldSelf"}]}}}},
    "optionalOldSelf without oldSelf": {"type": "object", "properties": {"a": {
        "type": "integer", "x-kubernetes-validations": [{"rule": "self > 0", "optionalOldSelf": True}]}}},
    "rule in an alternative": {"type": "object", "properties": {"a": {
        "type": "integer", "allOf": [{"x-kubernetes-validations": [{"rule": "self > 0"}]}]}}},
    "everything in order": SCHEMA,
}  # fmt: skip
