"""The statistics of the studies beside slow ones: all partitions counted, and published examples."""

from itertools import combinations

import numpy as np
import pytest
from scipy.stats import mannwhitneyu, trim_mean

from studies.statistics import (
    compare_ranks,
    find_threshold,
    measure_gain,
    measure_middle,
    predict_means,
)


@pytest.mark.parametrize("seed", range(6))
def test_ranks_count_all_partitions_where_there_are_few(seed):
    """Also where values tie."""
    random = np.random.default_rng(seed)
    own, other = random.integers(0, 6, 4), random.integers(1, 7, 6)
    both = np.concatenate([own, other])

    def count(chosen):
        rest = [both[k] for k in range(10) if k not in chosen]
        pairs = [(both[k], y) for k in chosen for y in rest]
        return sum((x > y) + 0.5 * (x == y) for x, y in pairs)

    found = [count(chosen) for chosen in combinations(range(10), 4)]
    far = np.mean([abs(x - 12.0) >= abs(found[0] - 12.0) - 1e-9 for x in found])
    test = compare_ranks(own, other)
    assert test.p == pytest.approx(far) and test.larger == pytest.approx(found[0] / 24.0)
    assert compare_ranks(other, own).larger == pytest.approx(1.0 - test.larger)


def test_side_and_p_are_of_one_statistic():
    """Seventeen of twenty are larger, the mean is not."""
    own = np.array([*np.linspace(100.0, 101.0, 17), 20.0, 30.0, 40.0])
    other = np.linspace(98.0, 99.0, 20)
    test = compare_ranks(own, other)
    assert own.mean() < other.mean() and test.side == 1
    assert test.p == mannwhitneyu(own, other).pvalue
    assert compare_ranks([1, 2], [1, 2]).side == compare_ranks([7, 7], [7, 7]).side == 0


def test_few_false_discoveries():
    """The example of Benjamini and Hochberg (1995): four of fifteen."""
    p = [0.0001, 0.0004, 0.0019, 0.0095, 0.0201, 0.0278, 0.0298, 0.0344, 0.0459, 0.3240]
    p += [0.4262, 0.5719, 0.6528, 0.7590, 1.0]
    assert find_threshold(p[::-1]) == 0.0095
    assert find_threshold([]) == find_threshold([0.2, 0.06]) == 0.0


def test_predictions_are_of_one_draw_and_the_same_seeds_everywhere():
    """Two suites whose seeds cancel: only the draw is left."""
    seeds = np.arange(4.0)
    values = np.array([[seeds, seeds + 10.0], [-seeds, -seeds]])
    assert set(predict_means(values).round(9)) == {0.0, 5.0}
    one = predict_means(np.array([[[0.0, 1.0]]]))
    assert one.mean() == pytest.approx(0.5, abs=0.01)
    assert one.std() == pytest.approx(0.5 / 5**0.5, abs=0.01)


def test_gains_and_middles_by_hand():
    own, other = np.array([1.0, 3.0, 5.0]), np.array([2.0, 4.0, 6.0])
    gain = measure_gain(own, other)
    half = 2.776445 * (8.0 / 3.0) ** 0.5  # Welch's degrees of freedom are 4 here
    assert gain[:3] == pytest.approx((-1.0, -1.0 - half, -1.0 + half), abs=1e-3)
    assert gain.visible == pytest.approx(half * (1.0 + 0.841621 / 1.959964), abs=1e-3)
    scores = np.array([[0.0, 1.0, 2.0, 3.0], [0.0, 1.0, 2.0, 9.0]])
    middle, low, high = measure_middle(scores)
    assert middle == trim_mean(scores.ravel(), 0.25) == 1.5
    assert low == 0.0 and 2.0 < high <= 6.0
