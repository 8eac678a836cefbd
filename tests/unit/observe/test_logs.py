"""Log lines: one event out of a closed list, one line each, the same facts on a terminal and as JSON."""

from __future__ import annotations

import ast
import io
import json
import logging
from collections.abc import Iterator
from pathlib import Path

import pytest

import fastness
from fastness.observe import logs

LEVELS = frozenset({"debug", "info", "warning", "error", "exception"})
FOREIGN = {"library.failed"}  # named by the formatter, for records of libraries


@pytest.fixture(autouse=True)
def untouched() -> Iterator[None]:
    """Leave the global loggers as they were."""
    names = ("fastness", "asyncio", "uvicorn")
    loggers = [logging.getLogger(name) for name in names]
    settings = {logger.name: (list(logger.handlers), logger.level, logger.propagate) for logger in loggers}
    yield
    for name, (handlers, level, propagate) in settings.items():
        logger = logging.getLogger(name)
        logger.handlers[:], logger.propagate = handlers, propagate
        logger.setLevel(level)


def written(*, as_json: bool | None) -> io.StringIO:
    stream = io.StringIO()
    logs.configure(level="info", stream=stream, as_json=as_json)
    return stream


def events_in_code() -> set[str]:
    """The first argument of every call of a method that logs, in every module of ours that makes a logger."""
    events = set()
    for path in Path(fastness.__file__).parent.rglob("*.py"):
        text = path.read_text()
        if "_log = " not in text:
            continue
        for node in ast.walk(ast.parse(text)):
            if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr in LEVELS:
                owner = node.func.value
                if isinstance(owner, ast.Name) and owner.id == "_log":
                    [first, *rest] = node.args
                    assert isinstance(first, ast.Constant), f"{path.name}:{node.lineno}: an event is a literal"
                    assert not rest, f"{path.name}:{node.lineno}: values have names"
                    events.add(str(first.value))
    return events


def test_every_event_that_is_logged_is_listed_and_every_listed_one_is_logged() -> None:
    assert events_in_code() | FOREIGN == logs.EVENTS.keys()


def test_the_list_is_sorted_by_part_and_every_event_is_explained() -> None:
    assert [name.partition(".")[0] for name in logs.EVENTS] == sorted(name.partition(".")[0] for name in logs.EVENTS)
    assert all(text and not text.endswith(".") for text in logs.EVENTS.values())


def test_a_terminal_gets_a_readable_line() -> None:
    stream = written(as_json=False)
    logs.logger("store").info("store.opened", revision=7, objects=3)
    assert stream.getvalue()[9:] == "info    store.opened  revision=7 objects=3\n"


def test_everything_else_gets_one_object_per_line() -> None:
    stream = written(as_json=None)
    logs.begin_correlation("c-1")
    logs.logger("store").warning("store.opened", revision=7)
    logs.begin_correlation("")
    line = json.loads(stream.getvalue())
    assert line.pop("time").endswith("+00:00")
    assert line == {
        "level": "warning", "event": "store.opened", "logger": "store", "correlation": "c-1", "revision": "7",
    }  # fmt: skip


def test_a_value_can_neither_end_a_line_nor_speak_to_the_terminal() -> None:
    evil = "a\nb\x1b[2Jc\u2028d"
    for as_json in (True, False):
        stream = written(as_json=as_json)
        logs.logger("x").info("store.opened", path=evil)
        assert stream.getvalue().count("\n") == 1
        assert "\x1b" not in stream.getvalue()


def test_a_value_cannot_pretend_to_be_another_field() -> None:
    stream = written(as_json=True)
    logs.logger("x").info("store.opened", level="debug", time="never")
    line = json.loads(stream.getvalue())
    assert (line["level"], line["time"] == "never") == ("info", False)


def test_long_values_are_cut() -> None:
    stream = written(as_json=True)
    logs.logger("x").info("store.opened", body="x" * 100_000)
    assert len(stream.getvalue()) < logs.MAX_VALUE + 500


def test_a_traceback_belongs_to_its_event() -> None:
    for as_json in (True, False):
        stream = written(as_json=as_json)
        try:
            raise ValueError("boom")
        except ValueError:
            logs.logger("x").exception("request.failed", path="/x")
        assert "ValueError: boom" in stream.getvalue()
        assert "request.failed" in stream.getvalue()


def test_libraries_below_report_errors_as_our_event_and_no_warnings() -> None:
    stream = written(as_json=True)
    logging.getLogger("uvicorn.error").warning("Invalid HTTP request received.")
    assert stream.getvalue() == ""
    logging.getLogger("asyncio").error("Task exception was never retrieved")
    line = json.loads(stream.getvalue())
    assert (line["event"], line["message"]) == ("library.failed", "Task exception was never retrieved")
