"""How a vehicle gets along: ways, trips, energy, what it is offered, until when it may be called back."""
