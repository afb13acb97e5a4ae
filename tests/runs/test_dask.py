"""Dask clusters that cannot compute: a message soon, an end in time, one sentence, exit code 3."""

import json
import os
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pytest

import meltpoint as mp
from meltpoint.errors import InputError, SystemFailure
from meltpoint.runs.dask import TLS, dask_cluster

distributed = pytest.importorskip("distributed")

# A machine on which the package was never installed.
WITHOUT_PACKAGE = """
import sys
class Missing:
    def find_spec(self, name, *_):
        if name.partition(".")[0] == "meltpoint":
            raise ModuleNotFoundError("No module named 'meltpoint'", name="meltpoint")
sys.meta_path.insert(0, Missing())
"""
RUN = "import sys; from distributed.cli.dask_{0} import main; sys.argv[0] = 'dask {0}'; main()"


class Machines:
    """A scheduler and workers in processes of their own."""

    def __init__(self, folder, *options):
        self.folder = Path(folder)
        self.options = options
        self.processes = []
        self.scheduler = self._start("scheduler", "--port", "0", "--scheduler-file", "scheduler.json")
        self.address = self._address()

    def _start(self, role, *arguments, before=""):
        log = (self.folder / f"{role}-{len(self.processes)}.log").open("w")
        process = subprocess.Popen(
            [sys.executable, "-c", before + RUN.format(role), *arguments, *self.options, "--no-dashboard"],
            cwd=self.folder,
            stdout=log,
            stderr=log,
        )
        log.close()
        self.processes.append(process)
        return process

    def _address(self):
        for _ in range(300):
            file = self.folder / "scheduler.json"
            if file.exists() and file.read_text():
                return json.loads(file.read_text())["address"]
            time.sleep(0.1)
        pytest.fail("no scheduler: " + (self.folder / "scheduler-0.log").read_text())

    def worker(self, before=""):
        return self._start("worker", self.address, "--nthreads", "1", "--no-nanny", before=before)

    def close(self):
        for process in self.processes:
            process.kill()
            process.wait()


@pytest.fixture
def machines(tmp_path):
    made = Machines(tmp_path)
    yield made
    made.close()


@pytest.fixture
def files(tmp_path):
    rng = np.random.default_rng(0)
    mp.save(mp.RBM(rng.normal(0, 0.1, (40, 30)), np.zeros(40), np.zeros(30)), tmp_path / "model.npz")
    np.save(tmp_path / "test.npy", rng.integers(0, 2, (100, 40)))
    return tmp_path


def evaluate(folder, address, *options):
    """The command, begun."""
    main = "from meltpoint.cli import main; main()"
    arguments = ["evaluate", "model.npz", "test.npy", "--cluster", address, "--run", "kept", *options]
    return subprocess.Popen(
        [sys.executable, "-c", main, *arguments],
        cwd=folder,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )


def wait_for_chunks(folder):
    for _ in range(600):
        if list(folder.glob("kept/part-0/stage-0/ais-*.npz")):
            return
        time.sleep(0.1)
    pytest.fail("nothing was computed")


LONG = ("--steps", "60000")


@pytest.mark.slow
def test_when_all_workers_die_it_is_said_soon_and_ends_in_time(machines, files):
    worker = machines.worker()
    command = evaluate(files, machines.address, *LONG, "--patience", "4")
    wait_for_chunks(files)
    worker.kill()
    begun = time.monotonic()
    first = command.stderr.readline()
    assert time.monotonic() - begun < 10
    assert f"no worker at the Dask scheduler {machines.address}: waiting" in first
    out, err = command.communicate(timeout=30)
    assert time.monotonic() - begun < 25
    assert (command.returncode, out) == (3, "")
    assert err.startswith(f"meltpoint: found no worker at the Dask scheduler {machines.address} for 4 s")
    assert len(err.splitlines()) == 1


@pytest.mark.slow
def test_a_worker_that_comes_back_in_time_continues(machines, files):
    worker = machines.worker()
    command = evaluate(files, machines.address, "--steps", "16000", "--patience", "60")
    wait_for_chunks(files)
    worker.kill()
    assert "waiting" in command.stderr.readline()
    machines.worker()
    out, err = command.communicate(timeout=100)
    assert command.returncode in (0, 1)
    assert "there are workers again" in err
    assert "conservative" in out


@pytest.mark.slow
def test_a_killed_scheduler_is_one_sentence(machines, files):
    machines.worker()
    command = evaluate(files, machines.address, *LONG)
    wait_for_chunks(files)
    machines.scheduler.kill()
    out, err = command.communicate(timeout=60)
    assert (command.returncode, out) == (3, "")
    lines = err.splitlines()
    assert lines[-1].startswith("meltpoint: found no connection to the Dask scheduler")
    assert all(line.startswith("meltpoint: ") for line in lines)
    assert len(lines) <= 2


@pytest.mark.slow
@pytest.mark.parametrize("later", [False, True], ids=["from the beginning", "joining later"])
def test_a_worker_without_the_package_ends_it(machines, files, later):
    worker = machines.worker(before="" if later else WITHOUT_PACKAGE)
    begun = time.monotonic()
    command = evaluate(files, machines.address, *LONG, "--patience", "5")
    if later:
        wait_for_chunks(files)
        machines.worker(before=WITHOUT_PACKAGE)
        time.sleep(4)
        worker.kill()
    out, err = command.communicate(timeout=60)
    assert (command.returncode, out) == (3, "")
    assert "meltpoint" in err.splitlines()[-1]
    assert all(line.startswith("meltpoint: ") for line in err.splitlines())
    if not later:
        assert "found no meltpoint at tcp://" in err
        assert time.monotonic() - begun < 40


@pytest.mark.slow
def test_a_cluster_without_workers_is_told_and_given_up():
    told = []
    with (
        distributed.LocalCluster(n_workers=0, dashboard_address="127.0.0.1:0") as empty,
        pytest.raises(SystemFailure, match=r"no worker at the Dask scheduler .* for 2 s"),
        dask_cluster(empty.scheduler_address, patience=2, notify=told.append),
    ):
        pass
    assert len(told) == 1
    assert "waiting" in told[0]


def test_an_address_that_is_none():
    with pytest.raises(InputError, match="'nonsense:x:y' as a Dask scheduler"), dask_cluster("nonsense:x:y"):
        pass


@pytest.mark.parametrize("patience", [-1, float("nan"), float("inf")])
def test_patience_is_a_number_of_seconds(patience):
    with pytest.raises(InputError, match="found patience="), dask_cluster("tcp://x:1", patience=patience):
        pass


def certificates(folder):
    """An authority, and a certificate with its key that it has signed; as docs/runs.md says."""
    page = (Path(__file__).parents[2] / "docs" / "runs.md").read_text()
    block = next(part for part in page.split("```sh\n") if part.startswith("openssl"))
    commands = block.partition("```")[0]
    subprocess.run(["sh", "-e", "-c", commands], cwd=folder, check=True, capture_output=True)


@pytest.mark.slow
@pytest.mark.skipif(not any(Path(p, "openssl").exists() for p in os.get_exec_path()), reason="needs openssl")
def test_an_encrypted_cluster(files):
    certificates(files)
    tls = ("--tls-ca-file", "ca.pem", "--tls-cert", "meltpoint.pem", "--tls-key", "meltpoint.key")
    machines = Machines(files, *tls, "--protocol", "tls")
    try:
        machines.worker()
        assert machines.address.startswith("tls://")
        command = evaluate(files, machines.address, "--steps", "20", *tls)
        out, err = command.communicate(timeout=100)
        assert (command.returncode, err) == (0, "")
        assert "conservative" in out
        for wrong in ([], ["--tls-ca-file", "other.pem", *tls[2:]]):
            (files / "other.pem").write_bytes((files / "meltpoint.pem").read_bytes())
            refused = evaluate(files, machines.address, "--steps", "20", *wrong)
            out, err = refused.communicate(timeout=100)
            assert refused.returncode in (2, 3)
            assert out == ""
            assert all(line.startswith("meltpoint: ") for line in err.splitlines())
    finally:
        machines.close()


def test_files_for_tls_that_are_missing(tmp_path):
    files = TLS(*(tmp_path / name for name in ("ca.pem", "cert.pem", "key.pem")))
    with pytest.raises(InputError, match=r"no file .*ca\.pem"), dask_cluster("tls://x:1", tls=files):
        pass
