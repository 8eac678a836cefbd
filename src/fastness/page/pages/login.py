"""The way in: a form for a token, or the confirmation of a one-time link; and pages that say no."""

from __future__ import annotations

from fastness.page.markup import Markup, tag
from fastness.page.pages.layout import Frame, PageFrame, page
from fastness.page.pages.parts import hidden

_TOKEN_COMMAND = "kubectl create token NAME --namespace NAMESPACE"


def login_page(frame: Frame, token: str, then: str, key: str = "", problem: str = "", provider: str = "") -> bytes:
    """The form; with a `key` the one that confirms a link, with a `provider` the way there as well."""
    alert = tag("p", problem, class_="problem", id="problem", role="alert") if problem else None
    form = _by_link(token, then, key) if key else _by_token(token, then)
    there = (
        tag("p", tag("a", "Log in with your organisation", href=provider, class_="button", id="provider"))
        if provider
        else None
    )
    return page(frame, PageFrame("Log in"), tag("div", alert, there, form, class_="card narrow"))


def onwards_page(frame: Frame, then: str) -> bytes:
    """Between the provider and the page: goes on by itself, and has a link for those who wait."""
    link = tag("p", "You are logged in. ", tag("a", "Go on", href=then))
    return page(frame, PageFrame("Logged in"), tag("div", link, class_="card narrow"))


def problem_page(frame: Frame, code: int, message: str, hint: str) -> bytes:
    """A refusal, with what to do about it."""
    title = {403: "Not allowed", 404: "Not found", 409: "Not now", 503: "Not available"}.get(code, "That did not work")
    back = tag("p", tag("a", "Back to the fleet", href="/"))
    card = tag("div", tag("p", message), tag("p", hint, class_="hint"), back, class_="card narrow")
    return page(frame, PageFrame(title), card)


def _by_link(token: str, then: str, key: str) -> Markup:
    return tag(
        "form", tag("p", "This link logs you in as administrator of this cluster. It works once."),
        hidden("form", token), hidden("then", then), hidden("key", key),
        tag("button", "Log in", type="submit", autofocus=True, class_="primary"), method="post", action="/login", class_="login",
    )  # fmt: skip


def _by_token(token: str, then: str) -> Markup:
    return tag(
        "form",
        hidden("form", token), hidden("then", then),
        tag("label", "Bearer token of the API", for_="bearer"),
        tag(
            "textarea", "", id="bearer", name="bearer", rows=4, required=True, autofocus=True, autocomplete="off",
            spellcheck="false", maxlength=16384,
        ),
        tag("button", "Log in", type="submit", class_="primary"),
        tag("p", "A service account's token: ", tag("code", _TOKEN_COMMAND), class_="hint"),
        tag("p", "You see and do here what the API lets that account see and do.", class_="hint"),
        method="post", action="/login", class_="login",
    )  # fmt: skip
