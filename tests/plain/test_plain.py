"""The paper in plain Python beside the kernels: the same bytes."""

import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from machine import JIT

import acerl_np
from acerl_np import ACERL, Config
from acerl_np.kernels.learning.update import fill_stream
from acerl_np.kernels.networks.network import (
    Features,
    Layers,
    forward,
    list_nonzero,
    make_network,
    sum_columns,
)
from acerl_np.plain import __main__ as command
from acerl_np.plain import evolution, floor, policy, streams
from acerl_np.policies.network import initial_parameters

pytestmark = pytest.mark.oracle

words = st.integers(0, 2**32 - 1)


def compare_bytes(found, expected):
    assert found.dtype == expected.dtype == np.float32
    assert found.tobytes() == expected.tobytes()


@given(st.integers(0, 2**63 - 1), words, st.sampled_from([1, 512, 2048, 2049, 5000]))
@example(0, 1, 20_000 if JIT else 2048)
def test_normals(seed, a, n):
    expected = np.empty(n, np.float32)
    fill_stream(seed, streams.NOISE, a, 7, expected)
    compare_bytes(streams.normals(streams.stream_key(seed, streams.NOISE, a, 7), n), expected)


def find_logits(sizes, theta, state):
    """By the kernels."""
    network = make_network(sizes)
    sums = np.empty(sizes[1], np.float32)
    sum_columns(network, theta, sums)

    def features(n):
        return Features(np.empty(n + 1, np.int32), np.empty(n + 1, np.float32))

    seen = features(sizes[0])
    n = list_nonzero(np.array(state, np.float32), seen)
    logits = np.empty(sizes[-1], np.float32)
    layers = Layers(np.empty(max(sizes), np.float32), features(max(sizes)), logits)
    forward(network, theta, sums, seen, n, layers)
    return logits


@given(
    st.sampled_from([[11, 5, 3, 4], [31, 17, 8], *([[219, 128, 128, 12]] if JIT else [])]),
    st.integers(0, 2**32),
    st.floats(0, 1),
)
def test_logits(sizes, seed, share):
    draws = np.random.default_rng(seed)
    state = draws.normal(size=sizes[0]) * (draws.random(sizes[0]) < share)
    theta = policy.initialise(sizes, seed)
    compare_bytes(theta, initial_parameters(sizes, seed))
    theta += draws.normal(size=theta.size).astype(np.float32)
    compare_bytes(
        policy.Policy(sizes, theta).logits(state.tolist()), find_logits(sizes, theta, state)
    )


@pytest.mark.parametrize("options", [{}, {"noise_decay_every": 1, "cost_limit": 30.0, "p_f": 0.2}])
def test_generations(options):
    """Twelve members of three records; then two, so that a record is tried later than the others."""
    for population, numbers in (12, [0, 1, 2]), (2, [3, 6, 7]):
        own = {"population": population if JIT else 2, "hidden": (8, 5), **options}
        plain = [floor.load_suite()[k] for k in numbers]
        fast = [acerl_np.load_suite("dmh-train")[k] for k in numbers]
        trainer = ACERL(fast, Config(**own, curve_every=0), seed=3, threads=1)
        settings, decisions = evolution.Settings(**own), 0
        for n, generation in enumerate(evolution.train(plain, 3 if JIT else 1, 3, settings)):
            if n:
                record, decisions = trainer.step(), decisions + generation.decisions
                assert record.counts == tuple(map(len, generation.instance_buffers))
                members = [member for own in generation.instance_buffers for member in own]
                j_r, j_c = (np.array([own[k] for own in members]) for k in (0, 1))
                sigma = settings.noise_std * settings.noise_decay ** (
                    n // settings.noise_decay_every
                )
                shown = [record.return_mean, record.return_std, record.cost_mean, record.noise_std]
                assert shown == pytest.approx([j_r.mean(), j_r.std(), j_c.mean(), sigma])
                assert record.satisfied == (j_c < settings.cost_limit).mean()
                assert (record.generation, record.decisions) == (n, decisions)
            compare_bytes(generation.theta, trainer.policy.theta)


# The command


@pytest.mark.slow
def test_the_papers_run(tmp_path, capsys):
    """Two generations by the command, as `python -m acerl_np.train --generations 2` trains them."""
    assert command.main(["--generations", "2", "--out", str(tmp_path / "theta.npy")]) == 0
    trainer = ACERL(acerl_np.load_suite("dmh-train"), Config(generations=2))
    trainer.run()
    compare_bytes(np.load(tmp_path / "theta.npy"), trainer.policy.theta)
    last = capsys.readouterr().out.splitlines()[-1]
    assert last.startswith("generation 2/2  decisions 8416  makespan 1988.1  tardiness 53.6 ")


def test_without_generations_it_writes_the_first_theta(tmp_path):
    path = tmp_path / "theta.npy"
    assert command.main(["--generations", "0", "--seed", "5", "--out", str(path)]) == 0
    compare_bytes(np.load(path), initial_parameters([219, 128, 128, 12], 5))
    assert [item.name for item in tmp_path.iterdir()] == ["theta.npy"]


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["--generations", "-1"], ["--generations", "'-1'"]),
        (["--seed", str(2**63)], ["--seed", str(2**63)]),
        (["--seed", "x"], ["--seed", "'x'"]),
        (["--out", "there.npy"], ["--out", "there.npy"]),
        (["--out", "nowhere/theta.npy"], ["--out", "nowhere"]),
    ],
)
def test_bad_options_are_refused(tmp_path, monkeypatch, capsys, arguments, said):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "there.npy").write_text("kept")
    with pytest.raises(SystemExit) as stopped:
        command.main(["--generations", "0", *arguments])
    assert stopped.value.code == 2
    last = capsys.readouterr().err.splitlines()[-1]
    assert all(word in last for word in said)
    assert (tmp_path / "there.npy").read_text() == "kept"


def test_an_interrupt_ends_it_in_a_line(tmp_path, monkeypatch, capsys):
    def stop(*_):
        raise KeyboardInterrupt

    monkeypatch.setattr(command, "train", stop)
    assert command.main(["--out", str(tmp_path / "theta.npy")]) == 130
    assert "interrupted" in capsys.readouterr().err
    assert not list(tmp_path.iterdir())
