"""Ranks of members, and the update that they weigh."""
