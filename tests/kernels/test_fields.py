"""The columns of the kernels' arrays: each name says its array, and stands where that array is indexed."""

import ast
from pathlib import Path

import acerl_np
from acerl_np.kernels.ground import state

PACKAGE = Path(acerl_np.__file__).parent
ARRAYS = {*state.Problem._fields, *state.State._fields}
WIDTHS = {
    name.removeprefix("N_").removesuffix("_FIELDS").lower(): value
    for name, value in vars(state).items()
    if name.startswith("N_") and name.endswith("_FIELDS")
}


def fields_of(array):
    """The columns of an array, by position."""
    found = {
        name: value
        for name, value in vars(state).items()
        if name.startswith(f"{array.upper()}_") and isinstance(value, int)
    }
    return sorted(found, key=found.__getitem__)


FIELDS = {field: array for array in WIDTHS for field in fields_of(array)}


def list_names(node):
    """The names in an expression, alone or of a module, as in `S.VEHICLE_TASK`."""
    names = {item.id for item in ast.walk(node) if isinstance(item, ast.Name)}
    return names | {item.attr for item in ast.walk(node) if isinstance(item, ast.Attribute)}


def find_misread(text):
    """Subscripts such as `state.task[b, task, VEHICLE_TASK]`, and the number of those that are right."""
    wrong, right = [], 0
    for node in ast.walk(ast.parse(text)):
        if not isinstance(node, ast.Subscript) or not isinstance(node.value, ast.Attribute):
            continue
        array = node.value.attr
        names = list_names(node.slice)
        # An index may itself be a column of another array: those are subscripts of their own.
        for inner in ast.walk(node.slice):
            if isinstance(inner, ast.Subscript):
                names -= list_names(inner)
        for name in names & FIELDS.keys():
            if FIELDS[name] == array:
                right += 1
            else:
                wrong.append(ast.unparse(node))
    return wrong, right


def test_columns_are_numbered_without_a_gap_and_arrays_are_as_wide():
    """And a problem and a state share no name but what kernels are compiled for."""
    assert {*state.Problem._fields} & {*state.State._fields} == {"errands"}
    assert WIDTHS.keys() <= ARRAYS
    simulator = acerl_np.Simulator(acerl_np.load_instance("DMH-01"))
    for array, width in WIDTHS.items():
        assert [getattr(state, field) for field in fields_of(array)] == list(range(width))
        owner = simulator.problem if array in state.Problem._fields else simulator.state
        assert getattr(owner, array).shape[-1] == width, array


def test_columns_stand_where_their_array_is_indexed():
    total = 0
    for path in PACKAGE.rglob("*.py"):
        wrong, right = find_misread(path.read_text())
        assert not wrong, f"{path}: {wrong}"
        total += right
    assert total > 250


def test_the_check_sees_a_mix_up():
    assert find_misread("state.task[b, state.vehicle[b, v, VEHICLE_TASK], TASK_START]") == ([], 2)
    assert find_misread("state.task[b, task, VEHICLE_TASK]")[0]
    assert find_misread("problem.fleet[i, v, RECORD_DEMAND]")[0]
    assert find_misread("state.task[b, task, S.VEHICLE_TASK]")[0]
    assert find_misread("state.task[b, task, S.TASK_START]") == ([], 1)
