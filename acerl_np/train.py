"""`python -m acerl_np.train`, the same as `acerl-np train`; imported, it holds `acerl_np.train`."""

import sys

from acerl_np.commands.main import main
from acerl_np.commands.train import train as train

if __name__ == "__main__":
    raise SystemExit(main(["train", *sys.argv[1:]]))
