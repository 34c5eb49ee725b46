"""`python -m acerl_np`, the same as the program `acerl-np`."""

from acerl_np.commands.main import main

raise SystemExit(main())
