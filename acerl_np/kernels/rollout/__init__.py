"""Episodes to their end, one after the other or in lockstep: rollouts, searches, lookaheads, live floors."""
