"""The paper in plain Python and NumPy: ACERL for dynamic material handling (DMH), written to be read.

Read `evolution` first, the paper's Algorithms 1, 2 and 4. `policy` is the network and Algorithm 3,
`simulator` the floor second by second, `floor` its map and its tasks, `streams` the random numbers. Names,
equations (Eq.) and lines are those of C. Hu, Z. Wang, B. Yuan, J. Liu, C. Zhang and X. Yao, "Robust Dynamic
Material Handling via Adaptive Constrained Evolutionary Reinforcement Learning".

`python -m acerl_np.plain` trains, slowly. `python -m acerl_np.train` does the same fast and arrives at the
same bytes, so numbers are rounded here as they are there. Tests compare the two.

Where the paper is silent, or its released code differs from it: docs/known-differences.md.
"""
