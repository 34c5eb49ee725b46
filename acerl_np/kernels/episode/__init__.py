"""One tick of an episode: breakdowns, repairs, deliveries, arrivals; errands and chains as its hooks."""
