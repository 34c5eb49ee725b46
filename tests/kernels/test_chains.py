"""Chains, machines and announced tasks: the kernels beside the slow simulator."""

import pytest
import worlds
from hypothesis import given, settings
from hypothesis import strategies as st
from played import compare, compare_drawn, list_kinds

import acerl_np
from acerl_np.evaluation.tracing import trace_policy

pytestmark = pytest.mark.oracle

KINDS = list_kinds(worlds.with_chains(worlds.worlds()))


def compare_seed(seed, commitment):
    fast, slow = compare(worlds.chained_world(seed), commitment, seed % 9, seed)
    assert fast.time == slow.makespan


@pytest.mark.parametrize("commitment", ["assignment", "pickup"])
@pytest.mark.parametrize("seed", range(30))
def test_the_kernels_equal_the_slow_simulator_on_a_small_floor(seed, commitment):
    compare_seed(seed, commitment)


@pytest.mark.parametrize("commitment", ["assignment", "pickup"])
@pytest.mark.parametrize("kind", KINDS)
@settings(max_examples=25)
@given(data=st.data())
def test_the_kernels_equal_the_slow_simulator(kind, commitment, data):
    compare_drawn(KINDS[kind], commitment, data)


@pytest.mark.parametrize("rule", ["FCFS", "EDD", "NVF", "STD", "LWT", "AHP"])
def test_rules_serve_tasks_that_are_never_due(rule):
    trace = trace_policy(rule, acerl_np.load_instance("EX11"))
    assert sorted(decision.task for decision in trace.decisions) == list(range(13))


@pytest.mark.long
@pytest.mark.parametrize("commitment", ["assignment", "pickup"])
def test_the_kernels_equal_the_slow_simulator_on_many_small_floors(commitment):
    for seed in range(5000):
        compare_seed(seed, commitment)


@pytest.mark.long
@pytest.mark.parametrize("commitment", ["assignment", "pickup"])
@pytest.mark.parametrize("kind", KINDS)
@settings(max_examples=700)
@given(data=st.data())
def test_the_kernels_equal_the_slow_simulator_on_many_floors(kind, commitment, data):
    compare_drawn(KINDS[kind], commitment, data)
