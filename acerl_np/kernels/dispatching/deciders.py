"""Who decides: rules, baselines, networks, pairs of them, or index functions, behind one call.

A simulated episode, a look ahead and a control system's dispatcher all ask `decide`. Each kind of decider is
a NamedTuple of its own, by whose type `decide` is compiled: nobody compiles what cannot occur.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

from acerl_np.kernels.core import random
from acerl_np.kernels.core import state as S
from acerl_np.kernels.core.matching import Matching, allocate_matching
from acerl_np.kernels.dispatching import baselines, drawn, observation
from acerl_np.kernels.dispatching.baselines import OVERDUE
from acerl_np.kernels.dispatching.index import Index, Pairs, allocate_pairs, decide_by_index
from acerl_np.kernels.dispatching.own import OwnDecider, decide_by_own
from acerl_np.kernels.dispatching.rules import PAPER_RULES, select_task
from acerl_np.kernels.learning import low_rank, update
from acerl_np.kernels.motion import offers
from acerl_np.kernels.networks import network as N
from acerl_np.kernels.networks.vectors import Vectors
from acerl_np.support.compiled import choose_by_type, inner_kernel, kernel

NOTHING = np.int64(-1), np.int64(-1), np.int64(-1)
"""What is chosen where no vehicle has a choice."""

LATE_COUNTS = 2.5
"""Waiting tasks for which one that is late counts in the measure of overload."""

NO_RULE = np.int64(-1)
"""In place of a rule where a task was chosen without one."""


class RuleDecider(NamedTuple):
    """A rule of `rules.py`, MIX or RANDOM."""

    rule: int


class BaselineDecider(NamedTuple):
    """A rule of `baselines.py`, and a worker's own scratch for it.

    Attributes
    ----------
    rule : int
    value : ndarray(float64, (V, M)), what the rule compares first of each pair of a vehicle and a waiting
        task, inf for pairs that cannot be
    vehicle : ndarray(int64, (V,)); matching : Matching
    kept : ndarray(int64, (3, max(V, M, 2)))
        BEST : the task that each free vehicle would take, -1 for none
        PLACE : positions of waiting tasks in the pool
        MOMENT : see `list_moments`: the present one, and that of BEST
    """

    rule: int
    value: np.ndarray
    vehicle: np.ndarray
    matching: Matching
    kept: np.ndarray


class IndexDecider(NamedTuple):
    """Index functions, and a worker's own scratch for them.

    Attributes
    ----------
    greedy : bool, whether the pair of largest score is taken, or one is drawn
    indices : Index
    pairs : Pairs
    threshold : float, tasks that wait for each vehicle beyond which `fallback` decides
    guard : float, times as long as it was given that a task may be late before it goes first
    fallback : BaselineDecider, or () for none
    """

    greedy: bool
    indices: Index
    pairs: Pairs
    threshold: float = np.inf
    guard: float = np.inf
    fallback: BaselineDecider | tuple[()] = ()


class NetworkDecider(NamedTuple):
    """N networks of one shape, and a worker's own scratch for them.

    They stand in their rows, or they are the members of a generation: then a member is perturbed into row
    member % N when it is asked first.

    Attributes
    ----------
    greedy : bool, whether the most probable action is taken, or one is drawn
    network : Network
    theta : ndarray(float32, (N, at least n_parameters)), the networks' parameters
    column_sums : ndarray(float32, (N, at least n_first)), see `network.sum_columns`
    held : ndarray(int64, (N,)), the member in each row, -1 for none
    mean : ndarray(float32, (n_parameters,))
    noise_std : float, sigma; 0 where the networks are no members
    noise : Noise
    noise_key : ndarray(uint32, (4,))
    bits : ndarray(uint32, (4, LANES)); normals : ndarray(float32, (4, LANES))
    features : Features; layers : Layers
    seen : ndarray(int64, (n_features, N_SEEN_FIELDS)), see `observation.list_seen`
    legal : ndarray(int32, (n_actions,)); weight : ndarray(float64, (n_actions,))
    rules : ndarray(int64, (R,)), the rules of a vehicle's outputs
    vectors : Vectors or ()
        Those of the member in each row, where noise is of low rank: all then share the one row of theta.
    """

    greedy: bool
    network: N.Network
    theta: np.ndarray
    column_sums: np.ndarray
    held: np.ndarray
    mean: np.ndarray
    noise_std: float
    noise: update.Noise
    noise_key: np.ndarray
    bits: np.ndarray
    normals: np.ndarray
    features: N.Features
    layers: N.Layers
    seen: np.ndarray
    legal: np.ndarray
    weight: np.ndarray
    rules: np.ndarray
    vectors: Vectors | tuple[()] = ()


class AgentsDecider(NamedTuple):
    """Pairs of networks, in rows 2 n and 2 n + 1: one chooses the vehicle, the next its rule."""

    networks: NetworkDecider


Decider = RuleDecider | BaselineDecider | OwnDecider | IndexDecider | NetworkDecider | AgentsDecider


def make_baseline_decider(rule: int, problem: S.Problem) -> BaselineDecider:
    """Return the decider that follows a baseline on instances of `problem`."""
    n_vehicles, n_tasks = problem.fleet.shape[1], problem.record.shape[1]
    sizes = sorted((n_vehicles, n_tasks)) if rule == baselines.ASSIGNMENT else (0, 0)
    value, vehicle = np.empty((n_vehicles, n_tasks)), np.empty(n_vehicles, np.int64)
    kept = np.zeros((3, max(n_vehicles, n_tasks, 2)), np.int64)
    return BaselineDecider(rule, value, vehicle, allocate_matching(*sizes), kept)


def list_moments(decider: Any) -> list[np.ndarray]:
    """Return where a decider is told, in place 0, which moment it decides in, from 1 on.

    Between the decisions of a moment nothing changes but that each is carried out. 0: a decision is one of
    its own. In place 1 stands the moment of what is kept.
    """
    if isinstance(decider, IndexDecider):
        return [decider.pairs.rollout.moment, *list_moments(decider.fallback)]
    return [decider.kept[baselines.MOMENT]] if isinstance(decider, BaselineDecider) else []


def allocate_networks(
    network: N.Network, n_networks: int, rules: np.ndarray = PAPER_RULES
) -> NetworkDecider:
    """Return room for `n_networks` members of a generation."""
    sizes = network.sizes
    n_parameters = N.count_parameters(sizes.tolist(), network.has_biases)
    n_features, n_actions, widest = int(sizes[0]), int(sizes[-1]), int(sizes.max())
    return NetworkDecider(
        greedy=False,
        network=network,
        theta=N.allocate_rows(n_networks, n_parameters),
        column_sums=N.allocate_rows(n_networks, int(sizes[1])),
        held=np.full(n_networks, -1, np.int64),
        mean=np.empty(0, np.float32),
        noise_std=0.0,
        noise=update.Noise(0, 0, 2, False),
        noise_key=np.empty(4, np.uint32),
        bits=np.empty((4, random.LANES), np.uint32),
        normals=np.empty((4, random.LANES), np.float32),
        features=N.allocate_features(n_features),
        layers=N.Layers(
            hidden=N.allocate_rows(1, widest)[0],
            active=N.allocate_features(widest),
            logits=np.empty(n_actions, np.float32),
        ),
        seen=np.empty((n_features, observation.N_SEEN_FIELDS), np.int64),
        legal=np.empty(n_actions, np.int32),
        weight=np.empty(n_actions, np.float64),
        rules=rules,
    )


def allocate_members(
    network: N.Network, n: int, rules: np.ndarray, mean: np.ndarray, rank: int
) -> NetworkDecider:
    """Return room for n members of a generation: for networks with `rank` 0, else for vectors beside one."""
    if rank == 0:
        return allocate_networks(network, n, rules)._replace(mean=mean)
    shapes = N.list_shapes(network)
    value = N.allocate_rows(n, low_rank.count_numbers(shapes, rank))
    vectors = Vectors(value, np.empty((n, rank), np.float32), rank, shapes)
    room = make_network_decider(network, mean[None], False, rules)
    return room._replace(mean=mean, held=np.full(n, -1, np.int64), vectors=vectors)


def make_network_decider(
    network: N.Network, thetas: np.ndarray, greedy: bool, rules: np.ndarray = PAPER_RULES
) -> NetworkDecider:
    """Return the decider that follows networks, one per row of ndarray(float32, (N, n_parameters))."""
    decider = allocate_networks(network, len(thetas), rules)
    decider.theta[:, : thetas.shape[1]] = thetas
    for row in range(len(thetas)):
        N.sum_columns(network, decider.theta[row], decider.column_sums[row])
    return decider._replace(greedy=greedy)


def make_index_decider(index: Index, problem: S.Problem, greedy: bool) -> IndexDecider:
    """Return the decider that follows index functions on instances of `problem`."""
    n_vehicles, n_tasks = problem.fleet.shape[1], problem.record.shape[1]
    return IndexDecider(greedy, index, allocate_pairs(n_vehicles, n_tasks, len(index.own)))


def fall_back(problem, state, b, decider, chosen):
    """Return what the fallback decides where too many tasks wait for each vehicle, else `chosen`.

    With a guard a task that is late already counts as `LATE_COUNTS` there, and else one that is overdue goes
    first, to the free vehicle that is there soonest.
    """
    n_vehicles = problem.instance[state.episode[b].instance].n_vehicles
    waiting, overdue, own = np.float64(state.episode[b].pool_size), False, decider.fallback
    if decider.guard < np.inf:
        for task in state.pool[b, : state.episode[b].pool_size]:
            if S.find_due(problem, state, b, task) < state.episode[b].time:
                waiting += LATE_COUNTS - 1.0
                overdue |= baselines.is_overdue(problem, state, b, task, decider.guard)
    if waiting > decider.threshold * n_vehicles:
        return baselines.choose_by_baseline(problem, state, b, own)
    if overdue:
        v, k = baselines.compare_pairs(problem, state, b, own, OVERDUE, decider.guard)
        if v >= 0:
            return v, k, np.int64(OVERDUE)
    return chosen


def _find_fallback(problem, state, b, decider, chosen):
    fallback = decider.types[decider.fields.index("fallback")]
    if getattr(fallback, "instance_class", None) is BaselineDecider:
        return fall_back
    return lambda problem, state, b, decider, chosen: chosen


choose_by_type(fall_back, _find_fallback)


@inner_kernel
def decide_by_function(problem, state, b, decider, row, key, decision):
    """Decide as `decide`, by an index function, or by what relieves it."""
    chosen = decide_by_index(problem, state, b, decider, row, key, decision)
    return fall_back(problem, state, b, decider, chosen)


@inner_kernel
def perturb_all(decider, place, member):
    """Write the parameters of a member into its row."""
    own, mean, sigma = decider.theta[place], decider.mean, decider.noise_std
    key, bits, normals = decider.noise_key, decider.bits, decider.normals
    update.perturb_member(mean, sigma, decider.noise, member, key, bits, normals, own)
    N.sum_columns(decider.network, own, decider.column_sums[place])


@inner_kernel
def draw_own(decider, place, member):
    """Write the vectors of a member into its row."""
    vectors, noise, sigma = decider.vectors, decider.noise, decider.noise_std
    key, bits, normals = decider.noise_key, decider.bits, decider.normals
    value, shapes, rank = vectors.value[place], vectors.shapes, vectors.rank
    scale = np.float32(sigma / np.sqrt(np.float64(rank)))
    low_rank.draw_vectors(noise, member, scale, rank, shapes, key, bits, normals, value)
    for k in range(rank):
        first, total = k * (shapes[0, 0] + shapes[0, 1]), np.float32(0.0)
        for row in range(decider.network.sizes[0]):
            total += value[first + row]
        vectors.total[place, k] = total


def seat_member(vectors, decider, place, member):
    """Write what is a member's own into its row."""
    (draw_own if vectors else perturb_all)(decider, place, member)


def _find_seat(vectors, decider, place, member):
    if getattr(vectors, "instance_class", None) is Vectors:
        return lambda vectors, decider, place, member: draw_own(decider, place, member)
    return lambda vectors, decider, place, member: perturb_all(decider, place, member)


choose_by_type(seat_member, _find_seat)


@inner_kernel
def find_network(decider, row):
    """Return the row that a network stands in; a member of a generation is perturbed if need be."""
    if decider.noise_std == 0.0:
        return row
    place = row % len(decider.held)
    if decider.held[place] != row:
        seat_member(decider.vectors, decider, place, row)
        decider.held[place] = row
    return place


@inner_kernel
def choose_output(decider, row, n_features, n_legal, key, decision, draw):
    """Return the output, of those listed, that a network likes best or draws by its softmax."""
    layers, features, network = decider.layers, decider.features, decider.network
    shared = row % len(decider.theta)
    theta, column_sums = decider.theta[shared], decider.column_sums[shared]
    N.forward(network, theta, column_sums, features, n_features, layers, decider.vectors, row)
    if decider.greedy:
        return np.int64(N.choose_greedy(layers.logits, decider.legal, n_legal))
    uniform, weight = random.draw_uniform(key, decision, draw), decider.weight
    return np.int64(N.choose_sampled(layers.logits, decider.legal, n_legal, uniform, weight))


@inner_kernel
def decide_by_network(problem, state, b, decider, row, key, decision):
    """Decide as `decide`, by a network: one output for each vehicle and rule."""
    if not offers.is_decision_due(problem, state, b):
        return NOTHING
    place = find_network(decider, row)
    n = observation.list_features(problem, state, b, decider.features, decider.seen)
    n_rules = len(decider.rules)
    n_legal = observation.list_actions(problem, state, b, n_rules, decider.legal)
    action = choose_output(decider, place, n, n_legal, key, decision, 0)
    v, rule = np.int64(action // n_rules), decider.rules[action % n_rules]
    return v, np.int64(select_task(problem, state, b, v, rule)), rule


@inner_kernel
def decide_by_agents(problem, state, b, decider, row, key, decision):
    """Decide as `decide`, by two networks.

    The first outputs of the one are the vehicles'; of the other's, one per action, those of the chosen
    vehicle count.
    """
    if not offers.is_decision_due(problem, state, b):
        return NOTHING
    own, n_rules = decider.networks, len(decider.networks.rules)
    n = observation.list_features(problem, state, b, own.features, own.seen)
    n_legal = observation.list_actions(problem, state, b, n_rules, own.legal)
    n_choices = np.int64(0)
    for k in range(n_legal):
        if own.legal[k] % n_rules == 0:
            own.legal[n_choices] = own.legal[k] // n_rules
            n_choices += 1
    v = choose_output(own, 2 * row, n, n_choices, key, decision, 0)
    for k in range(n_rules):
        own.legal[k] = v * n_rules + k
    action = choose_output(own, 2 * row + 1, n, np.int64(n_rules), key, decision, 1)
    rule = own.rules[action % n_rules]
    return v, np.int64(select_task(problem, state, b, v, rule)), rule


KINDS: dict[type, Callable[..., tuple[int, int, int]]] = {
    RuleDecider: drawn.decide_by_rule,
    BaselineDecider: baselines.decide_by_baseline,
    OwnDecider: decide_by_own,
    IndexDecider: decide_by_function,
    NetworkDecider: decide_by_network,
    AgentsDecider: decide_by_agents,
}
"""What decides for each type of decider."""


def decide(problem, state, b, decider, row, key, decision):
    """Return the vehicle, its task's position in the pool, and the rule that picked it or `NO_RULE`.

    -1 three times where no vehicle has a choice. Draws are (decision, 0) and (decision, 1) of the stream
    of `key`; `row` says which of several networks or index functions decides.
    """
    return KINDS[type(decider)](problem, state, b, decider, row, key, decision)


def find_kind(decider: Any, kinds: dict[type, Callable[..., Any]]) -> Callable[..., Any] | None:
    """Return what decides for numba's type of a decider, None if it is none of these kinds."""
    own = kinds.get(getattr(decider, "instance_class", type(None)))
    if own is None:
        return None

    def decide_by_own(problem, state, b, decider, row, key, decision):
        return own(problem, state, b, decider, row, key, decision)

    return decide_by_own


def _find(problem, state, b, decider, row, key, decision):
    return find_kind(decider, KINDS)


choose_by_type(decide, _find)


@kernel
def derive_keys(seed, purpose, a, first, keys):
    """Write the keys of streams (seed, purpose, a, first), (seed, purpose, a, first + 1), ...

    Parameters
    ----------
    seed, purpose, a, first : int, as `random.derive_key`
    keys : ndarray(uint32, (n, 4)), output
    """
    for k in range(len(keys)):
        random.derive_key(seed, purpose, a, first + k, keys[k])
