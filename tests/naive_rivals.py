"""Slow, obvious versions of what the compared learners compute: one row, one number at a time, float64."""

import math


def outputs(layers, observation):
    """A ReLU perceptron; `layers` are (weights, biases), weights one row per input."""
    x = [float(v) for v in observation]
    for k, (weights, biases) in enumerate(layers):
        total = [float(b) for b in biases]
        for value, row in zip(x, weights, strict=True):
            for j, weight in enumerate(row):
                total[j] += value * float(weight)
        x = total if k == len(layers) - 1 else [max(0.0, v) for v in total]
    return x


def probabilities(logits, mask):
    """The softmax over legal actions, 0 for the others."""
    highest = max(z for z, legal in zip(logits, mask, strict=True) if legal)
    weights = [
        math.exp(z - highest) if legal else 0.0 for z, legal in zip(logits, mask, strict=True)
    ]
    return [w / sum(weights) for w in weights]


def entropy(p):
    return -sum(x * math.log(x) for x in p if x > 0.0)


def surrogate(logits, mask, action, old_log, advantage, clip, factor):
    """PPO's loss of one row."""
    p = probabilities(logits, mask)
    ratio = p[action] / math.exp(old_log)
    bounded = min(max(ratio, 1.0 - clip), 1.0 + clip)
    return -min(ratio * advantage, bounded * advantage) - factor * entropy(p)


def soft_value(logits, mask, q1, q2, alpha):
    """Expected value of the smaller critic, and what the entropy is worth."""
    p = probabilities(logits, mask)
    return sum(x * min(a, b) for x, a, b in zip(p, q1, q2, strict=True)) + alpha * entropy(p)


def advantages(rewards, overs, values, discount, decay):
    """One episode after the other in a row: A_t = sum_k (gamma lambda)^k delta_(t+k), cut where one ends."""
    n = len(rewards)
    errors = [
        rewards[t] + (0.0 if overs[t] else discount * values[t + 1]) - values[t] for t in range(n)
    ]
    found = []
    for t in range(n):
        total, weight = 0.0, 1.0
        for k in range(t, n):
            total += weight * errors[k]
            weight *= discount * decay
            if overs[k]:
                break
        found.append(total)
    return found


def n_step(rewards, overs, start, n, discount):
    """Discounted rewards of at most n steps, how many there are, and whether the episode ended with them."""
    total = 0.0
    for k in range(n):
        t = start + k
        if t == len(rewards):
            return total, k, False
        total += discount**k * rewards[t]
        if overs[t]:
            return total, k + 1, True
    return total, n, False


def adam(theta, gradients, rate):
    """Adam with its usual constants, all steps."""
    theta, m, v = list(theta), [0.0] * len(theta), [0.0] * len(theta)
    for t, gradient in enumerate(gradients, start=1):
        for k, g in enumerate(gradient):
            m[k] = 0.9 * m[k] + 0.1 * g
            v[k] = 0.999 * v[k] + 0.001 * g * g
            theta[k] -= rate * (m[k] / (1 - 0.9**t)) / (math.sqrt(v[k] / (1 - 0.999**t)) + 1e-8)
    return theta
