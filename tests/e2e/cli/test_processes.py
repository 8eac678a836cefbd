"""The command as a process: what it prints where, how it ends, what it leaves behind."""

from __future__ import annotations

import json
import signal
import socket
import stat
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest
import yaml

from tests.e2e.live import FASTNESS, Live, Outcome, environment, run
from tests.patience import PATIENCE


@pytest.fixture(scope="module")
def live(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Live]:
    with Live.start(tmp_path_factory.mktemp("cli")) as running:
        yield running


def fastness(home: Path, *words: str, **env: str) -> Outcome:
    return run([FASTNESS, *words], environment(home, **env), cwd=home)


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_up_ends_cleanly_when_it_is_asked_to(tmp_path: Path, number: int) -> None:
    running = Live.start(tmp_path)
    outcome = running.stop(number)
    assert (outcome.code, outcome.err) == (0, "stopping\n")
    again = Live.start(tmp_path)
    assert again.stop().code == 0


def test_up_says_where_things_are(live: Live) -> None:
    assert live.announced[:3] == ["Fastness is up.", f"  API         {live.url}", "  kubeconfig  state/kubeconfig"]


def test_up_prints_json_for_programs(tmp_path: Path) -> None:
    process = subprocess.Popen(
        [str(FASTNESS), "up", "--port", "0", "-o", "json"], cwd=tmp_path, env=environment(tmp_path), text=True,
        stdout=subprocess.PIPE, stderr=subprocess.PIPE,
    )  # fmt: skip
    try:
        assert process.stdout is not None
        printed = ""
        while not printed.endswith("}\n") or printed.count("{") != printed.count("}"):
            line = process.stdout.readline()
            assert line, process.communicate()[1]
            printed += line
        report = json.loads(printed)
        assert report["kubeconfig"] == "state/kubeconfig"
        assert report["endpoints"]["api"].startswith("https://127.0.0.1:")
    finally:
        process.send_signal(signal.SIGINT)
        process.communicate(timeout=PATIENCE)


def test_files_that_hold_keys_are_private(live: Live) -> None:
    private = [live.kubeconfig, live.state / "endpoints.json", live.state / "vault.json", live.state / "state.db"]
    private += list((live.state / "pki").glob("*.key")) + list((live.state / "pki").glob("*.pem"))
    assert len(private) > 5
    assert {stat.S_IMODE(path.stat().st_mode) for path in private} == {0o600}
    assert stat.S_IMODE(live.state.stat().st_mode) == 0o700


def test_a_second_process_on_the_directory_is_told_who_has_it(live: Live) -> None:
    outcome = fastness(live.home, "up", "--port", "0")
    assert outcome.code == 3
    assert f"process {live.process.pid}" in outcome.err
    assert "choose another state directory" in outcome.err


def test_a_port_in_use_is_an_error_with_a_way_out(tmp_path: Path) -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        port = taken.getsockname()[1]
        outcome = fastness(tmp_path, "up", "--port", str(port))
    assert outcome.code == 3
    assert outcome.err == (
        f"fastness: port {port} on 127.0.0.1 is in use\n  Choose another one with --port, or --port 0 for any.\n"
    )


def test_a_state_that_is_a_file_is_a_clear_error(tmp_path: Path) -> None:
    (tmp_path / "state").write_text("not a directory")
    outcome = fastness(tmp_path, "up", "--port", "0")
    assert outcome.code == 3
    assert "Traceback" not in outcome.err
    assert "state" in outcome.err


def test_kubeconfig_prints_the_file(live: Live) -> None:
    outcome = fastness(live.home, "kubeconfig")
    assert outcome.out == live.kubeconfig.read_text()
    assert yaml.safe_load(outcome.out)["clusters"][0]["cluster"]["server"] == live.url


def test_kubeconfig_of_nothing_says_how_to_get_one(tmp_path: Path) -> None:
    outcome = fastness(tmp_path, "kubeconfig")
    assert (outcome.code, outcome.out) == (3, "")
    assert "Start a control plane there with `fastness up`." in outcome.err


def test_backup_and_restore_carry_everything_over(live: Live, tmp_path: Path) -> None:
    live.kubectl("create", "configmap", "kept", "--from-literal=a=b")
    target = tmp_path / "backup.db"
    report = fastness(live.home, "backup", str(target), "-o", "json").json
    assert report["bytes"] == target.stat().st_size
    assert stat.S_IMODE(target.stat().st_mode) == 0o600
    vault = str(live.state / "vault.json")
    put_back = fastness(tmp_path, "restore", "--vault", vault, str(target), "-o", "json")
    assert put_back.json["objects"] == report["objects"]
    assert put_back.json["revision"] > report["revision"]
    with Live.start(tmp_path) as restored:
        assert restored.kubectl("get", "configmap", "kept", "-o", "jsonpath={.data.a}").out == "b"


def test_a_backup_never_overwrites(live: Live, tmp_path: Path) -> None:
    (tmp_path / "old.db").write_text("precious")
    outcome = fastness(live.home, "backup", str(tmp_path / "old.db"))
    assert outcome.code == 2
    assert (tmp_path / "old.db").read_text() == "precious"


def test_restore_refuses_what_is_no_backup_and_a_directory_in_use(live: Live, tmp_path: Path) -> None:
    (tmp_path / "noise.db").write_bytes(b"noise" * 1000)
    assert fastness(tmp_path, "restore", str(tmp_path / "noise.db")).code == 3
    good = tmp_path / "good.db"
    assert fastness(live.home, "backup", str(good)).code == 0
    outcome = fastness(live.home, "restore", "--force", str(good))
    assert outcome.code == 3
    assert live.kubectl("get", "--raw", "/readyz").out == "ok"


def test_up_without_the_vault_key_of_the_state_does_not_start(live: Live, tmp_path: Path) -> None:
    live.kubectl("create", "secret", "generic", "sealed", "--from-literal=a=b")
    backup = tmp_path / "b.db"
    fastness(live.home, "backup", str(backup))
    assert fastness(tmp_path, "restore", str(backup)).code == 3
    fastness(tmp_path, "restore", "--vault", str(live.state / "vault.json"), str(backup))
    (tmp_path / "state" / "vault.json").unlink()
    outcome = fastness(tmp_path, "up", "--port", "0")
    assert outcome.code == 3
    assert "vault" in outcome.err
    assert not (tmp_path / "state" / "vault.json").exists()


def test_crds_print_manifests_and_check_a_directory(tmp_path: Path) -> None:
    text = fastness(tmp_path, "crds", "--with", "machineconfig").out
    names = [definition["metadata"]["name"] for definition in yaml.safe_load_all(text)]
    assert "machineconfigs.machineconfiguration.openshift.io" in names
    assert "subscriptions.operators.coreos.com" not in names
    assert fastness(tmp_path, "crds", "--write", "out").code == 0
    assert fastness(tmp_path, "crds", "--check", "out").code == 0
    (tmp_path / "out" / f"{names[0]}.yaml").write_text("changed")
    outcome = fastness(tmp_path, "crds", "--check", "out")
    assert outcome.code == 1
    assert names[0] in outcome.err
    assert "fastness crds --write out" in outcome.err
    assert len(fastness(tmp_path, "crds", "--with", "machineconfig", "-o", "json").json["items"]) == len(names)


@pytest.mark.parametrize(
    ("shell", "word"), [("bash", "complete "), ("zsh", "#compdef fastness"), ("fish", "complete ")]
)
def test_completion_scripts_are_printed(tmp_path: Path, shell: str, word: str) -> None:
    script = fastness(tmp_path, _FASTNESS_COMPLETE=f"{shell}_source")
    assert script.code == 0
    assert word in script.out


def test_completion_offers_verbs(tmp_path: Path) -> None:
    completion = fastness(tmp_path, _FASTNESS_COMPLETE="bash_complete", COMP_WORDS="fastness ba", COMP_CWORD="1")
    assert "plain,backup" in completion.lines


def test_wrong_use_has_its_own_code(tmp_path: Path) -> None:
    assert fastness(tmp_path, "up", "--port", "eleven").code == 2
    assert fastness(tmp_path, "serve", "--roles", "cook").code == 2
    assert "There are: controllers" in fastness(tmp_path, "serve", "--roles", "cook").err


def test_serve_without_a_cluster_says_where_it_looked(tmp_path: Path) -> None:
    outcome = fastness(tmp_path, "serve", "--metrics-port", "0")
    assert outcome.code == 3
    assert "Traceback" not in outcome.err
    assert "kubeconfig" in outcome.err.lower()
