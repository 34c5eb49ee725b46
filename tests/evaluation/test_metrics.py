"""Metrics: the paper's printed M and C from its own cells, normalisation by hand, rank-sum marks."""

import numpy as np
import pytest

from acerl_np import evaluate_policy, load_instance
from acerl_np.evaluation.metrics import normalise, satisfied_share
from acerl_np.evaluation.published import find_row, published_rows, table_rows
from acerl_np.evaluation.trials import Playing, play_policy
from studies.study_tables import peers_of

ROWS = [row for row in published_rows() if row.cells]


def cells(row, field):
    return [getattr(cell, field) for cell in row.cells.values()]


@pytest.mark.parametrize("table", sorted({row.table for row in ROWS}))
def test_printed_scores_follow_from_the_printed_cells(table):
    rows, peers = table_rows(table), peers_of(table)
    for field, printed in (("makespan", "m"), ("tardiness", "c")):
        scores = normalise(*([cells(row, field) for row in some] for some in (rows, peers)))
        expected = np.array([getattr(row, printed) for row in rows])
        assert np.abs(scores - expected).max() < 0.006


def test_rows_of_the_paper_are_found_by_table_and_policy():
    assert len(ROWS) == 343
    row = find_row("comparison-train", "ACERL")
    assert row.cells["DMH-01"].makespan == 1797.8
    assert (row.m, row.c, row.p) == (0.90, 0.90, 1.0)
    assert find_row("robustness-summary", "ACERL", "DMH±10").p == 0.80
    assert find_row("comparison-train", "nobody") is None


def test_normalise_by_hand():
    peers = [[100.0, 10.0], [200.0, 10.0], [150.0, 30.0]]
    assert normalise([[150.0, 20.0]], peers) == pytest.approx([(0.5 + 0.5) / 2])
    assert normalise(peers, peers) == pytest.approx([1.0, 0.5, 0.25])
    # Satisfied is strictly below the limit.
    assert satisfied_share([[49.9, 50.0], [0.0, 51.0]], 50.0) == 0.5
    # An instance without spread counts 1.
    assert normalise([[5.0, 1.0]], [[5.0, 1.0], [5.0, 2.0]]) == pytest.approx([1.0])
    # A policy without a finished episode is left out of the peers.
    values = np.array([[1.0, 5.0], [3.0, 9.0], [np.nan, 7.0]])
    assert np.array_equal(normalise(values, values), [1.0, 0.0, np.nan], equal_nan=True)


def test_how_policies_are_played_is_one_value():
    playing = Playing(2, 5, horizon=900.0, threads=1)
    assert playing == Playing(2, 5, horizon=900.0, threads=2) != Playing(2, 5)
    assert hash(playing) == hash(Playing(2, 5, horizon=900.0))
    record = load_instance("DMH-01")
    own = play_policy("MIX", record, Playing(2, 5))
    same = evaluate_policy("MIX", record, trials=2, seed=5)
    assert own.makespan.tolist() == same.makespan.tolist()
    assert np.isnan(play_policy("MIX", record, playing).makespan).all()
