"""Events in, assignments out, for a real floor."""
