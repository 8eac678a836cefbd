"""HTML whose text is escaped by construction.

    tag("a", "<b>", href="/machines/x")     ->  <a href="/machines/x">&lt;b&gt;</a>

`Markup` is the only type that goes out as it is, and only this module makes it: whatever else becomes a child or the value of
an attribute is text. Rules that keep a stranger's text from becoming more than text:

* Elements and attributes come out of closed lists. There is no way to write an event handler, a style, or a script with
  content: those attributes do not exist here.
* A picture (`svg`) holds rectangles only: nothing of what makes SVG a place for scripts.
* Values of `href`, `src` and `action` are paths of this page; anything else is a defect of the caller.
* Characters that are not shown, or that turn the direction of what follows, become U+FFFD: a name cannot hide or pose.
"""

from __future__ import annotations

import html
import re
from collections.abc import Iterable
from typing import Final, Union

from fastness.runtime.errors import FastnessError

Child = Union["Markup", str, int, None, Iterable["Child"]]
Value = str | int | bool | None

ELEMENTS: Final = frozenset({
    "a", "abbr", "article", "aside", "body", "br", "button", "caption", "code", "dd", "details", "div", "dl", "dt",
    "em", "figcaption", "figure", "footer", "form", "h1", "h2", "h3", "head", "header", "hr", "html", "input", "kbd",
    "label", "legend", "li", "link", "main", "mark", "meta", "nav", "ol", "optgroup", "option", "p", "pre", "progress",
    "rect", "script", "section", "select", "small", "span", "strong", "summary", "svg", "table", "tbody", "td",
    "textarea", "th", "thead", "time", "title", "tr", "ul",
})  # fmt: skip
VOID: Final = frozenset({"br", "hr", "input", "link", "meta"})
ATTRIBUTES: Final = frozenset({
    "action", "autocomplete", "autofocus", "charset", "class", "colspan", "content", "datetime", "defer", "disabled",
    "for", "height", "href", "id", "lang", "max", "maxlength", "method", "min", "name", "open", "placeholder", "rel",
    "required", "role", "rows", "scope", "selected", "spellcheck", "src", "tabindex", "title", "type", "value", "width",
    "x", "y",
})  # fmt: skip
_OURS: Final = re.compile(r"(?:data|aria)-[a-z]+(?:-[a-z]+)*")
_PLACES: Final = frozenset({"href", "src", "action"})
_RECTANGLES: Final = re.compile(r"(?:<rect [^<>]*></rect>)*")
# "//host" and "/\host" are addresses of other sites to a browser (WHATWG URL, relative slash state).
_HERE: Final = re.compile(r"(?:/(?![/\\])|\?|#)[^\x00-\x20\\]*")
# Controls except tab and line ends, marks and overrides of direction, invisible separators, halves of surrogate pairs.
_UNSHOWN: Final = re.compile(
    "[\x00-\x08\x0b\x0c\x0e-\x1f\x7f-\x9f\u061c\u200b-\u200f\u2028-\u202e\u2060-\u206f\ufeff\ud800-\udfff\ufff9-\ufffb]"
)


class Markup(str):
    """Text that is HTML already; made here and nowhere else."""

    __slots__ = ()


class BadMarkup(FastnessError):
    """A page asked for an element, an attribute or an address that pages do not have: a defect."""

    code = "BadMarkup"
    hint = "Use the elements and attributes that the lists of `markup.py` name."


EMPTY: Final = Markup("")


def text(value: str | int) -> Markup:
    """A value as text."""
    return Markup(html.escape(_UNSHOWN.sub("\ufffd", str(value)), quote=True))


def tag(element: str, *children: Child, **attributes: Value) -> Markup:
    """An element; names of attributes end in `_` where Python wants it, and have `_` for `-`. Raises BadMarkup."""
    if element not in ELEMENTS:
        raise BadMarkup(f"pages have no element {element!r}")
    opening = "".join([f"<{element}", *(_attribute(name, value) for name, value in attributes.items()), ">"])
    if element in VOID:
        return Markup(opening)
    inside = join(*children)
    if element == "svg" and not _RECTANGLES.fullmatch(inside):
        raise BadMarkup("a picture is made of rectangles and nothing else")
    # Inside of a script element text is not escaped by the parser: there is no safe way to write a value there.
    if element == "script" and inside:
        raise BadMarkup("a script comes from a file, never from a page")
    return Markup(f"{opening}{inside}</{element}>")


def join(*children: Child) -> Markup:
    """Children one after the other."""
    return Markup("".join(_flat(children)))


def document(head: Markup, body: Markup) -> bytes:
    """A whole page."""
    whole = tag("html", tag("head", head), body, lang="en")
    return f"<!doctype html>\n{whole}\n".encode()


def _flat(children: Iterable[Child]) -> Iterable[str]:
    for child in children:
        if child is None:
            continue
        if isinstance(child, Markup):
            yield str(child)
        elif isinstance(child, str | int):
            yield str(text(child))
        else:
            yield from _flat(child)


def _attribute(name: str, value: Value) -> str:
    name = name.rstrip("_").replace("_", "-")
    if name not in ATTRIBUTES and not _OURS.fullmatch(name):
        raise BadMarkup(f"pages have no attribute {name!r}")
    if value is None or value is False:
        return ""
    if value is True:
        return f" {name}"
    if name in _PLACES and not _HERE.fullmatch(str(value)):
        raise BadMarkup(f"{name} leads away from the page")
    return f' {name}="{text(value)}"'
