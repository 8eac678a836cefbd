"""No text, whatever it is, becomes an element or an attribute; pages cannot even ask for dangerous ones."""

from __future__ import annotations

from html.parser import HTMLParser

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from fastness.page.markup import ATTRIBUTES, ELEMENTS, BadMarkup, Markup, document, join, tag, text

ANYTHING = st.text(st.characters(), max_size=60) | st.sampled_from([
    "<script>alert(1)</script>", '"><img src=x onerror=alert(1)>', "' onclick='x", "</title><script>", "<!--", "-->",
    "&lt;script&gt;", "javascript:alert(1)", "\x00<b>", "</textarea><svg onload=x>", "<\ud800>", "\u202e<i>",
])  # fmt: skip


class Seen(HTMLParser):
    """What a browser would find."""

    def __init__(self, html: str) -> None:
        super().__init__(convert_charrefs=True)
        self.tags: list[tuple[str, dict[str, str | None]]] = []
        self.comments: list[str] = []
        self.data = ""
        self.feed(html)
        self.close()

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append((tag, dict(attrs)))

    def handle_data(self, data: str) -> None:
        self.data += data

    def handle_comment(self, data: str) -> None:
        self.comments.append(data)


@given(ANYTHING)
@example("<script>")
def test_text_never_yields_a_tag(value: str) -> None:
    parsed = Seen(text(value))
    assert (parsed.tags, parsed.comments) == ([], [])
    assert "<" not in text(value)
    assert ">" not in text(value)


@given(ANYTHING)
def test_a_value_never_leaves_its_attribute(value: str) -> None:
    parsed = Seen(tag("span", title=value))
    assert [(name, set(attributes)) for name, attributes in parsed.tags] == [("span", {"title"})]


@given(st.recursive(ANYTHING, lambda inner: st.lists(inner, max_size=4), max_leaves=8))
def test_children_of_any_shape_stay_children(children: object) -> None:
    parsed = Seen(tag("td", children))  # type: ignore[arg-type]  # any nesting
    assert [name for name, _ in parsed.tags] == ["td"]


@given(ANYTHING)
def test_every_page_can_be_sent(value: str) -> None:
    assert document(tag("title", value), tag("body", value)).decode("utf-8")


@given(ANYTHING.filter(str.isprintable).filter(lambda value: "\ufffd" not in value))
def test_what_can_be_shown_is_shown_as_it_is(value: str) -> None:
    markup = text(value)
    if "\ufffd" not in markup:
        assert Seen(markup).data == value


@pytest.mark.parametrize("char", ["\u202e", "\u2066", "\u200b", "\ufeff", "\x1b", "\x00", "\ud800"])
def test_characters_that_hide_or_turn_text_are_shown_as_a_mark(char: str) -> None:
    assert text(f"a{char}b") == "a\ufffdb"


@pytest.mark.parametrize("name", ["style", "iframe", "math", "object", "img", "base", "x><script"])
def test_there_are_no_dangerous_elements(name: str) -> None:
    with pytest.raises(BadMarkup):
        tag(name)


def test_a_picture_is_made_of_rectangles_and_nothing_else() -> None:
    assert tag("svg", tag("rect", x="0%", width="1%")) == '<svg><rect x="0%" width="1%"></rect></svg>'
    for inside in ("text", tag("a", "x", href="/"), tag("rect", tag("p"))):
        with pytest.raises(BadMarkup):
            tag("svg", inside)


@pytest.mark.parametrize("name", ["onclick", "style", "srcdoc", "formaction", "data_X", "x y"])
def test_there_are_no_dangerous_attributes(name: str) -> None:
    with pytest.raises(BadMarkup):
        tag("a", **{name: "x"})


def test_lists_hold_no_handlers_and_no_styles() -> None:
    assert not [name for name in ATTRIBUTES if name.startswith("on")]
    assert not ELEMENTS & {"style", "iframe", "object", "embed", "math", "template", "base"}


def test_a_script_has_no_content() -> None:
    assert tag("script", src="/assets/a.js") == '<script src="/assets/a.js"></script>'
    with pytest.raises(BadMarkup):
        tag("script", "alert(1)")


@pytest.mark.parametrize(
    "address", ["javascript:alert(1)", "//evil.example", "/\\evil", "https://evil.example", "data:x", "", "/a b", "/\t"]
)
def test_addresses_stay_on_the_page(address: str) -> None:
    with pytest.raises(BadMarkup):
        tag("a", href=address)


def test_only_markup_goes_out_as_it_is() -> None:
    assert join(tag("em", "x"), "<em>") == "<em>x</em>&lt;em&gt;"
    assert not isinstance(tag("em") + "<b>", Markup)  # added text makes it plain text again, which is escaped
    assert tag("p", tag("em") + "<script>") == "<p>&lt;em&gt;&lt;/em&gt;&lt;script&gt;</p>"


def test_flags_and_missing_values() -> None:
    assert tag("input", required=True, disabled=False, title=None, aria_label="x") == '<input required aria-label="x">'
