"""Comparisons, the sampler's choices and weights: what is drawn is what was measured."""

import math
from dataclasses import replace
from statistics import fmean

import numpy as np
import pytest
from boxes import draw_figure, find_faults

import acerl_np
from acerl_np.evaluation.importance import Part, list_parts
from acerl_np.evaluation.trials import Trials
from acerl_np.pictures.compare import compare_records, draw_comparison, find_far
from acerl_np.pictures.runs import Counts
from acerl_np.pictures.trainings import average_blocks, draw_sampler, find_shares
from acerl_np.pictures.weights import draw_weights
from acerl_np.problem.goal import Goal
from acerl_np.support.errors import InputError


def make_trials(seed, n_records=3, trials=4, cost_limit=50.0):
    rng = np.random.default_rng(seed)
    values = rng.uniform(10, 99, (2, n_records, trials))
    names = tuple(f"$r_{{{k}}}$" for k in range(n_records))
    goal, makespan = Goal(cost_limit=cost_limit), values[0] + 1000
    usage = [values[1] / 100] * 4
    return Trials(names, makespan, values[1], 9, goal, *usage, makespan, values[1], usage[0])


def test_differences_are_paired():
    by_record = np.array([[10.0, 20.0, 30.0], [12.0, 26.0, 31.0]])
    difference, error = compare_records(by_record)
    assert difference.tolist() == [0.0, 3.0]
    # Of 2, 6 and 1 by hand.
    assert error.tolist() == [0.0, pytest.approx(math.sqrt((1 + 9 + 4) / 2 / 3))]
    assert math.isnan(compare_records(by_record[:, :1])[1][1])


def test_a_comparison_shows_every_record_and_the_means():
    results = [make_trials(seed) for seed in range(4)]
    figure = draw_figure(draw_comparison, ["A", "B", "C", "D"], results)
    for axes, name in zip(figure.axes, ("makespan", "tardiness"), strict=True):
        slow = [[fmean(row) for row in getattr(trials, name)] for trials in results]
        joined = [line.get_xdata() for line in axes.lines if line.get_linewidth() == 0.6]
        joined = [x.tolist() for x in joined if len(x) == 4]
        np.testing.assert_allclose(sorted(joined), sorted(zip(*slow, strict=True)))
        means = list(map(fmean, slow))
        [marks] = [line for line in axes.lines if line.get_marker() == "D"]
        np.testing.assert_allclose(marks.get_xdata(), means)
        texts = zip(means, (text.get_text() for text in axes.texts), strict=False)
        assert all(f"{mean:,.1f}" in text for mean, text in texts)
    limits = [line.get_xdata() for line in figure.axes[1].lines if line.get_linestyle() == "--"]
    assert limits == [[50.0, 50.0]]
    rows = [label.get_text() for label in figure.axes[0].get_yticklabels()]
    assert rows == [
        f"{name}\n{(trials.tardiness < 50).mean():.0%} within limit"
        for name, trials in zip("ABCD", results, strict=True)
    ]


def test_what_is_far_worse_ends_the_axis():
    def find(*rows):
        return find_far(np.array(rows, float)).tolist()

    assert find([1, 3], [2, 4]) == [False, False]
    # 3 s apart with records; 4 x 3 is still shown, more is not, nor what is worse.
    assert find([1, 3], [2, 4], [13, 13]) == [False, False, False]
    assert find([1, 3], [2, 4], [14, 14]) == [False, False, True]
    assert find([90, 95], [1, 3], [14, 14], [2, 4], [2, 2]) == [True, False, True, False, False]
    assert find([1, 1], [1, 1], [9, 9]) == [False, False, False]
    assert find([1, 3], [2, 4], [math.nan, 4]) == [False, False, False]


def test_one_bad_policy_hides_no_other():
    results = [make_trials(seed) for seed in range(4)]
    bad = replace(results[0], cost=results[0].cost + 5000.0)
    figure = draw_figure(draw_comparison, list("ABCDE"), [*results, bad])
    left, right = figure.axes
    assert left.get_xlabel() == "makespan (s)"
    assert right.get_xlabel() == "tardiness (s); ▶: beyond the axis"
    assert right.get_xlim()[1] < 150.0
    [marks] = [line for line in right.lines if line.get_marker() == "D"]
    assert np.isnan(marks.get_xdata()).tolist() == [False] * 4 + [True]
    value = f"{bad.cost.mean():,.1f} (+5,000.0 ± 0.0)"
    assert [text.get_text() for text in right.texts if text.get_text() == value] == [value]


@pytest.mark.parametrize(
    ("goal", "left", "right"),
    [
        (Goal("late+0.05*tardiness"), "late+0.05*tardiness", "tardiness (s)"),
        (Goal("waiting", "late", 5.0), "waiting (s)", "late (%)"),
        (Goal("tardiness"), "makespan (s)", "tardiness (s)"),
    ],
)
def test_a_comparison_is_of_the_objective_that_was_played_for(goal, left, right):
    results = [make_trials(seed) for seed in range(2)]
    results = [replace(x, goal=goal, value=x.tardiness / 9, cost=x.tardiness) for x in results]
    figure = draw_figure(draw_comparison, ["A", "B"], results)
    assert [axes.get_xlabel() for axes in figure.axes] == [left, right]
    values = [x.makespan if left == "makespan (s)" else x.value for x in results]
    [marks] = [line for line in figure.axes[0].lines if line.get_marker() == "D"]
    np.testing.assert_allclose(marks.get_xdata(), [x.mean() for x in values])
    rows = [label.get_text() for label in figure.axes[0].get_yticklabels()]
    assert ["within limit" in row for row in rows] == [goal.has_limit] * 2
    limits = [x.get_text() for x in figure.axes[1].texts if "limit" in x.get_text()]
    assert limits == ["limit 5 %"] * goal.has_limit


def test_shares_are_counts_by_their_sum():
    counts = Counts(("a", "b"), np.array([[3.0, 1.0], [0.0, 0.0]]))
    other = Counts(("a", "b"), np.array([[1.0, 3.0], [0.0, 0.0], [1.0, 0.0]]))
    found = find_shares([counts, other])
    assert found[0].tolist() == [0.5, 0.5] and np.isnan(found[1]).all() and len(found) == 2
    with pytest.raises(InputError, match="different records: a, b and a, c"):
        find_shares([counts, other._replace(names=("a", "c"))])


def test_blocks_are_averaged():
    shares = np.arange(10.0)[:, np.newaxis]
    generations, means = average_blocks(shares, 5)
    assert generations.tolist() == [1.5, 3.5, 5.5, 7.5, 9.5]
    assert means.ravel().tolist() == [0.5, 2.5, 4.5, 6.5, 8.5]
    assert average_blocks(shares, 50)[0].tolist() == list(range(1, 11))


def make_counts(n_records, generations=100, seed=0):
    rng = np.random.default_rng(seed)
    names = tuple(f"$record_{{{k}}} of a year$" for k in range(n_records))
    members = rng.multinomial(256, np.full(n_records, 1 / n_records), generations).astype(float)
    return Counts(names, members)


def test_a_panel_shows_each_share_beside_the_even_one():
    runs = [make_counts(3, 20, seed) for seed in range(2)]
    figure = draw_figure(draw_sampler, "run", runs)
    for k, axes in enumerate(axes for axes in figure.axes if axes.get_visible()):
        share, even = axes.lines
        members = [sum(run.members[g] for run in runs) for g in range(20)]
        slow = [100.0 * own[k] / own.sum() for own in members]
        np.testing.assert_allclose(share.get_ydata(), slow)
        np.testing.assert_allclose(even.get_ydata(), 100 / 3)
        assert axes.get_title(loc="left").endswith(f"{np.mean(slow):.1f}%")


def test_weights_are_drawn_by_their_size():
    policy = acerl_np.IndexPolicy.of_weights(approach=-1.0, lateness=0.5, loaded=2.0)
    axes = draw_figure(draw_weights, "policy", list_parts(policy)).axes[0]
    width = {round(bar.get_y() + bar.get_height() / 2): bar.get_width() for bar in axes.patches}
    names = [label.get_text() for label in axes.get_yticklabels()]
    drawn = dict(zip(names, (width[k] for k in range(len(names))), strict=True))
    known = {part.name: part.weight for part in list_parts(policy)}
    assert drawn == pytest.approx(known)
    assert names[:3] == ["loaded", "approach", "lateness"]


@pytest.mark.parametrize("n", [1, 13])
def test_no_text_hides_another(n):
    label = "$some_{where/in a long folder/" * 9 + "policy.npz"
    bad = make_trials(0)
    bad = replace(bad, makespan=bad.makespan + 9e5, tardiness=bad.tardiness + 9e5)
    parts = [
        Part(f"$a_{{name}} of {k}" * 9, k - 1.5, "prefers a $x_{$ " * 20) for k in range(5 * n)
    ]
    for draw, *arguments in (
        (draw_comparison, [label] * n, [make_trials(k, 8) for k in range(n)]),
        (draw_comparison, [label] * (n + 1), [*(make_trials(k) for k in range(n)), bad]),
        (draw_sampler, label, [make_counts(4 * n)]),
        (draw_weights, label, parts),
    ):
        assert draw_figure(draw, *arguments, look=find_faults) == []
    for wrong in (0, 15):
        with pytest.raises(InputError, match="expected 1 to 14"):
            draw_comparison("a.png", ["A"] * wrong, [make_trials(0)] * wrong)
