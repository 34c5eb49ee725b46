"""What is to be solved: floors, fleets and task records, as data."""
