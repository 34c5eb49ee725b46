"""Losses of the compared learners with their derivatives for a network's outputs, advantages and returns.

Every loss is a mean over the batch. Illegal actions have probability 0: sums run over the legal ones, and
the derivatives of all other outputs are 0.
"""

from __future__ import annotations

import numpy as np

from acerl_np.support.compiled import inner_kernel, kernel


@inner_kernel
def find_probabilities(logits, first, mask, probability):
    """Write the masked softmax of the logits from `first` on into `probability`, 0 where illegal.

    Returns
    -------
    tuple of (float, float, float)
        Its entropy, nats; the largest legal logit, and the logarithm of the softmax's denominator beside it.
    """
    highest = -np.inf
    for j in range(len(mask)):
        if mask[j]:
            highest = max(highest, np.float64(logits[first + j]))
    total = 0.0
    for j in range(len(mask)):
        probability[j] = np.exp(np.float64(logits[first + j]) - highest) if mask[j] else 0.0
        total += probability[j]
    log_total = np.log(total)
    entropy = 0.0
    for j in range(len(mask)):
        if mask[j]:
            probability[j] /= total
            entropy -= probability[j] * (np.float64(logits[first + j]) - highest - log_total)
    return entropy, highest, log_total


@kernel
def sample_actions(logits, first, mask, uniforms, action):
    """Draw a legal action for each row from its masked softmax, by inversion.

    Parameters
    ----------
    logits : ndarray(float32, (B, W))
    first : ndarray(int64, (B,)), where a row's logits begin
    mask : ndarray(bool, (B, n))
    uniforms : ndarray(float64, (B,)), in [0, 1)
    action : ndarray(int64, (B,)), output
    """
    probability = np.empty(mask.shape[1])
    for b in range(len(mask)):
        find_probabilities(logits[b], first[b], mask[b], probability)
        remaining = uniforms[b]
        for j in range(mask.shape[1]):
            if mask[b, j]:
                action[b] = j
                remaining -= probability[j]
                if remaining < 0.0:
                    break


@kernel
def find_logs(logits, first, mask, rows, action, log):
    """Write the logarithm of the probability of each row's action into `log[rows[s]]`.

    Parameters
    ----------
    logits : ndarray(float, (at least m, W))
    first, mask, action
        As `clip_surrogate`.
    rows : ndarray(int64, (m,))
    log : ndarray(float64, (N,)), output
    """
    probability = np.empty(mask.shape[1])
    for s in range(len(rows)):
        row = rows[s]
        _, highest, log_total = find_probabilities(logits[s], first[row], mask[row], probability)
        log[row] = np.float64(logits[s, first[row] + action[row]]) - highest - log_total


@kernel
def clip_surrogate(
    logits, first, mask, rows, action, old_log, advantage, clip, entropy_factor, delta
):
    """Return PPO's clipped loss less an entropy bonus (Schulman et al. 2017, Eq. 7), and its derivatives.

    -mean(min(r A, clip(r, 1 - epsilon, 1 + epsilon) A)) - factor * mean(entropy), r the ratio of the
    probabilities of an action now and when it was taken.

    Parameters
    ----------
    logits : ndarray(float, (at least m, W)), of batch rows
    first : ndarray(int64, (N,)), column of a row's first logit
    mask : ndarray(bool, (N, n)), legal actions among the n that begin there
    rows : ndarray(int64, (m,)), row of the other arrays that each batch row is
    action : ndarray(int64, (N,)), from 0 to n - 1
    old_log, advantage : ndarray(float64, (N,))
    delta : ndarray(float, (at least m, W)), output: all columns of m rows
    """
    m = len(rows)
    n = mask.shape[1]
    probability = np.empty(n)
    loss = 0.0
    for s in range(m):
        row = rows[s]
        begin, taken, gain = first[row], action[row], advantage[row]
        for j in range(delta.shape[1]):
            delta[s, j] = 0.0
        entropy, highest, log_total = find_probabilities(logits[s], begin, mask[row], probability)
        log = np.float64(logits[s, begin + taken]) - highest - log_total
        ratio = np.exp(log - old_log[row])
        bounded = min(max(ratio, 1.0 - clip), 1.0 + clip)
        loss -= min(ratio * gain, bounded * gain) + entropy_factor * entropy
        slope = -gain * ratio if ratio * gain <= bounded * gain else 0.0
        for j in range(n):
            if mask[row, j]:
                p = probability[j]
                d = slope * ((1.0 if j == taken else 0.0) - p)
                if entropy_factor > 0.0 and p > 0.0:
                    d += entropy_factor * p * (np.log(p) + entropy)
                delta[s, begin + j] = d / m
    return loss / m


@kernel
def square_errors(out, column, rows, target, weight, delta):
    """Return weight * mean((output - target)^2), and its derivatives.

    Parameters
    ----------
    out : ndarray(float, (at least m, W))
    column : ndarray(int64, (N,)), which output of a row is meant: the action taken, or the head of the value
    rows : ndarray(int64, (m,))
    delta : ndarray(float, (at least m, W)), output: these columns alone
    """
    m = len(rows)
    loss = 0.0
    for s in range(m):
        row = rows[s]
        error = np.float64(out[s, column[row]]) - target[row]
        loss += error * error
        delta[s, column[row]] = weight * 2.0 * error / m
    return weight * loss / m


@kernel
def find_soft_values(logits, mask, q1, q2, alpha, value):
    """Write the soft value of each state: sum_a pi(a) min(Q1, Q2)(a) + alpha * entropy.

    Source: Christodoulou 2019, Eqs. 3 and 10 (SAC with discrete actions).

    Parameters
    ----------
    logits, q1, q2 : ndarray(float, (at least m, W))
    mask : ndarray(bool, (m, n)), rows without a legal action are over and get 0
    value : ndarray(float64, (m,)), output
    """
    n = mask.shape[1]
    probability = np.empty(n)
    for s in range(len(mask)):
        value[s] = 0.0
        if mask[s].any():
            value[s] = alpha * find_probabilities(logits[s], 0, mask[s], probability)[0]
            for j in range(n):
                if mask[s, j]:
                    value[s] += probability[j] * np.float64(min(q1[s, j], q2[s, j]))


@kernel
def soften_policy(logits, mask, q1, q2, alpha, delta):
    """Return -mean(sum_a pi(a) min(Q1, Q2)(a) + alpha * entropy), and its derivatives for the logits.

    Source: Christodoulou 2019, Eq. 12.

    Parameters
    ----------
    logits, q1, q2 : ndarray(float, (at least m, W)), the critics are constants here
    mask : ndarray(bool, (m, n))
    delta : ndarray(float, (at least m, W)), output: all columns of m rows
    """
    m, n = mask.shape
    probability = np.empty(n)
    loss = 0.0
    for s in range(m):
        for j in range(delta.shape[1]):
            delta[s, j] = 0.0
        entropy, _, _ = find_probabilities(logits[s], 0, mask[s], probability)
        value = 0.0
        for j in range(n):
            if mask[s, j]:
                value += probability[j] * np.float64(min(q1[s, j], q2[s, j]))
        loss -= value + alpha * entropy
        for j in range(n):
            p = probability[j]
            if p > 0.0:
                q = np.float64(min(q1[s, j], q2[s, j]))
                delta[s, j] = -p * (q - value - alpha * (np.log(p) + entropy)) / m
    return loss / m


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
