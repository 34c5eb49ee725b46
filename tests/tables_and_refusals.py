"""Tables written for tests of records, and what every refusal of a file must be."""

import pytest

from acerl_np import InputError, RecordError

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


def list_unrefused(call, cases, error=InputError):
    """Of what is given with a part of its refusal's one line: what is taken, or refused otherwise."""
    found = []
    for given, part in cases:
        try:
            call(given)
            found.append(f"{given!r:.99} is taken")
        except error as caught:
            message = str(caught)
            if part not in message or "\n" in message or not message.isprintable():
                found.append(f"{given!r:.99}: {message}; expected {part}")
    return found
