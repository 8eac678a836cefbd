"""The log of a build: bounded, with its progress, and without credentials."""

from __future__ import annotations

import base64

import pytest

from fastness.builds.log import HEAD, REMOVED, TAIL, BuildLog, forms_of


def test_a_log_without_end_keeps_its_beginning_and_its_end_and_says_what_is_missing() -> None:
    log = BuildLog()
    for number in range(40_000):
        log.add(f"line {number}\n".encode())
    assert len(log.text) < HEAD + TAIL + 100
    assert log.text.startswith("line 0\n")
    assert log.text.endswith("line 39999\n")
    assert "bytes left out" in log.text


@pytest.mark.row("003-52")
def test_progress_is_the_step_that_runs_also_when_it_prints_a_lot() -> None:
    log = BuildLog()
    log.say("pulling the base image")
    assert log.progress == "pulling the base image"
    log.add(b"STEP 1/3: FROM base\nSTEP 2/3: RUN make\n")
    assert log.progress == "step 2 of 3: RUN make"
    log.add(b"x" * (TAIL + HEAD))
    log.add(b"y" * TAIL)
    assert log.progress == "step 2 of 3: RUN make"


def test_no_form_of_a_login_stands_in_a_log() -> None:
    log = BuildLog(forms_of([("robot", "pass-canary"), None, ("x", "abc")]))
    basic = base64.b64encode(b"robot:pass-canary").decode()
    log.add(f"asked with pass-canary, Basic {basic}, abc".encode())
    log.say("refused: pass-canary")
    assert "canary" not in log.text + log.progress + log.tail()
    assert basic not in log.text
    assert log.text.count(REMOVED) == 3
    assert "abc" in log.text, "what is shorter than a secret can be stays"


def test_what_was_read_again_takes_the_place_of_what_was_read_before() -> None:
    log = BuildLog()
    log.replace(b"one\n")
    version = log.version
    log.replace(b"one\n")
    assert log.version == version, "nothing new is no news"
    log.replace(b"one\ntwo\n")
    assert (log.text, log.version > version) == ("one\ntwo\n", True)
