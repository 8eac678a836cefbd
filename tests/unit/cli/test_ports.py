"""Which port `fastness up` takes: the asked one or an error, else the usual or the next that is free."""

from __future__ import annotations

import pytest

from fastness.app.parts import PORTS, Part
from fastness.cli.errors import CliError
from fastness.cli.run import up


def test_the_next_free_port_is_taken_and_named(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(up, "_free", lambda _host, port: port not in (6443, 6444))
    assert up._port("127.0.0.1", None) == 6445
    assert capsys.readouterr().err == "port 6443 is in use; using 6445\n"


def test_the_usual_port_is_taken_without_a_word(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(up, "_free", lambda _host, _port: True)
    assert up._port("127.0.0.1", None, PORTS[Part.PAGE], "--page-port") == PORTS[Part.PAGE]
    assert capsys.readouterr().err == ""


def test_when_all_near_ones_are_in_use_the_system_chooses(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(up, "_free", lambda _host, _port: False)
    assert up._port("127.0.0.1", None) == 0


def test_a_port_that_was_asked_for_and_is_in_use_is_an_error_that_names_the_option(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(up, "_free", lambda _host, _port: False)
    with pytest.raises(CliError, match=r"port 8443 on 127\.0\.0\.1 is in use") as refused:
        up._port("127.0.0.1", 8443, PORTS[Part.PAGE], "--page-port")
    assert "--page-port 0 for any" in refused.value.hint
    assert up._port("127.0.0.1", 0) == 0
