"""The upper levels of a JSON text that is too deep to decode: enough to say whose it is.

Decoders recurse, so a text of a thousand levels gives no value at all, not even the name of the object in it. `cut` replaces
every container below a level by a string (`CUT`) without recursing, in one pass over strings and brackets; what is left decodes.
It does not check the text: that is for the decoder that reads the result.
"""

from __future__ import annotations

import re
from typing import Final

CUT: Final = b'"\\u0000cut: nested too deep"'
_TOKEN: Final = re.compile(rb'"[^"\\]*(?:\\.[^"\\]*)*"|[\[{]|[\]}]', re.DOTALL)
_OPEN: Final = frozenset(b"[{")
_QUOTE: Final = ord('"')


def cut(text: bytes, levels: int) -> bytes:
    """The text with every container that lies deeper than `levels` replaced by `CUT`."""
    parts: list[bytes] = []
    depth = resume = 0
    for token in _TOKEN.finditer(text):
        first = text[token.start()]
        if first == _QUOTE:
            continue
        if first in _OPEN:
            depth += 1
            if depth == levels + 1:
                parts += (text[resume : token.start()], CUT)
        else:
            if depth == levels + 1:
                resume = token.end()
            depth -= 1
    return b"".join((*parts, text[resume:])) if depth <= levels else b"".join(parts)
