"""Rules and features of users wherever a policy goes: equal to the package's own, or refused in one line."""

import copy
import gc
import importlib
import re
import subprocess
import sys
import weakref
from pathlib import Path

import numba
import numpy as np
import own_rules
import pytest
from episodes import begin, rate
from tables_and_refusals import list_unrefused
from trainings import list_differences

import acerl_np
from acerl_np import Config, Dispatcher, IndexPolicy, Instance, Lookahead, Simulator, TaskArrived
from acerl_np.evaluation.importance import list_parts
from acerl_np.evaluation.tracing import trace_policy
from acerl_np.kernels.dispatching.floor import Floor
from acerl_np.problem.goal import Goal
from acerl_np.support.errors import PolicyError
from acerl_np.support.machine_code import cache_folder
from acerl_np.support.own import write_own

RECORDS = acerl_np.load_suite("dmh-train")[:3]
NEAR = str(Path(own_rules.__file__)) + ":near"
compiled = pytest.mark.skipif(bool(numba.config.DISABLE_JIT), reason="nothing is compiled")


def evaluate(policy, trials=1, **how):
    return acerl_np.evaluate_policy(policy, RECORDS, trials=trials, **how)


def assert_same(one, other, **how):
    assert list_differences(evaluate(one, **how), evaluate(other, **how)) == []


def test_trials_on_any_threads():
    for n in (1, 2):
        assert_same(own_rules.near, "nearest", trials=2, threads=n)
    one, other = (evaluate(own_rules.drawn, trials=2, seed=3, threads=n) for n in (1, 2))
    assert list_differences(one, other) == []
    assert (one.makespan[:, 0] != one.makespan[:, 1]).any()


BOTH_FEATURES = [
    IndexPolicy([-0.5, -1.0], features=["approach", own]) for own in (own_rules.waited, "waiting")
]


@pytest.mark.compiles
@pytest.mark.parametrize(
    ("both", "options"),
    [
        pytest.param((own_rules.near, "nearest"), {"futures": 3}, marks=pytest.mark.slow),
        *((BOTH_FEATURES, {"futures": 2, "bases": bases}) for bases in (1, 2)),
    ],
)
def test_a_lookahead_over_a_rule_or_a_feature(both, options):
    assert_same(*(Lookahead(base, history=RECORDS, **options) for base in both))


@pytest.mark.compiles
@pytest.mark.parametrize(
    "base",
    [
        *(pytest.param(own, marks=pytest.mark.long) for own in (own_rules.drawn, own_rules.first)),
        IndexPolicy([0.3, -1.0], features=(own_rules.chance, "approach")),
    ],
)
def test_what_a_user_draws_differs_between_the_futures_of_a_record(base):
    """Where nothing else does: the day's own record under another name, all of its arrivals as they come."""
    record = Instance.from_rows("another", RECORDS[0].layout, RECORDS[0].rows()[:12])
    rows = [*record.rows()[:11], {**record.rows()[11], "expiry_time": 1.0}]
    day = Instance.from_rows("day", record.layout, rows)
    simulator = Simulator(day, slots="pool")
    ahead = Lookahead(base, history=record, futures=9).prepare(simulator.problem, [day])[1]()
    begin(simulator, ahead, (0, 1, 2, 3))
    values = []
    for f in range(9):
        rate(simulator, ahead, f, f + 1)
        values.append(ahead.value[0, 0, 0])
    assert ahead.agreement[0] == 1.0 and ahead.deviation[0] == 0.0
    assert len(set(values)) > 1


OWN = """
import numba
import acerl_np
{}
factor = 2
@numba.njit
def helper(x):
    return factor * x
@acerl_np.rule
def mine(floor, vehicle, task):
    return helper(floor.metres(vehicle, task)) + floor.draw(vehicle, task)
if __name__ == "__main__":
    records = acerl_np.load_suite("dmh-train")[:1]
    acerl_np.evaluate_policy(mine, records, trials=1, threads=1)
"""


@compiled
@pytest.mark.slow
def test_a_rule_of_a_file_is_kept_until_a_value_that_it_reads_changes(tmp_path):
    def play(source):
        (tmp_path / "mine.py").write_text(source)
        words = [sys.executable, "-W", "error", str(tmp_path / "mine.py")]  # numba's, too
        cache = Path(cache_folder("acerl_np.support.callbacks"))
        before = set(cache.glob("*mine_*.nbc"))
        subprocess.run(words, check=True)
        return len(set(cache.glob("*mine_*.nbc")) - before)

    source = OWN.format(f"unlike = '{tmp_path}'").replace("factor = 2", f"factor = {id(tmp_path)}")
    assert [play(source), play(source)] == [1, 0]
    # What it does not read does not matter; what its helper reads does.
    assert play(source.replace("unlike", "other")) == 0
    assert play(source.replace("factor = ", "factor = 1 + ")) == 1


@compiled
def test_a_rule_that_nobody_needs_goes():
    """As one of a notebook's cell, here with names of parameters; policies keep their features."""
    rule = acerl_np.rule(
        lambda floor, vehicle, task: (
            floor.metres(task=task, vehicle=vehicle) + 0.0 * floor.due(task=task)
        )
    )
    feature = acerl_np.feature(scale=1.0)(lambda floor, vehicle, task: floor.due(task))
    policy = IndexPolicy([1.0], features=[feature])
    one, other = map(weakref.ref, (rule.function, feature.function))
    del feature
    assert_same(rule, "nearest", threads=1)
    evaluate(policy, threads=1)
    del rule
    gc.collect()
    assert one() is None and other() is not None
    evaluate(copy.deepcopy(policy), threads=1)
    del policy
    gc.collect()
    assert other() is None


def test_a_dispatcher_follows_a_rule_and_says_so(tmp_path):
    layout = acerl_np.load_layout("dmh")
    dispatcher = Dispatcher(layout, own_rules.near, explain=True)
    sites = [site.id for site in layout.sites if site.id.startswith("st")]
    for k in range(2):
        dispatcher.feed(TaskArrived(0.0, f"t{k}", sites[k], sites[k + 2], 300.0))
    dispatcher.save(tmp_path / "saved.npz")
    first = dispatcher.decide(0.0)[0]
    assert first.rule == "near" and first.reason.measure == "value"
    values = [option.value for option in first.reason.options]
    assert values == sorted(values) and len(values) == 2 * len(layout.vehicles)
    again = Dispatcher.load(tmp_path / "saved.npz")
    assert again.policy is own_rules.near
    assert again.decide(0.0)[0][:2] == first[:2]


def test_a_rule_may_loop_and_name_things_as_modules_do():
    rules = own_rules.near, own_rules.near_in_a_loop
    plain, looped = (acerl_np.evaluate_policy(rule, RECORDS, trials=1) for rule in rules)
    assert np.array_equal(plain.makespan, looped.makespan)


def test_traces_and_files(empty, run):
    assert trace_policy(own_rules.near, RECORDS[0]).label == "near"
    own_rules.near.save("rule.npz")
    assert "own_rules:near" in run("policy show rule.npz").out
    assert acerl_np.load_policy("rule.npz") is own_rules.near
    assert repr(own_rules.near) == "own_rules:near"


def test_names_on_the_command_line(run):
    out = run(f"evaluate nearest --on dmh-train {NEAR} --trials 1").out
    rows = [line.split()[1:] for line in out.splitlines()[4:6]]
    assert rows[0][:8] == rows[1][:8]
    assert "a function with @acerl_np.rule" in run("evaluate own_rules:unmarked", 2).err
    told = run("evaluate no_such_module:x", 2).err.splitlines()[-1]
    assert "no_such_module:x: cannot be imported (ModuleNotFoundError" in told


def unknown(floor, vehicle, task):
    return floor.approach(vehicle, task) + floor.nothing(task)


def text(floor, vehicle, task):
    return "soon"


def mean_of_nothing(floor, vehicle, task):
    return floor.mean("nothing", vehicle)


def by_variable(floor, vehicle, task):
    total = 0.0
    for name in ("due", "slack"):
        total += floor.mean(name, vehicle)
    return total


def too_many(floor, vehicle, task):
    return floor.due(vehicle, task)


@compiled
@pytest.mark.parametrize(
    ("function", "reason", "line"),
    [
        (unknown, "Unknown attribute 'nothing' of type Floor", 1),
        (text, "it returns no number, or not always", 0),
        (mean_of_nothing, "mean: read 'nothing'; expected a measure of a task", 0),
        (too_many, "too many positional arguments", 1),
        (by_variable, "mean: read a variable; expected a name in quotes", 0),
    ],
)
def test_what_cannot_be_compiled_is_one_line(function, reason, line):
    at = function.__code__.co_firstlineno + line
    with pytest.raises(PolicyError) as caught:
        evaluate(acerl_np.rule(function))
    told = str(caught.value)
    assert re.match(rf"\S+:{function.__name__}: cannot be compiled: .*{re.escape(reason)}", told)
    assert told.endswith(f"test_own_rules.py, line {at})") and "\n" not in told


@compiled
def test_what_is_not_there_is_no_number():
    """Nothing is read beyond the tables: such a pair comes last, and the first of them is taken."""

    def beyond(floor, vehicle, task):
        site, there = floor.site(vehicle + 10**9) + floor.pickup(-1), 0.0
        for value in (
            *(floor.distance(site, 10**6), floor.mean("due", 10**6), floor.speed(vehicle + 99)),
            *(floor.slack(vehicle + 99, task), floor.slack(vehicle, task + 10**9)),
            floor.arrival(-task - 1),
        ):
            there += not np.isnan(value)
        return -there * task

    def first(floor, vehicle, task):
        return 0.0

    assert_same(acerl_np.rule(beyond), acerl_np.rule(first))


def test_what_is_no_rule_or_feature_is_one_line():
    rule, feature = acerl_np.rule, acerl_np.feature
    for make, own, message in [
        (rule, lambda floor, task, vehicle: 0.0, "read parameters .floor, task, vehicle."),
        (rule, len, "rule len: read .*; expected a function of .floor, vehicle, task."),
        (rule, lambda floor: 0, "expected a function of"),
        (rule(vehicle="any"), unknown, "vehicle: read 'any'; expected one of"),
        (lambda own: feature(scale=own), 0.0, "scale: read 0.0; expected a number above 0"),
        (lambda own: feature(scale=1.0, unit=own), "m", "unit: read 'm'; expected '' or 's'"),
        (feature(scale=1.0), len, "feature len: .*expected a function"),
    ]:
        with pytest.raises(PolicyError, match=message) as caught:
            make(own)
        assert "\n" not in str(caught.value)
    cases = [("own_rules:unmarked", "with @acerl_np.feature"), (own_rules.near, "features: read")]
    assert list_unrefused(lambda own: IndexPolicy([1.0], features=[own]), cases, PolicyError) == []


def test_a_feature_is_trained_and_kept(tmp_path):
    features = [own_rules.way, "slack", "own_rules:odd"]
    own = acerl_np.ACERL(RECORDS, Config.preset("best", features=features, decisions=2000), seed=1)
    own.step()
    names = [name.partition("@")[0] for name in own.config.features]
    assert names == ["slack", "own_rules:way", "own_rules:odd"]
    own.save(tmp_path / "run.npz")
    own.step()
    resumed = acerl_np.ACERL.resume(tmp_path / "run.npz")
    resumed.step()
    assert np.array_equal(resumed.policy.theta, own.policy.theta)
    own.policy.save(tmp_path / "policy.npz")
    again = acerl_np.load_policy(tmp_path / "policy.npz")
    assert again.features == own.policy.features
    assert_same(own.policy, again)
    assert list_parts(again)[1].effect.endswith("way to the pickup")
    reasons = [d.reason for d in trace_policy(again, RECORDS[0]).decisions if d.reason.parts]
    words = {part.words for reason in reasons for part in reason.parts}
    assert {"way to the pickup", "odd"} <= words


def test_a_file_whose_feature_is_not_there(empty, run):
    before, module = list(sys.path), empty / "own_feature_of_a_test.py"
    module.write_text(
        "import acerl_np\n@acerl_np.feature(scale=1.0)\n"
        "def mine(floor, vehicle, task):\n    return floor.demand(task)\n"
    )
    IndexPolicy([1.0], features=[f"{module}:mine"]).save("policy.npz")
    sys.path[:] = before
    assert "no records in the file" in run("policy show policy.npz --trust-code").out
    assert sys.path == before
    sys.modules.pop(module.stem)
    gc.collect()  # the feature goes with its module
    out = run("policy show policy.npz --on dmh-train").out
    assert "its functions are not imported unasked; --trust-code does" in out
    with pytest.raises(PolicyError, match=r"own_feature_of_a_test:mine.*trust=True"):
        acerl_np.load_policy("policy.npz")
    assert module.stem not in sys.modules
    policy = acerl_np.load_policy("policy.npz", trust=True)
    assert list(policy.features) == ["own_feature_of_a_test:mine"]
    assert sys.path == before
    del policy
    sys.modules.pop(module.stem)
    gc.collect()
    module.unlink()
    importlib.invalidate_caches()
    with pytest.raises(PolicyError, match="own_feature_of_a_test:mine: cannot be imported"):
        acerl_np.load_policy("policy.npz", trust=True)


def test_functions_of_one_name_are_told_apart():
    def make(sign):
        own = lambda floor, vehicle, task: sign * floor.metres(vehicle, task)  # noqa: E731
        return acerl_np.feature(scale=1.0)(own)

    near, far = make(-1.0), make(1.0)
    one, other = (evaluate(IndexPolicy([1.0], features=[own])) for own in (near, far))
    assert one.makespan.mean() < other.makespan.mean()
    with pytest.raises(PolicyError, match="features: read two functions"):
        IndexPolicy([1.0, 1.0], features=[near, far])
    assert IndexPolicy([1.0], features=[near, near]).features == (near.name,)
    weights = {own_rules.way.name: -1.0, "slack": 2.0}
    assert IndexPolicy.of_weights(**weights).theta.tolist() == [2.0, -1.0]


def test_no_file_leads_to_another(tmp_path):
    """Neither a path nor a name without a hash is followed, and a rule's file holds a rule."""
    payload = tmp_path / "payload_of_a_test.py"
    payload.write_text("raise SystemExit('was run')\n")
    arrays = own_rules.near.to_arrays()
    for name, message in (
        (f"{payload}:f", "expected module:name in a file"),
        ("os:abort", r"code that no file imports unasked; expected --trust-code"),
        (write_own(own_rules.unmarked), "no function with @acerl_np.rule"),
    ):
        with pytest.raises(PolicyError, match=message):
            type(own_rules.near).from_arrays({**arrays, "function": np.array(name)})
    arrays = IndexPolicy([1.0], features=[own_rules.way]).to_arrays()
    arrays["features"] = np.frombuffer(f"{payload}:f".encode(), np.uint8)
    with pytest.raises(PolicyError, match="expected module:name in a file"):
        IndexPolicy.from_arrays(arrays)
    with pytest.raises(acerl_np.ConfigError, match="expected module:name in a file"):
        Goal.from_dict({"objective": f"{payload}:f"})


def test_the_page_lists_what_a_floor_can_say():
    page = (Path(__file__).parents[2] / "docs" / "extending.md").read_text(encoding="utf-8")
    listed = re.findall(r"^\| `floor\.(\w+)\(.*?\)` \| (.*) \|$", page, re.MULTILINE)
    own = {name: own.__doc__ for name, own in vars(Floor).items() if hasattr(own, "__code__")}
    expected = {name: words.rstrip(".") for name, words in own.items() if name[0] != "_" and words}
    assert dict(listed) == expected
