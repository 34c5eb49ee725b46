"""Who takes which task: what a policy sees, and every form of policy."""
