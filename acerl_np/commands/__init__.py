"""The program `acerl-np`: one file per command."""
