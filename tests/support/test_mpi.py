"""MPI: a training on the workers of `mpi4py.futures`, with the system's MPI.

pip install -e '.[mpi]' && python -m pytest -m long tests/support/test_mpi.py
"""

import shutil
import subprocess
import sys

import pytest
from machine import find_environment

SCRIPT = """
import hashlib, sys
import acerl_np
from mpi4py.futures import MPIPoolExecutor

if __name__ == "__main__":
    suite = acerl_np.load_suite("dmh-train")[:3]
    config = acerl_np.Config(population=24, hidden=(8,), generations=4)
    with MPIPoolExecutor() as executor:
        for workers in (None, executor):
            trainer = acerl_np.ACERL(suite, config, seed=3, executor=workers)
            trainer.run()
            print(hashlib.sha256(trainer.policy.theta.tobytes()).hexdigest(), flush=True)
        print(executor.num_workers)
"""


@pytest.mark.long
def test_a_training_on_mpi_has_the_same_bytes(tmp_path):
    pytest.importorskip("mpi4py")
    if shutil.which("mpiexec") is None:
        pytest.skip("no mpiexec: install the system's MPI, such as openmpi-bin")
    script = tmp_path / "train_on_mpi.py"
    script.write_text(SCRIPT)
    environment = {
        **find_environment(),
        # Open MPI refuses to run as root, and more processes than cores, unless it is told to.
        "OMPI_ALLOW_RUN_AS_ROOT": "1",
        "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM": "1",
        "OMPI_MCA_rmaps_base_oversubscribe": "1",
    }
    command = ["mpiexec", "-n", "3", sys.executable, "-m", "mpi4py.futures", str(script)]
    done = subprocess.run(
        command, env=environment, capture_output=True, text=True, timeout=300, check=False
    )
    assert done.returncode == 0, done.stderr[-2000:]
    alone, together, n_workers = done.stdout.split()
    assert alone == together
    assert n_workers == "2"
