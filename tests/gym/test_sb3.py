"""The vector environment for Stable-Baselines3 beside that library's own of single environments.

It needs PyTorch, which comes with the extra:

    pip install -e '.[sb3]' && python -m pytest -m long tests/gym/test_sb3.py
"""

import sys
from pathlib import Path

import numpy as np
import pytest

from acerl_np import Agent, Instance, evaluate_policy, load_instance, load_policy, load_suite
from acerl_np.support.errors import InputError

pytestmark = [pytest.mark.long, pytest.mark.filterwarnings("default")]

pytest.importorskip("gymnasium")
pytest.importorskip("stable_baselines3", reason="needs the extra sb3")

from stable_baselines3.common.env_checker import check_env  # noqa: E402
from stable_baselines3.common.vec_env import DummyVecEnv  # noqa: E402

from acerl_np.gym import DMHEnv  # noqa: E402
from acerl_np.gym.sb3 import DMHVecEnv  # noqa: E402


@pytest.fixture(scope="module")
def records():
    return [
        Instance.from_rows(f"{record.name} short", record.layout, record.rows()[:n])
        for record, n in ((load_instance("DMH-01"), 3), (load_instance("DMH-02"), 5))
    ]


@pytest.mark.parametrize("actions", ["rules", "pairs"])
@pytest.mark.filterwarnings("error")
def test_its_checker_finds_nothing(records, actions):
    """It draws actions without their mask, so illegal ones are redrawn."""
    check_env(DMHEnv(records, illegal="redraw", actions=actions))


@pytest.mark.parametrize("options", [{}, {"actions": "pairs"}, {"horizon": 300.0}], ids=str)
def test_equals_its_own_vector_of_single_environments(records, options):
    n = 4
    ours = DMHVecEnv(n, records, **options)
    theirs = DummyVecEnv([lambda: DMHEnv(records, **options)] * n)
    for envs in (ours, theirs):
        envs.seed(5)
    observation, expected = ours.reset(), theirs.reset()
    assert ours.observation_space == theirs.observation_space
    assert ours.action_space == theirs.action_space
    rng, ends = np.random.default_rng(0), 0
    for _ in range(80):
        assert observation.dtype == expected.dtype
        assert np.array_equal(observation, expected)
        masks = np.stack(ours.env_method("action_masks"))
        assert np.array_equal(masks, np.stack(theirs.env_method("action_masks")))
        assert np.array_equal(masks, ours.action_masks())
        assert masks.any(axis=1).all(), "no row that is over reaches a learner"
        names = [info["instance"] for info in ours.reset_infos]
        assert names == [info["instance"] for info in theirs.reset_infos]
        actions = np.array([rng.choice(np.flatnonzero(mask)) for mask in masks])
        observation, rewards, dones, infos = ours.step(actions)
        expected, expected_rewards, expected_dones, expected_infos = theirs.step(actions)
        assert rewards.dtype == expected_rewards.dtype
        assert np.array_equal(rewards, expected_rewards)
        assert np.array_equal(dones, expected_dones)
        for done, info, other in zip(dones, infos, expected_infos, strict=True):
            assert bool(info) == done
            for key, value in info.items():
                np.testing.assert_array_equal(value, other[key], err_msg=key)
            ends += done
    assert ends > 8


def test_attributes_methods_and_options(records):
    envs = DMHVecEnv(3, records, render_mode="rgb_array")
    envs.set_options({"instance": records[1].name})
    envs.reset()
    assert [info["instance"] for info in envs.reset_infos] == [records[1].name] * 3
    envs.set_options([{"instance": record.name} for record in (*records, records[0])])
    with pytest.raises(InputError, match="options: differ between environments"):
        envs.reset()
    assert envs.has_attr("action_masks")
    assert not envs.has_attr("nothing")
    assert envs.get_attr("num_envs", [0, 2]) == [3, 3]
    with pytest.raises(AttributeError):
        envs.get_attr("nothing")
    assert len(envs.env_method("action_masks", indices=[1])) == 1
    with pytest.raises(AttributeError, match="no method of each environment"):
        envs.env_method("step", 0)
    envs.set_attr("note", 1)
    assert envs.get_attr("note") == [1, 1, 1]
    with pytest.raises(InputError, match="expected all environments"):
        envs.set_attr("note", 1, indices=[0])
    assert envs.env_is_wrapped(DMHEnv) == [False] * 3
    assert len(envs.get_images()) == 3
    assert envs.render().ndim == 3
    envs.close()


def test_an_episode_without_a_decision_is_refused(records):
    row = {"task": "a", "pickup": "st2", "delivery": "st1", "arrival_time": 9, "expiry_time": 9}
    late = Instance.from_rows("late", records[0].layout, [row])
    with pytest.raises(InputError, match="horizon: late has no decision before it"):
        DMHVecEnv(2, late, horizon=5).reset()


def run(code, names=None):
    """Run an example of the page with shorter trainings; return its names."""
    names = {} if names is None else names
    exec(compile(code.replace("100_000", "4_096"), "environments.md", "exec"), names)
    return names


def test_the_examples_of_the_page_run(tmp_path, monkeypatch, capsys):
    """Train, save, load, evaluate with masks, go on; judge; become a policy of acerl_np and dispatch."""
    torch = pytest.importorskip("torch")
    pytest.importorskip("sb3_contrib", reason="needs the extra sb3")
    torch.set_num_threads(1)
    monkeypatch.chdir(tmp_path)
    # To save a model, the library asks for the version of Gymnasium's forerunner, and would find this folder.
    monkeypatch.setitem(sys.modules, "gym", None)
    page = (Path(__file__).parents[2] / "docs" / "environments.md").read_text(encoding="utf-8")
    train, evaluate, judge, become = (
        block for block in page.split("```\n") if "import MaskablePPO" in block
    )
    run(train)
    names = run(evaluate)
    mean, _ = eval(capsys.readouterr().out.replace("np.float32", "").replace("np.float64", ""))
    assert -4000.0 < mean < -1500.0
    unlike = DMHVecEnv(64, "dmh-test")
    with pytest.raises(ValueError, match="spaces do not match"):
        names["model"].set_env(unlike)
    names["model"].set_env(DMHVecEnv(64, "dmh-test"))
    run(judge)
    assert capsys.readouterr().out.count("[") == 2
    names = run(become)
    assert "task='t1'" in capsys.readouterr().out
    policy, model = load_policy("policy.npz"), names["model"]
    test = load_suite("dmh-test")
    agent = Agent(
        lambda seen, mask: model.predict(seen, action_masks=mask, deterministic=True)[0],
        names["records"],
    )
    own, theirs = (
        evaluate_policy(one, test, trials=2, greedy=True).makespan for one in (policy, agent)
    )
    assert np.array_equal(own, theirs)
