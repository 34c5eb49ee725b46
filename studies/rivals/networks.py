"""A network that learns: parameters, Adam's moments, and a batch's scratch, behind five verbs."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import pairwise
from typing import Literal

import numpy as np

from acerl_np.kernels.core.random import INITIAL
from acerl_np.kernels.learning.update import fill_stream
from acerl_np.kernels.networks.network import allocate_rows
from acerl_np.policies.network import initial_parameters
from studies.rivals import perceptron

Start = Literal["torch", "orthogonal"]


class Perceptron:
    """A ReLU multilayer perceptron and its optimiser, Adam, for batches of at most `n_rows`.

    It starts with parameters "torch": uniform within 1 / sqrt(n_in), the default of PyTorch's linear layers;
    or "orthogonal": orthogonal weights of gain 1 and no biases. Theta and gradient are float32 and padded,
    see `kernels.perceptron`.
    """

    def __init__(
        self, sizes: Sequence[int], *, n_rows: int, seed: int, start: Start = "torch"
    ) -> None:
        self.sizes = tuple(int(size) for size in sizes)
        self._padded = perceptron.pad_sizes(self.sizes)
        n = sum((n_in + 1) * n_out for n_in, n_out in pairwise(self._padded.tolist()))
        rows = allocate_rows(4, n)
        rows[:] = 0.0
        self.theta, self.gradient, self._mean, self._square = rows
        self._steps = 0
        self._layers = perceptron.allocate_layers(self._padded, n_rows)
        for own, exact in zip(self._parts(), _draw_layers(self.sizes, seed, start), strict=True):
            n_in, n_out = len(exact) - 1, exact.shape[1]
            own[:n_in, :n_out], own[-1, :n_out] = exact[:-1], exact[-1]

    def _parts(self) -> Iterator[np.ndarray]:
        """Return each layer's weights and, in the last row, biases; views of theta, padding included."""
        offset = 0
        for n_in, n_out in pairwise(self._padded.tolist()):
            yield self.theta[offset : offset + (n_in + 1) * n_out].reshape(n_in + 1, n_out)
            offset += (n_in + 1) * n_out

    @property
    def out(self) -> np.ndarray:
        """Outputs of the last `forward`, ndarray(float32, (n_rows, W)): a batch's rows first."""
        return np.asarray(self._layers.out[-1])

    @property
    def delta(self) -> np.ndarray:
        """Where a loss writes its derivatives for the outputs, ndarray(float32, (n_rows, W))."""
        return np.asarray(self._layers.delta[-1])

    def forward(self, inputs: perceptron.Inputs, rows: np.ndarray) -> np.ndarray:
        """Compute the outputs of a batch, some rows of the inputs, and return `out`."""
        perceptron.forward(self._padded, self.theta, inputs, rows, self._layers)
        return self.out

    def backward(self, inputs: perceptron.Inputs, rows: np.ndarray) -> None:
        """Compute the gradient from `delta`, after `forward` of the same batch."""
        perceptron.backward(self._padded, self.theta, inputs, rows, self._layers, self.gradient)

    def step(self, rate: float, max_norm: float = np.inf) -> None:
        """Take a step of Adam, with the gradient cut to a norm."""
        self._steps += 1
        scale = 1.0
        if max_norm < np.inf:
            scale = min(1.0, max_norm / (perceptron.find_norm(self.gradient) + 1e-6))
        perceptron.step_adam(
            self.theta, self.gradient, self._mean, self._square, self._steps, rate, scale
        )

    def read_parameters(self, n_columns: int | None = None) -> np.ndarray:
        """Return the parameters as a policy of `n_columns` outputs holds them, without padding.

        These are the first ones of this network, and zero if it has fewer.
        """
        sizes = [*self.sizes[:-1], n_columns or self.sizes[-1]]
        found = []
        for own, (n_in, n_out) in zip(self._parts(), pairwise(sizes), strict=True):
            layer = np.zeros((n_in + 1, n_out), np.float32)
            n = min(n_out, own.shape[1])  # beyond the network's own columns all is zero
            layer[:-1, :n], layer[-1, :n] = own[:n_in, :n], own[-1, :n]
            found.append(layer.ravel())
        return np.concatenate(found)

    def pack(self) -> dict[str, np.ndarray]:
        """Return what `restore` needs as arrays of a checkpoint."""
        steps = np.array([self._steps], np.int64)
        return {"theta": self.theta, "mean": self._mean, "square": self._square, "steps": steps}

    def restore(self, found: dict[str, np.ndarray]) -> None:
        """Take over what `pack` returned."""
        self.theta[:], self._mean[:] = found["theta"], found["mean"]
        self._square[:], self._steps = found["square"], int(found["steps"][0])


def _draw_layers(sizes: Sequence[int], seed: int, start: Start) -> Iterator[np.ndarray]:
    """Return weights and, in the last row, biases of each layer, (n_in + 1, n_out)."""
    if start == "torch":
        theta = initial_parameters(sizes, seed, initialisation="torch")
        for n_in, n_out in pairwise(sizes):
            yield theta[: (n_in + 1) * n_out].reshape(n_in + 1, n_out)
            theta = theta[(n_in + 1) * n_out :]
        return
    for layer, (n_in, n_out) in enumerate(pairwise(sizes)):
        normals = np.empty(n_in * n_out, np.float32)
        fill_stream(seed, INITIAL, layer, 0, normals)
        weights = _orthogonalise(normals.astype(np.float64).reshape(n_in, n_out))
        yield np.vstack([weights, np.zeros(n_out)]).astype(np.float32)


def _orthogonalise(matrix: np.ndarray) -> np.ndarray:
    """Return a matrix with orthonormal columns, or rows if they are fewer, by Gram and Schmidt.

    LAPACK's QR rounds otherwise with other numbers of threads.
    """
    tall = matrix if matrix.shape[0] >= matrix.shape[1] else matrix.T
    basis = tall.copy()
    for j in range(basis.shape[1]):
        for _ in range(2):  # once leaves rounding
            for i in range(j):
                basis[:, j] -= (basis[:, i] * basis[:, j]).sum() * basis[:, i]
        basis[:, j] /= np.sqrt((basis[:, j] * basis[:, j]).sum())
    return basis if matrix.shape[0] >= matrix.shape[1] else basis.T
