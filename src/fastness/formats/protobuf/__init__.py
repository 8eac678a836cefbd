r"""Kubernetes' protobuf request bodies, decoded to the JSON form that the rest of the house works with.

kubectl's typed commands (`create namespace|configmap|secret|token|…`, `auth can-i`, `drain`) send protobuf and do not fall back
when a server refuses it; the answer may be JSON. A body is the magic `k8s\0`, then an envelope with apiVersion, kind and the
bytes of the object. As a body is read:

    envelope.py  The envelope around every protobuf body: `k8s\0` and a `runtime.Unknown` message
    kinds.py     The kinds that may come as protobuf, and which message describes each
    wire.py      The protobuf wire format: varints, tags, lengths. Nothing here knows what a field means
    message.py   Decoding one message with the tables: wire fields in, the JSON form out
    special.py   Messages whose JSON form is not an object: times, quantities, int-or-string, raw JSON, lists of text
    schema.py    Message descriptions: the tables of this package, compiled to what the decoder looks up
    tables/      The messages of Kubernetes 1.36, as data: one line each

- The tables are data: field numbers and JSON names of Kubernetes 1.36, one line per message.
- Total and bounded: truncated, overlong or over-deep input is a `ProtobufError`, and so is a kind without a table
  (code `protobuf-unknown-kind`, which the API answers with 415).

The value goes on to defaulting and admission exactly as if it had come as JSON.
"""

from fastness.formats.protobuf.envelope import MAGIC, ProtobufObject, decode_object
from fastness.formats.protobuf.kinds import supported_kinds

__all__ = ["MAGIC", "ProtobufObject", "decode_object", "supported_kinds"]
