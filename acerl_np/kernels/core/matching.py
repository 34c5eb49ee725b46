"""The cheapest way to give each row of a table of costs a column of its own."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from acerl_np.support.compiled import kernel

FAR = np.int64(2**62)
"""Longer than any path."""


class Matching(NamedTuple):
    """A table of costs, which columns go to which rows, and scratch.

    Attributes
    ----------
    cost : ndarray(int64, (R, C)), R <= C; whole numbers, so that no rounding decides between equals
    row_of : ndarray(int64, (C,)), the row that each column is given to, -1 for none
    row_price : ndarray(int64, (R,)); column_price, length : ndarray(int64, (C,))
    came_from, queue : ndarray(int64, (C,)); reached : ndarray(bool, (C,))
    """

    cost: np.ndarray
    row_of: np.ndarray
    row_price: np.ndarray
    column_price: np.ndarray
    length: np.ndarray
    came_from: np.ndarray
    queue: np.ndarray
    reached: np.ndarray


def allocate_matching(n_rows: int, n_columns: int) -> Matching:
    """Return room for tables of at most so many rows and columns."""
    return Matching(
        cost=np.empty((n_rows, n_columns), np.int64),
        row_of=np.empty(n_columns, np.int64),
        row_price=np.empty(n_rows, np.int64),
        column_price=np.empty(n_columns, np.int64),
        length=np.empty(n_columns, np.int64),
        came_from=np.empty(n_columns, np.int64),
        queue=np.empty(n_columns, np.int64),
        reached=np.empty(n_columns, np.bool_),
    )


@kernel
def match_rows(n_rows, n_columns, own):
    """Give each of the first rows one of the first columns, with the least sum of costs.

    By shortest augmenting paths: the rows enter one after the other, and each lets those before it move on
    along the cheapest chain that ends at a free column. Prices keep what a step of the chain costs from
    becoming negative. Compare Crouse, "On implementing 2D rectangular assignment algorithms", IEEE
    Transactions on Aerospace and Electronic Systems 52 (2016). Time grows with n_rows^2 n_columns.

    Parameters
    ----------
    n_rows, n_columns : int, n_rows <= n_columns
    own : Matching, input: `cost`. Output: `row_of`.
    """
    for c in range(n_columns):
        own.row_of[c] = -1
        own.column_price[c] = 0
    for entering in range(n_rows):
        own.row_price[entering] = 0
        for c in range(n_columns):
            own.length[c] = FAR
            own.reached[c] = False
        row, column, path = np.int64(entering), np.int64(-1), np.int64(0)
        while row >= 0:
            nearest, following = FAR, np.int64(-1)
            for c in range(n_columns):
                if own.reached[c]:
                    continue
                through = path + own.cost[row, c] - own.row_price[row] - own.column_price[c]
                if through < own.length[c]:
                    own.length[c] = through
                    own.came_from[c] = column
                if own.length[c] < nearest:
                    nearest, following = own.length[c], np.int64(c)
            path, column = nearest, following
            own.reached[column] = True
            row = own.row_of[column]
        own.row_price[entering] += path
        for c in range(n_columns):
            if own.reached[c] and own.row_of[c] >= 0:
                own.row_price[own.row_of[c]] += path - own.length[c]
                own.column_price[c] -= path - own.length[c]
        while own.came_from[column] >= 0:
            own.row_of[column] = own.row_of[own.came_from[column]]
            column = own.came_from[column]
        own.row_of[column] = entering


@kernel
def settle_ties(n_rows, n_columns, own):
    """Of all matchings of the same sum take the one whose rows, in order, have the first columns.

    Without one of its pairs it is what would be found of the others. Call it after `match_rows`; `cost` is
    lost.
    """
    # A matching is the cheapest if all its prices are paid. Of each row the columns that these allow.
    for row in range(n_rows):
        n = 0
        for c in range(n_columns):
            if own.cost[row, c] == own.row_price[row] + own.column_price[c]:
                own.cost[row, n] = c
                n += 1
        own.row_price[row] = n
    for c in range(n_columns):
        if own.row_of[c] >= 0:
            own.length[own.row_of[c]] = c
    for row in range(n_rows):
        for c in range(n_columns):
            own.reached[c] = False
        for n in range(own.row_price[row]):
            if own.cost[row, n] >= own.length[row] or move_row(
                row, own.cost[row, n], n_columns, own
            ):
                break


@kernel
def move_row(row, column, n_columns, own):
    """Give a row a column that prices allow, if only later rows move for that; return whether they can.

    A column of no row counts as one of a row that may have each column that is free of charge.
    """
    held, n, size, is_left = own.length[row], 0, 0, False
    if not own.reached[column]:
        own.reached[column], own.came_from[column], own.queue[0], size = True, -1, column, 1
    while n < size:
        column = own.queue[n]
        owner = own.row_of[column]
        n += 1
        if column == held:
            while own.came_from[column] >= 0:
                before = own.came_from[column]
                own.row_of[column] = own.row_of[before]
                if own.row_of[column] >= 0:
                    own.length[own.row_of[column]] = column
                column = before
            own.row_of[column], own.length[row] = row, column
            return True
        n_ways = own.row_price[owner] if owner > row else 0
        if owner < 0 and not is_left:
            n_ways, is_left = n_columns, True
        for k in range(n_ways):
            following = own.cost[owner, k] if owner >= 0 else k
            if own.reached[following] or (owner < 0 and own.column_price[following] != 0):
                continue
            own.reached[following], own.came_from[following] = True, column
            own.queue[size] = following
            size += 1
    return False
