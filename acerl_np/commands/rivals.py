"""`acerl-np rivals`: train one of the learners that the paper compares with, as `train --algorithm` does.

Train one of the learners that the paper compares with, on the same simulator and with the same policy form.

ppo     proximal policy optimisation
sac     soft actor-critic
lsac    soft actor-critic with a fixed Lagrangian multiplier on the tardiness
rcpom   reward-constrained policy optimisation with reward shaping
mappo   two agents, one for the vehicle and one for the rule, with a central critic
appo, asac, alsac, arcpom, amappo: the same, their training records dealt by the adaptive instance sampler

It writes policy.npz, run.npz (the checkpoint), config.json, history.csv (a line per 10,000 steps) and
curves.csv (how the policy did on each training record) into a new folder below runs/, or into --out. A
million steps take one to three minutes of a core. acerl-np evaluate judges the policy like any other.
acerl-np train --algorithm NAME does the same.

Examples
--------
  acerl-np rivals ppo                              a million steps on DMH-01 to -08
  acerl-np rivals alsac --seed 3 --steps 200000 --set multiplier=3
  acerl-np rivals rcpom week1.csv week2.csv --layout floor.json --out runs/rcpom
  acerl-np rivals sac --settings                   its settings, their sources; nothing is trained
  acerl-np rivals ppo --resume runs/dmh-train-ppo-seed0/run.npz --steps 2000000
"""

from __future__ import annotations

import argparse

from acerl_np.commands import options as opt
from acerl_np.commands import train
from acerl_np.commands.train_options import LEARNERS, OTHERS, RUN


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the command's arguments."""
    names = ", ".join(LEARNERS)
    opt.declare(parser, opt.CommandOption("algorithm ALGORITHM", names, choices=LEARNERS))
    data = parser.add_argument_group("what to train on")
    opt.declare(data, *opt.list_data(train.DEFAULT), opt.RANDOM_BREAKDOWNS, given=True)
    run = parser.add_argument_group("the run")
    team = opt.list_team("with --seeds, train", "never")
    opt.declare(run, *OTHERS, *RUN, *team, given=True)
    opt.declare(parser, opt.TRUST)


run = train.run
