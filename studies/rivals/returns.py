"""Returns of the compared learners: generalised advantages and n-step returns."""

from __future__ import annotations

import numpy as np

from acerl_np.support.compiled import kernel


@kernel
def find_advantages(reward, over, value, discount, decay, advantage):
    """Write generalised advantages (Schulman et al. 2016, Eq. 16).

    Parameters
    ----------
    reward : ndarray(float64, (T, B))
    over : ndarray(bool, (T, B)), whether an episode was over with the step: what follows is another one
    value : ndarray(float64, (T + 1, B)), of the states before each step, and of those after the last
    discount, decay : float, gamma, lambda
    advantage : ndarray(float64, (T, B)), output
    """
    for b in range(reward.shape[1]):
        later = 0.0
        for step in range(len(reward)):
            t = len(reward) - 1 - step
            goes_on = 0.0 if over[t, b] else 1.0
            error = reward[t, b] + discount * goes_on * value[t + 1, b] - value[t, b]
            later = error + discount * decay * goes_on * later
            advantage[t, b] = later


@kernel
def sum_rewards(reward, over, slots, episodes, ahead, n_steps, discount, total, end, factor):
    """Write the discounted rewards of at most n steps from each sampled one on, and where they end.

    Parameters
    ----------
    reward : ndarray(float64, (K, B)), a ring
    over : ndarray(bool, (K, B))
    slots, episodes : ndarray(int64, (m,)), the sampled steps
    ahead : ndarray(int64, (m,)), steps that the ring holds from each of them on, itself included, at least 1
    total : ndarray(float64, (m,)), output: the sum
    end : ndarray(int64, (m,)), output: slot of the state after the last step of the sum
    factor : ndarray(float64, (m,)), output: discount of that state's value, 0 if the episode was over before
    """
    n_slots = len(reward)
    for s in range(len(slots)):
        slot, b = slots[s], episodes[s]
        total[s], factor[s] = 0.0, 1.0
        for _ in range(min(np.int64(n_steps), ahead[s])):
            total[s] += factor[s] * reward[slot, b]
            factor[s] *= discount
            ended = over[slot, b]
            slot = (slot + 1) % n_slots
            if ended:
                factor[s] = 0.0
                break
        end[s] = slot
