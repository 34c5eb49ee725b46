"""The paper's studies and others, the compared learners, and what makes the pages of results."""
