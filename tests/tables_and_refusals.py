"""Tables written for tests of records, and what every refusal of a file must be."""

import pytest

from acerl_np import RecordError

HEADER = "task,pickup,delivery,arrival_time,expiry_time"
FLEET = [{"id": "v", "start": "A"}, {"id": "w", "start": "C"}]


def write(path, *lines):
    path.write_text("\n".join([*lines, ""]), encoding="utf-8")
    return path


def check_message(error, path, fragments):
    """One line that begins with the file and holds each fragment."""
    message = str(error)
    assert "\n" not in message
    assert message.isprintable()
    assert message.startswith(f"{path}: ")
    for fragment in fragments:
        assert fragment in message.removeprefix(f"{path}: ")


def refused(path, fragments, call, *arguments, error=RecordError, **options):
    """The call is refused in such a line."""
    with pytest.raises(error) as caught:
        call(*arguments, **options)
    check_message(caught.value, path, fragments)
