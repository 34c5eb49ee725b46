"""The compared learners: small problems with known answers, the same bytes after a stop, what they refuse."""

import copy
from dataclasses import fields, replace
from functools import partial
from itertools import pairwise
from pathlib import Path

import naive_rivals as naive
import numpy as np
import pytest
from tables_and_refusals import list_unrefused
from trainings import list_taken_checkpoints, put
from worlds import change, make_task

import acerl_np
from acerl_np import CheckpointError, ConfigError, Instance, Layout
from acerl_np.commands.shared.train_options import show_value
from acerl_np.evolution.sampler import AdaptiveSampler, make_sampler
from acerl_np.problem.goal import PAPER
from acerl_np.problem.parts import RandomBreakdowns
from acerl_np.training.trainer import pack
from studies.rivals import ALGORITHMS, RivalTrainer, train
from studies.rivals.episodes import Ended, Seen, TrainingEpisodes
from studies.rivals.learner import Task, measure_unit, reward_outcome
from studies.rivals.networks import Perceptron
from studies.rivals.perceptron import allocate_inputs, list_inputs
from studies.rivals.ppo import RCPOM, Rollout
from studies.rivals.sac import SAC, ReplayBuffer
from studies.rivals.settings import OffPolicySettings, RewardConstrainedSettings, RivalSettings
from studies.rivals.training import LEARNERS

BASE = tuple(LEARNERS)
SMALL = {"hidden": (16,), "look_every": 0}


def line(vehicles, rows, slots=2):
    """A floor of three sites in a line, at 0, 10 and 30 m."""
    sites = [
        {"id": name, "x": x, "y": 0, "kind": "station"}
        for name, x in zip("abc", (0, 10, 30), strict=True)
    ]
    fleet = [{"id": f"v{k}", "start": start} for k, start in enumerate(vehicles)]
    edges = [{"a": "a", "b": "b"}, {"a": "b", "b": "c"}]
    layout = {"format": 1, "name": "line", "task_slots": slots, "sites": sites, "edges": edges}
    layout = Layout.from_dict({**layout, "vehicles": fleet})
    return Instance.from_rows("line", layout, [make_task(*row) for row in rows])


def conflict():
    """The short order makes the urgent task late: 50 s and 10 s late in the mean, or 70 s and in time."""
    return line("a", [("near", "a", "b", 0, 500), ("urgent", "a", "c", 0, 30)])


def settings_of(name, **more):
    base = name if name in BASE else name[1:]
    fast = {"actor_rate": 3e-3, "critic_rate": 3e-3}
    own = fast if base in ("sac", "lsac") else {"collect": 400, "learning_rate": 3e-3}
    return {**SMALL, **own, **more}


def small_run(name, steps=2_000, **more):
    own = {"collect": 200, "repeats": 2} if "sac" not in name else {"capacity": 300, "batch": 8}
    settings = {**SMALL, "episodes": 4, **own, **more}
    instances = acerl_np.load_suite("dmh-train")[:3]
    return RivalTrainer(name, instances, steps=steps, seed=3, settings=settings)


def equal(a, b):
    return set(a) == set(b) and all(
        np.array_equal(a[name], b[name], equal_nan=a[name].dtype.kind == "f") for name in a
    )


# Small problems with known answers


@pytest.mark.parametrize("name", ALGORITHMS)
def test_each_finds_the_known_answer_of_a_conflict(name):
    """Without a constraint the short order; with one the order in time; RCPOM holds the mean at the limit."""
    base, settings = name if name in BASE else name[1:], settings_of(name, cost_limit=5.0)
    if base == "rcpom":
        settings["multiplier_rate"] = 0.1
        trainer = RivalTrainer(name, conflict(), steps=60_000, settings=settings)
        trainer.run()
        # It begins at 0.001; at 2 the ten seconds of tardiness weigh as much as the detour.
        assert max(record.multiplier for record in trainer.history) > 0.5
        costs = [record.cost_mean for record in trainer.history]
        assert np.mean(costs) == pytest.approx(5.0, abs=1.5)
        return
    agent = train(name, conflict(), steps=20_000, settings=settings)
    trials = acerl_np.evaluate_policy(agent, conflict(), trials=40, cost_limit=5.0)
    expected = 70.0 if base == "lsac" else 50.0
    assert (trials.makespan == expected).mean() > 0.9
    assert trials.satisfied == pytest.approx(1.0 if base == "lsac" else 0.0, abs=0.1)


@pytest.mark.parametrize("name", ["ppo", "mappo", "sac"])
def test_each_finds_the_near_vehicle(name):
    """The first vehicle is 30 m away, the second stands at the pickup."""
    instance = line("ca", [("t", "a", "b", 0, 100)])
    agent = train(name, instance, steps=20_000, settings=settings_of(name))
    trials = acerl_np.evaluate_policy(agent, instance, trials=40)
    assert (trials.makespan == 10.0).mean() > 0.9
    assert acerl_np.evaluate_policy(agent, instance, trials=2, greedy=True).makespan.max() == 10.0


def test_learning_on_the_benchmark_beats_chance():
    instances, settings = acerl_np.load_suite("dmh-train"), {"look_every": 0}
    agent = train("ppo", instances, steps=40_000, seed=0, settings=settings)
    trials = acerl_np.evaluate_policy(agent, instances, trials=10)
    assert trials.makespan.mean() < measure_unit(instances, PAPER) - 20.0


# The same bytes


def test_looks_and_updates_fall_where_they_are_due():
    trainer = small_run("ppo", steps=2_400, look_every=800, look_trials=1)
    trainer.run(lambda record: np.bool_(record.steps >= 1600))  # a callback stops
    assert trainer.taken == 1600 and not trainer.done
    trainer.run()
    assert [point.decisions for point in trainer.curve] == [0, 800, 1600, 2400]
    assert [record.steps for record in trainer.history] == [800, 1600, 2400]
    for share, episodes in ((0.1, 4), (0.4, 6), (0.5, 3), (1.0, 2), (0.01, 3)):
        trainer = small_run("sac", steps=600, updates_per_step=share, episodes=episodes)
        trainer.run()
        assert trainer.learner._updates == int(share * trainer.taken + 1e-6)


def test_episodes_with_random_breakdowns_go_on_where_they_were():
    instance = acerl_np.load_instance("DMH-01")
    layout = instance.layout.with_random_breakdowns(RandomBreakdowns(300.0, 100.0))
    instances = [replace(instance, layout=layout), acerl_np.load_instance("DMH-02")]

    def play(episodes, n, start=0):
        for k in range(start, n):
            mask = episodes.see().mask
            legal = [np.flatnonzero(row) for row in mask]
            episodes.step(np.array([own[k * 7 % len(own)] for own in legal]))

    first = TrainingEpisodes(instances, OffPolicySettings(episodes=3), make_sampler("ais", 2, 5), 5)
    play(first, 50)
    second = TrainingEpisodes(
        instances, OffPolicySettings(episodes=3), make_sampler("ais", 2, 5), 5
    )
    second.restore(copy.deepcopy(first.pack()))
    play(first, 120, 50)
    play(second, 120, 50)
    assert equal(pack(first.pack()), pack(second.pack()))
    assert np.array_equal(first.see().observation, second.see().observation)
    # Of one record, no two episodes break down alike.
    assert len(set(first._numbers.tolist())) == 3


def test_the_adaptive_sampler_is_told_every_finished_episode():
    trainer = small_run("appo", steps=3_000)
    trainer.run()
    sampler = trainer.episodes.sampler
    assert type(sampler) is AdaptiveSampler
    assert type(small_run("ppo").episodes.sampler) is type(make_sampler("random", 2))
    counts = np.sum([record.counts for record in trainer.history], axis=0)
    assert sampler.count.tolist() == counts.tolist()
    assert sum(record.episodes for record in trainer.history) == counts.sum() > 60
    total = sum(record.return_mean * record.episodes for record in trainer.history)
    assert sampler.total.sum() == pytest.approx(total)
    assert sampler.largest.max() < -1000.0  # minus makespans


# Parts


def test_a_policy_has_the_logits_of_the_network_that_it_was_read_from():
    net = Perceptron([7, 5, 20, 9], n_rows=4, seed=1, start="orthogonal")
    net.theta[net.theta != 0.0] += np.float32(0.01)
    observation = np.random.default_rng(0).normal(size=(4, 7)).astype(np.float32)
    inputs = allocate_inputs(4, 7)
    list_inputs(observation, inputs)
    out = net.forward(inputs, np.arange(4))
    for n_columns in (9, 4):
        layers = read_layers(net, n_columns)
        for row in range(4):
            slow = naive.outputs(layers, observation[row])
            assert out[row, :n_columns] == pytest.approx(slow, abs=1e-5)
    assert not net.read_parameters(40)[-40 + 9 :].any()


def read_layers(net, n_columns=None):
    """Weights and biases of each layer, the last one with its first columns."""
    theta, layers, offset = net.read_parameters(n_columns), [], 0
    for n_in, n_out in pairwise([*net.sizes[:-1], n_columns or net.sizes[-1]]):
        weights = theta[offset : offset + n_in * n_out].reshape(n_in, n_out)
        offset += (n_in + 1) * n_out
        layers.append((weights, theta[offset - n_out : offset]))
    assert offset == len(theta)
    return layers


@pytest.mark.parametrize("sizes", [(9, 6), (4, 11)])
def test_orthogonal_weights(sizes):
    [(weights, biases)] = read_layers(Perceptron(sizes, n_rows=1, seed=0, start="orthogonal"))
    weights = weights.astype(np.float64)
    gram = weights.T @ weights if sizes[0] > sizes[1] else weights @ weights.T
    assert gram == pytest.approx(np.eye(min(sizes)), abs=1e-6)
    assert not biases.any()


def seen_of(rng, n=2, n_features=5, n_actions=4):
    mask = rng.random((n, n_actions)) < 0.5
    mask[:, 0] = True
    return Seen(rng.normal(size=(n, n_features)).astype(np.float32), mask, rng.integers(0, 9, n))


TASK = Task(5, 1, 4, 7, 100.0, 10.0, 100.0)


def test_the_replay_buffer_returns_the_latest_steps_with_their_masks():
    rng = np.random.default_rng(0)
    replay = ReplayBuffer(8, 2, 3, TASK)
    steps, seen = [], seen_of(rng)
    for t in range(11):
        now, actions = seen_of(rng), rng.integers(0, 4, 2)
        reward, over = rng.normal(size=2), rng.random(2) < 0.3
        replay.add(seen, actions, reward, over, now)
        steps.append((seen, actions, reward, over, now))
        seen = now
        n_known = min(t + 1, 4) * 2
        for k in range(n_known):
            uniforms = np.full(3, (k + 0.5) / n_known)
            sample = replay.sample(uniforms, 2, 0.9)
            ago, b = divmod(k, 2)
            own = steps[t - ago]
            known = steps[t - ago :]
            rewards, overs = ([x[part][b] for x in known] for part in (2, 3))
            total, taken, ended = naive.n_step(rewards, overs, 0, 2, 0.9)
            after = known[taken - 1][4]
            assert sample.mask[0].tolist() == own[0].mask[b].tolist()
            assert sample.next_mask[0].tolist() == after.mask[b].tolist()
            assert sample.action[0] == own[1][b]
            assert sample.total[0] == pytest.approx(total)
            assert sample.factor[0] == pytest.approx(0.0 if ended else 0.9**taken)
            for row, where in ((0, own[0]), (3, after)):
                n = sample.inputs.length[row]
                assert sample.inputs.value[row, :n].tolist() == where.observation[b].tolist()


def test_a_rollout_deals_every_row_once():
    rollout = Rollout(5, 2, TASK)
    for size, expected in ((4, [4, 6]), (5, [5, 5]), (64, [10])):
        dealt = list(rollout.deal(size, np.random.default_rng(0).random(10)))
        assert [len(rows) for rows in dealt] == expected
        assert sorted(np.concatenate(dealt)) == list(range(10))


def test_rewards_weigh_a_second_of_tardiness_like_one_of_makespan():
    over = np.array([True, False])
    ended = Ended(over, np.array([150.0, 0.0]), np.array([20.0, 0.0]), over[:1], over[:1])
    reward, cost = reward_outcome(RivalSettings(reward_scale=10.0, reward_shift=1.0), TASK, ended)
    assert reward.tolist() == [-5.0, 0.0]
    assert cost.tolist() == [2.0, 0.0]


def test_shaping_telescopes_to_the_first_potential():
    """Whatever is done, the discounted shaping of an episode is minus the potential of its first state."""
    own = RewardConstrainedSettings(multiplier=0.0, episodes=2, collect=2)
    learner = RCPOM(TASK, own)
    rng = np.random.default_rng(0)
    seen = [seen_of(rng) for _ in range(6)]
    total = np.zeros(2)
    nothing = np.zeros(2)
    for t in range(5):
        over = np.full(2, t == 4)
        ended = Ended(over, np.full(2, 100.0) * over, nothing, np.zeros(0, int), over[:0])
        reward = learner.reward(seen[t], ended, seen[t + 1])
        total += own.discount**t * reward
    first = learner.potential(seen[0])
    assert (first <= 0.0).all() and first.any()
    assert total == pytest.approx(-first)  # the outcome itself, at the mean makespan, is worth 0


def test_rcpoms_multiplier_follows_the_violation():
    few = {"episodes": 2, "collect": 2, "repeats": 1, "cost_limit": 50.0}
    own = RewardConstrainedSettings(multiplier=0.5, multiplier_rate=0.01, **few)
    learner = RCPOM(TASK, own)
    rng = np.random.default_rng(0)
    expected = 0.5
    for costs in ([60.0, 80.0], [20.0, 20.0], [0.0, 0.0], [0.0, 0.0]):
        over = np.ones(2, bool)
        ended = Ended(over, np.full(2, 100.0), np.array(costs), np.zeros(2, int), over)
        seen, now = seen_of(rng), seen_of(rng)
        before = learner.multiplier
        learner.remember(seen, np.zeros(2, np.int64), ended, now)
        shaping = -learner.potential(seen)
        charged = learner.memory.reward[0] - shaping
        assert charged == pytest.approx(-before * own.reward_scale * np.array(costs) / 100.0)
        learner.update()
        expected = max(0.0, expected + 0.01 * (np.mean(costs) - 50.0))
        assert learner.multiplier == pytest.approx(expected)
    assert learner.multiplier == 0.0


def test_sacs_targets_are_soft_values_of_the_targets_and_follow_softly():
    own = OffPolicySettings(hidden=(6,), batch=4, episodes=2, capacity=20, tau=0.25, alpha=0.3)
    learner = SAC(TASK, own)
    rng = np.random.default_rng(1)
    seen = seen_of(rng)
    for _ in range(6):
        now = seen_of(rng)
        over = rng.random(2) < 0.2
        ended = Ended(over, 100.0 * over, 0.0 * over, np.zeros(0, int), over[:0])
        learner.remember(seen, np.zeros(2, np.int64), ended, now)
        seen = now
    sample = learner.memory.sample(rng.random(4), own.n_steps, own.discount)
    found = learner.find_targets(sample)
    networks = [read_layers(net) for net in (learner.actor, *learner.targets)]
    for row in range(4):
        observation, n = np.zeros(5, np.float32), sample.inputs.length[4 + row]
        observation[sample.inputs.position[4 + row, :n]] = sample.inputs.value[4 + row, :n]
        logits, q1, q2 = (naive.outputs(layers, observation) for layers in networks)
        value = naive.soft_value(logits, sample.next_mask[row], q1, q2, 0.3)
        assert found[row] == pytest.approx(sample.total[row] + sample.factor[row] * value, abs=1e-5)
    before = [net.theta.copy() for net in learner.targets]
    learner.update()
    for then, target, critic in zip(before, learner.targets, learner.critics, strict=True):
        assert target.theta == pytest.approx(then + 0.25 * (critic.theta - then), abs=1e-6)
        assert not np.array_equal(target.theta, critic.theta)


def test_an_episode_that_cannot_end_counts_as_twice_its_time():
    instance = line("a", [("t", "a", "c", 0, 10)])
    episodes = TrainingEpisodes(
        [instance], OffPolicySettings(episodes=1), make_sampler("ais", 1, 0), 0
    )
    episodes.sim = acerl_np.Simulator(instance, horizon=20.0)
    ended = episodes.step(np.zeros(1, np.int64))
    assert ended.over.all() and not ended.finished.any()
    assert ended.value.tolist() == ended.cost.tolist() == [40.0]
    # The sampler counts it, and learns nothing of its return.
    assert episodes.sampler.count.tolist() == [1]
    assert episodes.sampler.get_state()["valid"].tolist() == [0]


def test_misuse():
    layout = change(conflict().layout, vehicles=[{"id": "v", "start": "a", "capacity": 1}])
    row = make_task("t", "a", "b", 0, 9, demand=2)
    heavy = Instance.from_rows("heavy", layout, [row], servable=False)
    begin = lambda given: train(**{"algorithm": "ppo", **given})  # noqa: E731
    instances = [({"instances": []}, "no instances"), ({"instances": [conflict(), heavy]}, "heavy")]
    assert list_unrefused(begin, instances) == []
    others = RewardConstrainedSettings()
    options = [
        ({"settings": {"alpha": 0.1}}, "alpha: no such setting; expected one of hidden"),
        ({"settings": {"collect": 19}}, "collect: read 19; expected at least one step of each of "),
        ({"algorithm": "dqn"}, "algorithm: read 'dqn'; expected one of ppo, sac"),
        *(({"steps": steps}, "steps: read") for steps in (0, 2.5, "many", None, 10**13)),
        ({"seed": -1}, "seed"),
        ({"algorithm": "sac", "settings": others}, "expected OffPolicySettings for sac"),
    ]
    cases = [({"instances": conflict(), **given}, line) for given, line in options]
    assert list_unrefused(begin, cases, ConfigError) == []


@pytest.mark.parametrize("name", ["ppo", "sac", "mappo", "rcpom"])
def test_damaged_checkpoints_are_refused(name, tmp_path):
    trainer = small_run(name, steps=404)
    trainer.run()
    trainer.save(tmp_path / "run.npz")
    impossible = {
        "sac": [("replay.action", 12, "replay.action: expected actions below 12")],
        "ppo": [("episodes.actions", 50, "is illegal"), ("episodes.records", 3, "choices")],
    }.get(name, [])
    impossible += [("learner.counts", 10**9, "learner.counts: read")] * (name == "sac")
    cases = [
        ({f"state.{key}": partial(np.full_like, fill_value=value)}, line)
        for key, value, line in impossible
    ]
    assert list_taken_checkpoints(RivalTrainer, tmp_path / "run.npz", cases) == []


def test_checkpoints_of_another_kind_are_refused(tmp_path):
    path = tmp_path / "rival.npz"
    config = acerl_np.Config(generations=1, population=2, hidden=(2,))
    acerl_np.ACERL(conflict(), config).save(path)
    with pytest.raises(CheckpointError, match="expected a rival checkpoint"):
        RivalTrainer.resume(path)
    trainer = small_run("appo", steps=400)
    trainer.run()
    trainer.save(path)
    with pytest.raises(CheckpointError, match="holds rival checkpoint"):
        acerl_np.ACERL.resume(path)
    total = {"state.sampler.total": put(np.nan)}
    assert list_taken_checkpoints(RivalTrainer, path, [(total, "sampler.total: not finite")]) == []
    with pytest.raises(CheckpointError, match="has 400 steps already"):
        RivalTrainer.resume(path, steps=200)
    more = RivalTrainer.resume(path, steps=800)
    more.run()
    assert more.taken == 800


def test_the_documented_settings_are_those_of_the_code():
    """Every cell of the table in docs/rivals.md, source and meaning included."""
    page = (Path(__file__).parents[2] / "docs" / "rivals.md").read_text(encoding="utf-8")
    shown = set()
    for text in page.splitlines():
        cells = [cell.strip() for cell in text.strip("|").split("|")]
        if len(cells) == 8 and cells[0].startswith("`"):
            for name, cell in zip(BASE, cells[1:6], strict=True):
                if cell:
                    shown.add((name, cells[0].strip("`"), cell.replace(" ", ""), *cells[6:]))
    expected = set()
    for name, learner in LEARNERS.items():
        known = learner.settings_class.list_fields()
        for item in fields(learner.settings_class):
            told = item.metadata["source"], known[item.name].help
            expected.add((name, item.name, show_value(item.default), *told))
    assert shown == expected
