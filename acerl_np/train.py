"""`python -m acerl_np.train`, the same as `acerl-np train`."""

import sys

from acerl_np.commands.main import main

if __name__ == "__main__":
    raise SystemExit(main(["train", *sys.argv[1:]]))
