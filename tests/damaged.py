"""Files of arrays of which one entry is another."""

import pytest

from acerl_np import PolicyError
from acerl_np.support.files import read_arrays, write_arrays


def check_damaged(path, rows, *loads, error=PolicyError):
    """Rows (entry, what it becomes or None, words): whoever loads such a file refuses it in one line."""
    arrays = read_arrays(path, error)
    for name, value, message in rows:
        own = {**arrays, name: value}
        write_arrays(path, {key: array for key, array in own.items() if array is not None})
        for load in loads:
            with pytest.raises(error, match=message) as caught:
                load(path)
            assert str(caught.value).startswith(f"{path}: ") and "\n" not in str(caught.value)
