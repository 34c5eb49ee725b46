"""Slow, obvious streams, network, ranking, sampler and gradient: oracles of the fast kernels."""

import math

import numpy as np

WORD = 0xFFFFFFFF
PARITY = 0x1BD11BDA
ROTATIONS = ((10, 26), (11, 21), (13, 27), (23, 5), (6, 20), (17, 11), (25, 10), (18, 20))

ROUNDS = 13
LANES = 512
BLOCK = 4 * LANES

NOISE, ACTION, RANKING, SAMPLER, INITIAL, EVALUATION = 1, 2, 3, 4, 5, 6
BREAKDOWN = 9


# Random streams


def rotate_left(word, turn):
    """Rotate a 32-bit word."""
    return ((word << turn) | (word >> (32 - turn))) & WORD


def threefry4x32(key, counter, rounds=ROUNDS):
    """Threefry-4x32 on Python integers: two mixes a round, a key injection after every fourth."""
    extended = [*key, PARITY ^ key[0] ^ key[1] ^ key[2] ^ key[3]]
    x = [(counter[i] + extended[i]) & WORD for i in range(4)]
    for done in range(rounds):
        turns = ROTATIONS[done % 8]
        pairs = [(0, 1), (2, 3)] if done % 2 == 0 else [(0, 3), (2, 1)]
        for (a, b), turn in zip(pairs, turns, strict=True):
            x[a] = (x[a] + x[b]) & WORD
            x[b] = rotate_left(x[b], turn) ^ x[a]
        if done % 4 == 3:
            injection = done // 4 + 1
            x = [(x[i] + extended[(injection + i) % 5]) & WORD for i in range(4)]
            x[3] = (x[3] + injection) & WORD
    return x


def stream_key(seed, purpose, a, b):
    """The 128-bit key of a stream: (seed, purpose) is Threefry's key, (a, b) its counter."""
    seed, a, b = seed % 2**64, a % 2**64, b % 2**64
    return threefry4x32(
        [seed & WORD, seed >> 32, purpose & WORD, 0], [a & WORD, a >> 32, b & WORD, b >> 32]
    )


def uniform(key, i, j):
    """Draw (i, j) of a stream: the top 53 of 64 bits, as a fraction."""
    high, low, _, _ = threefry4x32(key, [i, j, 0, 1])
    return ((high >> 5) * 2**26 + (low >> 6)) / 2**53


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
    """The first `n` normals of a stream, float64."""
    blocks = [normals(key, block).ravel() for block in range(-(-n // BLOCK))]
    return np.concatenate(blocks)[:n]


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


def penalty(cost, cost_limit):
    """Squared violation of one cost (Eq. 8)."""
    return (cost - cost_limit) ** 2 if cost > cost_limit else 0.0


def penalised(j_r, cost, cost_limit, weight=3.0, margin=5.0):
    """A return less so much for every unit of cost from `margin` below the limit on."""
    return j_r - weight * max(0.0, cost - (cost_limit - margin))


def bubble_sort(returns, penalties, p_f, draw):
    """Members from best to worst (Algorithm 4); `draw(sweep, j)` is uniform in [0, 1)."""
    order = list(range(len(returns)))
    for sweep in range(len(order)):
        for j in range(len(order) - 1):
            a, b = order[j], order[j + 1]
            delta = draw(sweep, j)
            if (penalties[a] == 0 and penalties[b] == 0) or delta < p_f:
                if returns[a] < returns[b]:
                    order[j], order[j + 1] = b, a
            elif penalties[a] > penalties[b]:
                order[j], order[j + 1] = b, a
    return order


def ranks(order):
    """Fitness by Algorithm 3, line 20: the best of n members gets n, the worst 1."""
    fitness = [0.0] * len(order)
    for place, member in enumerate(order):
        fitness[member] = float(len(order) - place)
    return fitness


def score(ranking, returns, costs, cost_limit, p_f, key):
    """Score the members of one instance; `key` is (seed, generation, instance)."""
    if ranking == "cf":
        return [j_r - j_c for j_r, j_c in zip(returns, costs, strict=True)]
    if ranking == "f":
        return [float(j_r) for j_r in returns]
    if ranking == "penalty":
        return [penalised(j_r, j_c, cost_limit) for j_r, j_c in zip(returns, costs, strict=True)]
    if ranking == "r":
        return ranks(sorted(range(len(returns)), key=lambda k: -returns[k]))
    stream = stream_key(key[0], RANKING, key[1], key[2])
    penalties = [penalty(cost, cost_limit) for cost in costs]
    return ranks(bubble_sort(returns, penalties, p_f, lambda sweep, j: uniform(stream, sweep, j)))


def standardise(values):
    """Zero mean, unit standard deviation (ddof 0); equal values become zeros."""
    if min(values) == max(values):
        return [0.0] * len(values)
    mean = math.fsum(values) / len(values)
    std = math.sqrt(math.fsum((x - mean) ** 2 for x in values) / len(values))
    return [(x - mean) / std for x in values]


def utilities(
    returns, costs, ids, *, ranking, shaping, cost_limit=50.0, p_f=0.5, seed=0, generation=0
):
    """Utilities of a population whose returns and costs are finite, instance by instance."""
    f = [0.0] * len(returns)
    for instance in sorted(set(ids)):
        members = [k for k in range(len(ids)) if ids[k] == instance]
        scores = score(
            ranking,
            [returns[k] for k in members],
            [costs[k] for k in members],
            cost_limit,
            p_f,
            (seed, generation, instance),
        )
        if shaping == "standardised":
            scores = standardise(scores)
        for k, value in zip(members, scores, strict=True):
            f[k] = value
    return np.array(standardise(f) if shaping == "standardised" else f)


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
        return np.array(standardise(means) if shaping == "standardised" else means)
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

    def metric(self, instance, advantage="paper"):
        """u of one instance (Eq. 6), term by term."""
        rewards = self.rewards[instance]
        if not rewards or max(rewards) == min(rewards):
            return 0.0
        high, low = max(rewards), min(rewards)
        if advantage == "paper":
            terms = [(high - reward) / (high - low) for reward in rewards]
        else:
            terms = [(reward - low) / (high - low) for reward in rewards]
        return math.fsum(terms) / len(terms)

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
        """One instance per group: untried ones in turn, then by keyed draws."""
        untried = [i for i, n in enumerate(self.count) if n == 0]
        if len(untried) == len(self.count):
            return [group % len(self.count) for group in range(n_groups)]
        key = stream_key(seed, SAMPLER, generation, 0)
        probability = self.probabilities(alpha_u, advantage)
        drawn = [invert(probability, uniform(key, group, 0)) for group in range(n_groups)]
        return (untried + drawn[len(untried) :])[:n_groups]


# Gradient


def estimate_gradient(utilities, noise, noise_std):
    """1 / (lambda sigma) sum_i f_i eps_i with stored noise (Eq. 11; mirrored noise: Eq. 12)."""
    total = np.zeros(np.shape(noise)[1])
    for f, eps in zip(utilities, noise, strict=True):
        total += f * eps
    return total / (len(noise) * noise_std)


# Adapted step sizes


def weigh(scores):
    """Log weights of the places, member by member; tied members share the mean of their weights."""
    n = len(scores)
    if min(scores) == max(scores):
        return [0.0] * n
    raw = [math.log(n + 1) - math.log(place + 1) for place in range(n)]
    weights = []
    for score in scores:
        first = sum(other > score for other in scores)
        tied = sum(other == score for other in scores)
        shared = math.fsum(raw[first : first + tied]) / tied
        weights.append(shared / math.fsum(raw) - 1 / n)
    return weights


def weigh_clipped(utilities, outside):
    """The same with the members outside behind all others, unless all are outside."""
    if min(utilities) == max(utilities) or all(outside) or not any(outside):
        return weigh(utilities)
    lowest = min(utilities)
    # Above zero as far as they are above the lowest, so that -1 is below all.
    return weigh([-1.0 if out else u - lowest for u, out in zip(utilities, outside, strict=True)])


def exponential(matrix):
    """Sum of the power series of a matrix."""
    result, term = np.eye(len(matrix)), np.eye(len(matrix))
    for k in range(1, 80):
        term = term @ matrix / k
        result = result + term
    return result


def adapt(kind, mean, spread, first_sigma, utilities, noise, lower, upper):
    """One step of SNES or xNES on mean and spread, term by term (Wierstra et al. 2014)."""
    n = len(mean)
    matrix = np.diag(first_sigma) @ (spread if kind == "matrix" else np.diag(spread))
    raw = np.array([mean + matrix @ eps for eps in noise])
    outside = (raw < lower) | (raw > upper)
    if kind == "matrix":
        weights = weigh_clipped(utilities, outside.any(axis=1))
        total = sum(w * eps for w, eps in zip(weights, noise, strict=True))
        gradient = sum(
            w * (np.outer(eps, eps) - np.eye(n)) for w, eps in zip(weights, noise, strict=True)
        )
        eta = (9 + 3 * math.log(n)) / (5 * n * math.sqrt(n))
        return mean + matrix @ total, spread @ exponential(eta / 2 * gradient)
    moved, stretched = np.array(mean), np.array(spread)
    eta = (3 + math.log(n)) / (5 * math.sqrt(n))
    for j in range(n):
        weights = weigh_clipped(utilities, outside[:, j])
        own = [float(eps[j]) for eps in noise]
        moved[j] += matrix[j, j] * math.fsum(w * s for w, s in zip(weights, own, strict=True))
        slope = math.fsum(w * (s * s - 1) for w, s in zip(weights, own, strict=True))
        stretched[j] *= math.exp(eta / 2 * slope)
    return moved, stretched
