"""Networks forward and backward, and what learners lose and gain."""
