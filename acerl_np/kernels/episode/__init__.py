"""One tick of an episode: breakdowns, repairs, deliveries, arrivals; auxiliary moves and chains as hooks."""
