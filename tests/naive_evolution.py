"""Slow, obvious streams, network, ranking, sampler and gradient: oracles of the fast kernels.

What is the paper's is `acerl_np.plain`. Beside it stand normals, network and gradient in float64, which
share no rounding with the kernels, and what only options, other spreads and other draws need.
"""

import math

import numpy as np

from acerl_np.plain import evolution as plain
from acerl_np.plain import streams
from acerl_np.plain.evolution import count_down, penalty, sort, standardise
from acerl_np.plain.streams import (
    ACTION,
    INITIAL,
    LANES,
    NOISE,
    RANKING,
    SAMPLER,
    stream_key,
    threefry4x32,
    uniform,
)

__all__ = ["ACTION", "INITIAL", "uniform"]  # those that tests read here alone

EVALUATION, BREAKDOWN = 6, 9


# Random streams


def waiting_time(key, i, j):
    """Waiting time (i, j) of a stream: exponential of mean 1, by inversion."""
    high, low, _, _ = threefry4x32(key, [i, j, 0, 2])
    return -math.log(1 - ((high >> 5) * 2**26 + (low >> 6)) / 2**53)


def normal_pair(radius_bits, angle_bits):
    """Box-Muller in float64; only the radius's uniform number is rounded to float32.

    Bits 28 to 0 of the angle are a signed fraction of the eighth of a turn on either side of zero;
    bit 31 swaps cosine and sine, bit 30 negates the first and bit 29 the second.
    """
    u = float(np.float32(radius_bits) * np.float32(2.0**-32) + np.float32(2.0**-33))
    radius = math.sqrt(-2.0 * math.log(u))
    fraction = angle_bits & 0x1FFFFFFF
    if fraction >= 0x10000000:
        fraction -= 0x20000000
    angle = fraction / 2**28 * math.pi / 4
    x, y = math.cos(angle), math.sin(angle)
    if angle_bits >> 31 & 1:
        x, y = y, x
    if angle_bits >> 30 & 1:
        x = -x
    if angle_bits >> 29 & 1:
        y = -y
    return radius * x, radius * y


def normals(key, block):
    """Block `block` of a stream's standard normals, float64 (4, LANES)."""
    out = np.empty((4, LANES))
    for i in range(LANES):
        words = threefry4x32(key, [block * LANES + i, 0, 0, 0])
        out[0, i], out[1, i] = normal_pair(words[0], words[2])
        out[2, i], out[3, i] = normal_pair(words[1], words[3])
    return out


def normal_stream(key, n):
    """The first `n` normals of a stream, as the paper's streams round them."""
    return streams.normals([int(word) for word in key], n).astype(np.float64)


def member_noise(seed, generation, n_members, n_parameters, antithetic):
    """Every member's noise, float64 (n_members, n_parameters); of a pair the second is mirrored."""
    noise = np.empty((n_members, n_parameters))
    for member in range(n_members):
        if antithetic and member % 2:
            noise[member] = -noise[member - 1]
        else:
            stream = member // 2 if antithetic else member
            noise[member] = normal_stream(stream_key(seed, NOISE, generation, stream), n_parameters)
    return noise


# Network


def forward(sizes, theta, observation, has_biases=True, standardises=True):
    """Logits of one observation in float64: standardise the whole vector, then ReLU layers."""
    x = np.asarray(observation, np.float64)
    if standardises:
        x = (x - x.mean()) / (x.std() + 1e-5)
    theta = np.asarray(theta, np.float64)
    position = 0
    for layer in range(len(sizes) - 1):
        n_in, n_out = sizes[layer], sizes[layer + 1]
        x = x @ theta[position : position + n_in * n_out].reshape(n_in, n_out)
        position += n_in * n_out
        if has_biases:
            x = x + theta[position : position + n_out]
            position += n_out
        if layer < len(sizes) - 2:
            x = np.maximum(x, 0.0)
    assert position == len(theta)
    return x


def masked_softmax(logits, mask):
    """Probability of each action, 0 for illegal ones."""
    legal = np.flatnonzero(mask)
    weight = np.exp(logits[legal] - logits[legal].max())
    probability = np.zeros(len(logits))
    probability[legal] = weight / weight.sum()
    return probability


def invert(probability, u):
    """The first index whose cumulated probability exceeds `u`."""
    cumulated = 0.0
    for k, p in enumerate(probability):
        cumulated += p
        if u < cumulated:
            return k
    return int(np.flatnonzero(probability)[-1])


# Ranking


def penalised(j_r, cost, cost_limit, weight=3.0, margin=5.0):
    """A return less so much for every unit of cost from `margin` below the limit on."""
    return j_r - weight * max(0.0, cost - (cost_limit - margin))


def score(ranking, returns, costs, cost_limit, p_f, key):
    """Score the members of one instance; `key` is (seed, generation, instance)."""
    if ranking == "cf":
        return [j_r - j_c for j_r, j_c in zip(returns, costs, strict=True)]
    if ranking == "f":
        return [float(j_r) for j_r in returns]
    if ranking == "penalty":
        return [penalised(j_r, j_c, cost_limit) for j_r, j_c in zip(returns, costs, strict=True)]
    if ranking == "r":
        return count_down(sorted(range(len(returns)), key=lambda k: -returns[k]))
    penalties = [penalty(cost, cost_limit) for cost in costs]
    return count_down(sort(returns, penalties, p_f, stream_key(key[0], RANKING, *key[1:])))


def utilities(
    returns, costs, ids, *, ranking, shaping, cost_limit=50.0, p_f=0.5, seed=0, generation=0
):
    """Utilities of a population whose returns and costs are finite, instance by instance."""
    f = [0.0] * len(returns)
    for instance in sorted(set(ids)):
        members = [k for k in range(len(ids)) if ids[k] == instance]
        own = [returns[k] for k in members], [costs[k] for k in members]
        scores = score(ranking, *own, cost_limit, p_f, (seed, generation, instance))
        if shaping == "standardised":
            scores = standardise(np.array(scores))
        for k, value in zip(members, scores, strict=True):
            f[k] = value
    return standardise(np.array(f)) if shaping == "standardised" else np.array(f)


def population_utilities(returns, costs, rows, *, ranking, shaping, cost_limit, **options):
    """Utilities of members that played K episodes each; all three are lists of K numbers per member.

    A member's utility is the mean of those of its episodes, each ranked among those of its record. With
    penalties and several episodes it is the mean of its penalised returns instead.
    """
    if ranking == "penalty" and len(rows[0]) > 1:
        means = [
            math.fsum(penalised(*pair, cost_limit) for pair in zip(j_r, j_c, strict=True))
            / len(j_r)
            for j_r, j_c in zip(returns, costs, strict=True)
        ]
        return standardise(np.array(means)) if shaping == "standardised" else np.array(means)
    flat = [[value for own in columns for value in own] for columns in (returns, costs, rows)]
    f = utilities(*flat, ranking=ranking, shaping=shaping, cost_limit=cost_limit, **options)
    n = len(rows[0])
    return np.array([sum(f[k : k + n]) / n for k in range(0, len(f), n)])


# Instance sampler


class RewardBuffers:
    """Algorithm 2 with its buffers: every finite return of every instance is kept.

    rewards : one growing list of finite returns per instance
    count : episodes played on each instance
    """

    def __init__(self, n_instances):
        self.rewards = [[] for _ in range(n_instances)]
        self.count = [0] * n_instances

    def update(self, ids, returns):
        """Take in the returns of a generation."""
        for instance, reward in zip(ids, returns, strict=True):
            self.count[instance] += 1
            if math.isfinite(reward):
                self.rewards[instance].append(reward)

    def seen(self, advantage):
        """The buffers, one return in each at least; the released code's advantage is that of costs."""
        sign = 1.0 if advantage == "paper" else -1.0
        return [[sign * reward for reward in own] or [0.0] for own in self.rewards]

    def metric(self, instance, advantage="paper"):
        """u of one instance (Eq. 6)."""
        return plain.metric(self.seen(advantage)[instance])

    def probabilities(self, alpha_u=1.0, advantage="paper"):
        """Softmax of u + alpha_u sqrt(log N / N_i) over the instances that were tried."""
        total = sum(self.count)
        weight = [
            math.exp(self.metric(i, advantage) + alpha_u * math.sqrt(math.log(total) / n))
            if n
            else 0.0
            for i, n in enumerate(self.count)
        ]
        return np.array(weight) / sum(weight)

    def assign(self, n_groups, seed, generation, alpha_u=1.0, advantage="paper"):
        """One instance per group."""
        key = stream_key(seed, SAMPLER, generation, 0)
        return plain.sample_instances(self.seen(advantage), self.count, n_groups, alpha_u, key)


# Gradient


def estimate_gradient(utilities, noise, noise_std):
    """1 / (lambda sigma) sum_i f_i eps_i with stored noise (Eq. 11; mirrored noise: Eq. 12)."""
    total = np.zeros(np.shape(noise)[1])
    for f, eps in zip(utilities, noise, strict=True):
        total += f * eps
    return total / (len(noise) * noise_std)


# Adapted covariances (Hansen's tutorial, arXiv:1604.00772)


def place_weights(n, population, c_1, c_mu):
    """Weights by place (49 to 53): of the mean's step, and of the covariance."""
    raw = [math.log((population + 1) / 2) - math.log(place) for place in range(1, population + 1)]
    good = [w for w in raw if w > 0]
    bad = [-w for w in raw if w < 0]
    mu_eff = math.fsum(good) ** 2 / math.fsum(w * w for w in good)
    mu_bad = math.fsum(bad) ** 2 / math.fsum(w * w for w in bad)
    negative = min(1 + c_1 / c_mu, 1 + 2 * mu_bad / (mu_eff + 2), (1 - c_1 - c_mu) / (n * c_mu))
    mean = [max(w, 0) / math.fsum(good) for w in raw]
    shape = [w / math.fsum(good) if w >= 0 else negative * w / math.fsum(bad) for w in raw]
    return mean, shape


def covariance_rates(n, population, speed):
    """(c_sigma, d_sigma, c_c, c_1, c_mu) of Table 1; speed: factor on the last two."""
    raw = [math.log((population + 1) / 2) - math.log(place) for place in range(1, population + 1)]
    good = [w for w in raw if w > 0]
    mu = math.fsum(good) ** 2 / math.fsum(w * w for w in good)
    c_sigma = (mu + 2) / (n + mu + 5)
    d_sigma = 1 + 2 * max(0, math.sqrt((mu - 1) / (n + 1)) - 1) + c_sigma
    c_c = (4 + mu / n) / (n + 4 + 2 * mu / n)
    c_1 = min(1, speed * 2 / ((n + 1.3) ** 2 + mu))
    c_mu = min(1 - c_1, speed * 2 * (1 / 4 + mu + 1 / mu - 2) / ((n + 2) ** 2 + mu))
    return c_sigma, d_sigma, c_c, c_1, c_mu


def shared(by_place, utilities):
    """Each member's weight: tied ones share those of the places that they hold."""
    n = len(utilities)
    weights = []
    for member in range(n):
        first = sum(utilities[other] > utilities[member] for other in range(n))
        after = sum(utilities[other] < utilities[member] for other in range(n))
        held = by_place[first : n - after]
        weights.append(math.fsum(held) / len(held))
    return weights


def place_smoothly(y, lower, upper, rim):
    """One number mapped onto [lower, upper]: mirrored into reach, then parabolas within a rim."""
    while not lower - rim <= y <= upper + rim:
        y = 2 * (lower - rim) - y if y < lower - rim else 2 * (upper + rim) - y
    if y < lower + rim:
        return lower + (y - lower + rim) ** 2 / (4 * rim)
    if y > upper - rim:
        return upper - (upper + rim - y) ** 2 / (4 * rim)
    return y


def selection_variance(weights, antithetic):
    """Variance of sum_i w_i z_i over all orders of the members: the mean of its square, pair by pair."""
    n = len(weights)
    if not antithetic:
        return math.fsum(w * w for w in weights)
    differences = [
        (a - b) ** 2 for i, a in enumerate(weights) for j, b in enumerate(weights) if i != j
    ]
    return n / 2 * math.fsum(differences) / len(differences)


def triangular_root(matrix):
    """A with zeros above its diagonal and A A^T = matrix, entry by entry."""
    n = len(matrix)
    root = [[0.0] * n for _ in range(n)]
    for i in range(n):
        for j in range(i + 1):
            rest = matrix[i][j] - math.fsum(root[i][k] * root[j][k] for k in range(j))
            root[i][j] = math.sqrt(rest) if i == j else rest / root[j][j]
    return root


def adapt(kind, mean, state, first, utilities, noise, antithetic, limits=None):
    """One generation of CMA-ES ("matrix") or sep-CMA-ES ("sigma"): the new mean and state.

    state : the arrays of the spread's `pack`, here as lists and numbers; "sigma" has a diagonal
    limits : least and largest sigma of each parameter
    """
    n, population = len(mean), len(utilities)
    full = kind == "matrix"
    size, updates = float(state["size"]), int(state["updates"])
    c = [list(row) for row in (state["covariance"] if full else np.diag(state["covariance"]))]
    root = triangular_root(c)
    y = [[math.fsum(root[j][k] * z[k] for k in range(n)) for j in range(n)] for z in noise]
    c_s, d_s, c_c, c_1, c_mu = covariance_rates(n, population, 1 if full else (n + 2) / 3)
    by_place = place_weights(n, population, c_1, c_mu)
    w_mean, w_shape = (shared(weights, utilities) for weights in by_place)
    z_mean = [math.fsum(w * z[j] for w, z in zip(w_mean, noise, strict=True)) for j in range(n)]
    y_mean = [math.fsum(root[j][k] * z_mean[k] for k in range(n)) for j in range(n)]
    mu = 1 / selection_variance(w_mean, antithetic)

    share = math.sqrt(c_s * (2 - c_s) * mu)
    p_s = [(1 - c_s) * state["size_path"][j] + share * z_mean[j] for j in range(n)]
    expected = math.sqrt(n) * (1 - 1 / (4 * n) + 1 / (21 * n * n))
    length = math.sqrt(math.fsum(p * p for p in p_s))
    new_size = size * math.exp(min(1, c_s / d_s * (length / expected - 1)))
    corrected = length / math.sqrt(1 - (1 - c_s) ** (2 * (updates + 1)))
    h = 1 if corrected < (1.4 + 2 / (n + 1)) * expected else 0
    p_c = [
        (1 - c_c) * state["shape_path"][j] + h * math.sqrt(c_c * (2 - c_c) * mu) * y_mean[j]
        for j in range(n)
    ]
    for i, w in enumerate(w_shape):
        w_shape[i] = w if w >= 0 else w * n / math.fsum(z * z for z in noise[i])
    new = [[0.0] * n for _ in range(n)]
    for a in range(n):
        for b in range(n):
            rank_mu = sum(w * own[a] * own[b] for w, own in zip(w_shape, y, strict=True))
            kept = 1 + c_1 * (1 - h) * c_c * (2 - c_c) - c_1 - c_mu * math.fsum(by_place[1])
            new[a][b] = kept * c[a][b] + c_1 * p_c[a] * p_c[b] + c_mu * rank_mu
    if limits:
        sigma = [first[j] * new_size * math.sqrt(new[j][j]) for j in range(n)]
        factor = [min(max(sigma[j], limits[0][j]), limits[1][j]) / sigma[j] for j in range(n)]
        new = [[new[a][b] * factor[a] * factor[b] for b in range(n)] for a in range(n)]
    moved = [mean[j] + first[j] * size * y_mean[j] for j in range(n)]
    return np.array(moved), {
        "size": new_size,
        "covariance": np.array(new) if full else np.diag(new),
        "size_path": np.array(p_s),
        "shape_path": np.array(p_c),
        "updates": updates + 1,
    }
