"""The paper's studies, one file each, and the figures that it published."""
