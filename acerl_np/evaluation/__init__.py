"""How good a policy is: trials, metrics, schedules found in hindsight."""
