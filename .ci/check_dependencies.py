"""Use acerl_np and its extras a little with the installed versions, which are printed.

It reads nothing of the repository, so that the installed package is used.
"""

import contextlib
import io
import tempfile
from importlib.metadata import version
from pathlib import Path

import gymnasium
import numpy as np

import acerl_np
from acerl_np.commands.main import main
from acerl_np.pictures.maps import draw_layout

USED = "numpy numba llvmlite scipy tqdm gymnasium matplotlib pymoo cma hypothesis pytest"


class Terminal(io.StringIO):
    """What tqdm draws its bar on."""

    def isatty(self) -> bool:
        """Say so: a bar is drawn for people only."""
        return True


def check_routes() -> None:
    """Find routes in a ring of three sites, one edge of it one-way, and draw it."""
    ring = acerl_np.Layout.from_dict(
        {
            "format": 1,
            "name": "ring",
            "sites": [{"id": name, "x": 10 * k, "y": 0} for k, name in enumerate("abc")],
            "edges": [
                {"a": "a", "b": "b", "length": 10},
                {"a": "b", "b": "c", "length": 10},
                {"a": "c", "b": "a", "length": 5, "one_way": True},
            ],
            "vehicles": [{"id": "v", "start": "a", "speed": 2}],
        }
    )
    assert ring.routes.distance.tolist() == [[0, 10, 20], [10, 0, 10], [5, 10, 0]]
    assert ring.routes.next_site.tolist() == [[0, 1, 1], [0, 1, 2], [0, 1, 2]]
    draw_layout(ring, "ring.png")
    assert Path("ring.png").read_bytes().startswith(b"\x89PNG")


@acerl_np.rule
def nearest(floor: acerl_np.Floor, vehicle: int, task: int) -> float:
    """Return what the yardstick of this name compares."""
    return floor.metres(vehicle, task) + 0.0 * floor.mean("due", vehicle)


def check_own_rule(instance: acerl_np.Instance) -> None:
    """Compile a rule, and find the choices of the package's own."""
    own, built_in = (
        acerl_np.evaluate_policy(policy, instance, trials=1) for policy in (nearest, "nearest")
    )
    assert own.makespan.tolist() == built_in.makespan.tolist()


def check_training(instance: acerl_np.Instance) -> None:
    """Train with the library and with the program, and judge what was saved beside a rule."""
    config = acerl_np.Config(generations=2, population=8, hidden=(8,))
    trainer = acerl_np.ACERL(instance, config, seed=0)
    trainer.run()
    assert [generation.failed for generation in trainer.history] == [0, 0]
    trainer.policy.save("policy.npz")
    loaded = acerl_np.Policy.load("policy.npz")
    assert loaded.theta.tobytes() == trainer.policy.theta.tobytes()
    for policy in (loaded, "EDD"):
        trials = acerl_np.evaluate_policy(policy, instance, trials=3)
        # The rules' means over many trials are 1,861 to 2,110 s.
        assert ((trials.makespan > 1600) & (trials.makespan < 2600)).all(), trials
        assert ((trials.tardiness > 10) & (trials.tardiness < 400)).all(), trials
    words = "train DMH-01 --generations 2 --set population=8 --set hidden=8 --trials 3 --out run"
    with contextlib.redirect_stderr(Terminal()) as shown:
        assert main(words.split()) == 0
    assert "generation 2/2 |" in shown.getvalue(), shown.getvalue()
    assert Path("run/curves.png").read_bytes().startswith(b"\x89PNG")
    assert acerl_np.Policy.load("run/policy.npz").theta.tobytes() == loaded.theta.tobytes()


def check_environment() -> None:
    """Play the first legal actions; the makespan is the one that the class documents."""
    env = gymnasium.make("acerl_np.gym:acerl_np/DMH-v0", instances="DMH-01")
    _, info = env.reset(seed=0)
    over = False
    while not over:
        _, reward, terminated, truncated, info = env.step(np.argmax(info["action_mask"]))
        over = terminated or truncated
    assert (reward, info["makespan"]) == (-2152.0, 2152.0)


print(", ".join(f"{name} {version(name)}" for name in USED.split()), flush=True)
with tempfile.TemporaryDirectory() as folder, contextlib.chdir(folder):
    check_routes()
    instance = acerl_np.load_instance("DMH-01")
    assert instance.n_tasks == 30, instance
    check_training(instance)
    check_own_rule(instance)
    check_environment()
