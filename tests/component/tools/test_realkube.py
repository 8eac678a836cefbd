"""Where the real programs are looked for, and what the build is named after."""

from __future__ import annotations

import os
import shutil
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from threading import Event

import pytest

from tests.patience import PATIENCE
from tools import realkube
from tools.realkube import (
    KUBERNETES,
    RECIPES,
    RealKubeError,
    Recipe,
    build_key,
    cache_root,
    ensure,
    go_environment,
    holds_all,
    link_flags,
    locate,
)

GO_MOD = "module m\n\ngo 1.26.0\n\nrequire (\n\tk8s.io/kubernetes v1.36.4 // indirect\n)\n"


def put_programs(directory: Path, *names: str, mode: int = 0o755) -> Path:
    directory.mkdir(parents=True)
    for name in names or tuple(realkube.PACKAGES):
        (directory / name).write_text("#!/bin/sh\n")
        (directory / name).chmod(mode)
    return directory


@pytest.fixture
def recipe(tmp_path: Path) -> Recipe:
    directory = tmp_path / "pins"
    directory.mkdir()
    (directory / "go.mod").write_text(GO_MOD)
    (directory / "go.sum").write_text("k8s.io/kubernetes v1.36.4 h1:abc=\n")
    return KUBERNETES._replace(pins=directory)


@pytest.fixture
def env(tmp_path: Path) -> dict[str, str]:
    return {"XDG_CACHE_HOME": str(tmp_path / "cache"), "PATH": "", "HOME": str(tmp_path)}


def test_nothing_is_found_where_nothing_is(env: dict[str, str], recipe: Recipe) -> None:
    assert locate(env, recipe) is None


def test_assets_directory_wins_over_path_and_cache(env: dict[str, str], recipe: Recipe, tmp_path: Path) -> None:
    assets = put_programs(tmp_path / "assets")
    on_path = put_programs(tmp_path / "bin")
    built = put_programs(cache_root(env) / build_key(recipe))
    assert locate({**env, "PATH": str(on_path), "KUBEBUILDER_ASSETS": str(assets)}, recipe) == assets
    assert locate({**env, "PATH": f"/nowhere:{on_path}"}, recipe) == on_path
    assert locate(env, recipe) == built


def test_assets_without_the_controller_manager_are_passed_over(
    env: dict[str, str], recipe: Recipe, tmp_path: Path
) -> None:
    assets = put_programs(tmp_path / "assets", "etcd", "kube-apiserver")
    built = put_programs(cache_root(env) / build_key(recipe))
    assert locate({**env, "KUBEBUILDER_ASSETS": str(assets)}, recipe) == built


def test_programs_that_cannot_be_run_do_not_count(tmp_path: Path) -> None:
    assert not holds_all(put_programs(tmp_path / "bin", mode=0o644))


def test_relative_entries_of_path_are_ignored(
    env: dict[str, str], recipe: Recipe, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    put_programs(tmp_path / "bin")
    monkeypatch.chdir(tmp_path)
    assert locate({**env, "PATH": "bin::."}, recipe) is None


def test_relative_cache_home_is_ignored(tmp_path: Path) -> None:
    assert cache_root({"XDG_CACHE_HOME": "cache", "HOME": str(tmp_path)}) == tmp_path / ".cache/fastness/realkube"


@pytest.mark.parametrize("name", ["go.mod", "go.sum"])
def test_key_changes_with_every_pin(recipe: Recipe, name: str) -> None:
    before = build_key(recipe)
    (recipe.pins / name).write_text((recipe.pins / name).read_text() + "// more\n")
    assert build_key(recipe) != before


def test_key_changes_with_our_own_lines(recipe: Recipe) -> None:
    before = build_key(recipe)
    (recipe.pins / "main.go").write_text("package main\n")
    assert build_key(recipe) != before


def test_key_changes_with_the_flags(recipe: Recipe, monkeypatch: pytest.MonkeyPatch) -> None:
    before = build_key(recipe)
    monkeypatch.setattr(realkube, "BUILD_FLAGS", ("-race",))
    assert build_key(recipe) != before


def test_programs_report_the_pinned_release() -> None:
    flags = link_flags(GO_MOD)
    assert "-X k8s.io/component-base/version.gitVersion=v1.36.4" in flags
    assert "-X k8s.io/component-base/version.gitMinor=36" in flags


def test_missing_pin_is_named() -> None:
    with pytest.raises(RealKubeError, match=r"k8s\.io/kubernetes") as caught:
        link_flags("module m\n\ngo 1.26.0\n")
    assert caught.value.code == "PinMissing"


def test_go_never_fetches_a_toolchain_nor_takes_flags_from_outside() -> None:
    settings = go_environment({"GOFLAGS": "-mod=mod", "GOTOOLCHAIN": "auto", "GOROOT": "/old", "GOPROXY": "https://p"})
    assert settings["GOTOOLCHAIN"] == "local"
    assert settings["GOFLAGS"] == ""
    assert "GOROOT" not in settings
    assert settings["GOPROXY"] == "https://p"


def fake_go(directory: Path, build: str, version: str = "go1.26.0") -> str:
    """A `go` that answers its version and runs a shell line for `go build … -o $out package`."""
    directory.mkdir(parents=True, exist_ok=True)
    lines = [
        "#!/bin/sh",
        f'if [ "$1" = env ]; then echo {version}; exit 0; fi',
        'while [ "$1" != -o ]; do shift; done',
        "out=$2",
        build,
    ]
    (directory / "go").write_text("\n".join(lines) + "\n")
    (directory / "go").chmod(0o755)
    return f"{directory}:/bin:/usr/bin"


def test_build_appears_complete_and_only_once(env: dict[str, str], recipe: Recipe, tmp_path: Path) -> None:
    path = fake_go(
        tmp_path / "go", f'echo "$out" >> {tmp_path}/built; printf "#!/bin/sh\\n" > "$out"; chmod 755 "$out"'
    )
    first = ensure({**env, "PATH": path}, recipe)
    assert first == cache_root(env) / build_key(recipe)
    assert holds_all(first)
    assert ensure({**env, "PATH": path}, recipe) == first
    assert len((tmp_path / "built").read_text().splitlines()) == len(realkube.PACKAGES)
    assert not list(first.parent.glob("*.partial"))


def test_second_builder_waits_and_takes_what_the_first_built(
    env: dict[str, str], recipe: Recipe, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    gate, waiting = tmp_path / "gate", Event()
    os.mkfifo(gate)
    monkeypatch.setattr(realkube, "say", lambda message: waiting.set() if "another build" in message else None)
    build = f'echo x >> {tmp_path}/built; read line < {gate}; printf "#!/bin/sh\\n" > "$out"; chmod 755 "$out"'
    path = fake_go(tmp_path / "go", build)
    # Open for both directions: the lines wait in the pipe for their readers, and nobody blocks on opening it.
    with ThreadPoolExecutor(2) as pool, os.fdopen(os.open(gate, os.O_RDWR), "wb", buffering=0) as opener:
        both = [pool.submit(ensure, {**env, "PATH": path}, recipe) for _ in range(2)]
        came = waiting.wait(PATIENCE)
        opener.write(b"go on\n" * len(realkube.PACKAGES))
        assert {future.result(timeout=30) for future in both} == {cache_root(env) / build_key(recipe)}
    assert came
    assert len((tmp_path / "built").read_text().splitlines()) == len(realkube.PACKAGES)


def test_failed_build_leaves_no_directory_that_looks_complete(
    env: dict[str, str], recipe: Recipe, tmp_path: Path
) -> None:
    path = fake_go(tmp_path / "go", "exit 1")
    with pytest.raises(RealKubeError) as caught:
        ensure({**env, "PATH": path}, recipe)
    assert caught.value.code == "BuildFailed"
    assert caught.value.hint
    assert locate({**env, "PATH": ""}, recipe) is None


def test_old_go_on_path_is_not_used(
    env: dict[str, str], recipe: Recipe, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    commands: list[str] = []

    def install(home: Path, release: str) -> None:
        commands.append(release)
        fake_go(home / "go" / "bin", 'printf "#!/bin/sh\\n" > "$out"; chmod 755 "$out"')

    monkeypatch.setattr(realkube, "install_go", install)
    path = fake_go(tmp_path / "old", "exit 1", version="go1.19.8")
    assert holds_all(ensure({**env, "PATH": path}, recipe))
    assert commands == ["1.26"]


def test_go_that_cannot_be_had_says_what_to_do(
    env: dict[str, str], recipe: Recipe, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("sys.executable", shutil.which("false") or "/bin/false")
    with pytest.raises(RealKubeError) as caught:
        ensure(env, recipe)
    assert caught.value.code == "GoMissing"
    assert "KUBEBUILDER_ASSETS" in caught.value.hint


def test_cache_that_cannot_be_written_is_a_clear_error(recipe: Recipe, tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(RealKubeError) as caught:
        ensure({"XDG_CACHE_HOME": str(tmp_path / "file"), "PATH": ""}, recipe)
    assert caught.value.code == "CacheUnwritable"


def test_every_recipe_has_pins_of_its_own() -> None:
    assert len({build_key(recipe) for recipe in RECIPES}) == len(RECIPES)
    assert len({program for recipe in RECIPES for program in recipe.packages}) == sum(
        len(recipe.packages) for recipe in RECIPES
    )


def test_only_kubernetes_reports_the_release_of_kubernetes() -> None:
    assert link_flags(GO_MOD, "") == "-s -w"
    kubernetes, *others = [recipe.release for recipe in RECIPES]
    assert kubernetes == "k8s.io/kubernetes"
    assert not any(others)


def test_our_own_pins_are_of_the_releases_we_compare_with() -> None:
    go_mod = (realkube.HERE / "go.mod").read_text()
    assert realkube.pinned_version(go_mod, "k8s.io/kubernetes").startswith("v1.36.")
    assert realkube.pinned_version(go_mod, "go.etcd.io/etcd/server/v3").startswith("v3.6.")
    replaced = {line.split()[3] for line in go_mod.splitlines() if " => k8s.io/" in line}
    assert replaced == {realkube.pinned_version(go_mod, "k8s.io/kubernetes").replace("v1.", "v0.")}
