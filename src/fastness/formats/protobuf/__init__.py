"""Kubernetes' protobuf request bodies, decoded to the JSON form that the rest of the house works with.

kubectl's typed commands (`create namespace|configmap|secret|token|…`, `auth can-i`, `drain`) send protobuf and do not fall back
when a server refuses it; the answer may be JSON. A body is the magic `k8s\\0`, then an envelope with apiVersion, kind and the
bytes of the object:

    bytes → `wire` (tags, lengths) → `message` (tables, `special` types) → JSON form + paths of unknown fields

- `tables` are data: field numbers and JSON names of Kubernetes 1.36, one line per message. `kinds` says which kinds there are.
- Total and bounded: truncated, overlong or over-deep input is a `ProtobufError`, and so is a kind without a table
  (code `protobuf-unknown-kind`, which the API answers with 415).

The value goes on to defaulting and admission exactly as if it had come as JSON.
"""

from fastness.formats.protobuf.envelope import MAGIC, ProtobufObject, decode_object
from fastness.formats.protobuf.kinds import supported_kinds

__all__ = ["MAGIC", "ProtobufObject", "decode_object", "supported_kinds"]
