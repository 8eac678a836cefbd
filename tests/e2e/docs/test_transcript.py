"""The comparison of transcripts can fail: shapes, wildcards, continuation lines."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.e2e.docs.transcript import Shell, Step, matches, shape, steps

PAGE = """
```console
$ cat <<END
> a
> END
a
$ true
```

```yaml
$ not a command
```

```console
^C
stopping
```
"""


def test_steps_are_read_from_console_blocks_only() -> None:
    assert steps(PAGE) == [Step("cat <<END\na\nEND", ["a"]), Step("true"), Step("^C", ["stopping"])]


def test_a_block_that_begins_with_output_is_refused() -> None:
    with pytest.raises(ValueError, match="begins with a command"):
        steps("```console\noutput\n```\n")


@pytest.mark.parametrize(
    ("expected", "printed", "same"),
    [
        (["a"], ["a"], True),
        (["a"], ["b"], False),
        (["a"], ["a", "b"], False),
        (["a", "b"], ["a"], False),
        ([], ["surprise"], False),
        (["x … z"], ["x y z"], True),
        (["x … z"], ["x y"], False),
        (["…", "end"], ["one", "two", "end"], True),
        (["…", "end"], ["one", "two"], False),
        (["NAME   AGE", "a      5s"], ["NAME         AGE", "a            2m13s"], True),
        (["a   5s"], ["a   five"], False),
        (["https://127.0.0.1:6443"], ["https://127.0.0.1:40123"], True),
        (["at 2026-01-01T00:00:00Z"], ["at 2027-11-30T10:20:30.123Z"], True),
    ],
)
def test_output_is_compared_by_shape(expected: list[str], printed: list[str], same: bool) -> None:
    assert matches(expected, printed) is same


def test_versions_and_numbers_keep_their_meaning() -> None:
    assert shape("v1.36 and 42 objects") == "v1.36 and 42 objects"


def test_a_session_keeps_variables_and_directory(tmp_path: Path) -> None:
    shell = Shell(tmp_path, {"PATH": "/usr/bin:/bin"})
    shell.run(Step("mkdir below; cd below; export WORD=kept"))
    assert shell.run(Step("echo $WORD; basename $PWD")) == ["kept", "below"]
    assert shell.run(Step("echo oops >&2; false")) == ["oops"]
