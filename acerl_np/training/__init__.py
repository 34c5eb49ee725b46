"""How a policy is trained: ACERL, its options, curves and checkpoints."""
