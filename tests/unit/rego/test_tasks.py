"""Messages over a pipe: what is written is read, and a length that is too great is refused before anything is."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fastness.rego.tasks import HEAD, MAX_FRAME, frame_length, framed


@given(st.binary(max_size=2000))
def test_a_message_comes_back_by_its_length(message: bytes) -> None:
    data = framed(message)
    assert data[HEAD : HEAD + frame_length(data[:HEAD])] == message


@given(st.binary(min_size=HEAD, max_size=HEAD))
def test_any_head_gives_a_length_within_the_bound_or_an_error(head: bytes) -> None:
    if int.from_bytes(head) > MAX_FRAME:
        with pytest.raises(ValueError, match="too long"):
            frame_length(head)
    else:
        assert frame_length(head) == int.from_bytes(head)


def test_a_message_that_is_too_long_is_not_written() -> None:
    with pytest.raises(ValueError, match="too long"):
        framed(bytes(MAX_FRAME + 1))
