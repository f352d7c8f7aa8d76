"""Checkpoints of several processes by Orbax beside ours: seconds, and what is left when one is killed while it saves.

    python tests/programs/orbax_beside.py [--processes 2] [--kills 5]

Starts itself as processes joined over loopback. Three matrices of 20,000 x 300 are spread over them by rows, saved
and read back by either way, in turns. Then process 1 is killed in the middle of a save, a few times; each time it is
said how the others ended, after how many seconds, and whether a whole state is found afterwards, and which.
Prints lines of JSON. By hand: it decides nothing but what the documentation says (docs/scale.md).
"""

from __future__ import annotations

import argparse
import json
import os
import re
import signal
import socket
import statistics
import subprocess
import sys
import tempfile
import threading
import time
from pathlib import Path

import jax
import jax.numpy as jnp
import numpy as np
import orbax.checkpoint as orbax
from jax.sharding import NamedSharding, PartitionSpec

from jaxsim.optim import checkpoints
from jaxsim.parallel import processes

SHAPE, REPEATS = (20_000, 300), 5


def tell(**found) -> None:
    """Prints a line that can be told from those of gloo."""
    print(f"told: {json.dumps(found)}", flush=True)


def spread(step: float):
    """A state that tells which it is, spread over all processes by rows."""
    mesh = jax.make_mesh((jax.device_count(),), ("rows",))
    along = NamedSharding(mesh, PartitionSpec("rows"))
    return [jax.make_array_from_callback(SHAPE, along, lambda index, i=i: np.full(
        SHAPE, step + i / 4, np.float32)[index]) for i in range(3)]  # fmt: skip


class Ours:
    """`optim.checkpoints`: process 0 gathers and writes; a digest of all; the one before is kept."""

    def __init__(self, folder: Path):
        """The folder, which is made."""
        self.folder = checkpoints.prepare(folder, shared=True)

    def save(self, step: int, state) -> None:
        """Writes a state."""
        checkpoints.save(self.folder, state, {"fingerprint": "a", "step": step}, shared=True)

    def load(self, like):
        """The newest whole state, as arrays of this process."""
        found = checkpoints.load(self.folder, [np.zeros(SHAPE, np.float32)] * 3, fingerprint="a", shared=True)
        return None if found is None else found[0]


class Orbax:
    """`orbax.checkpoint.CheckpointManager`: each process writes its rows; the one before is kept."""

    def __init__(self, folder: Path):
        """The folder, which is made."""
        options = orbax.CheckpointManagerOptions(max_to_keep=2, create=True)
        self.keeper = orbax.CheckpointManager(folder, options=options)

    def save(self, step: int, state) -> None:
        """Writes a state, and waits until it is whole."""
        self.keeper.save(step, args=orbax.args.StandardSave(state), force=True)
        self.keeper.wait_until_finished()

    def load(self, like):
        """The newest state, spread as ``like``."""
        step = self.keeper.latest_step()
        like = jax.tree.map(orbax.utils.to_shape_dtype_struct, like)
        return None if step is None else self.keeper.restore(step, args=orbax.args.StandardRestore(like))


def one(number: int, folder: Path, what: str, after: float) -> None:
    """What one process does."""
    ways = {"ours": Ours, "orbax": Orbax}
    if what == "time":
        kept = {name: way(folder / name) for name, way in ways.items()}
        seconds: dict[str, list[float]] = {}
        for step in range(REPEATS + 1):
            state = jax.block_until_ready(spread(float(step)))
            for name, way in kept.items():
                for act, call in (("save", lambda way=way, s=step, x=state: way.save(s, x)),
                                  ("load", lambda way=way, x=state: way.load(x))):  # fmt: skip
                    begun = time.perf_counter()
                    jax.block_until_ready(call())
                    seconds.setdefault(f"{name} {act}", []).append(time.perf_counter() - begun)
        if number == 0:
            tell(**{name: [round(f(times[1:]), 3) for f in (statistics.median, min, max)]
                    for name, times in seconds.items()})  # fmt: skip
        return
    act, name = what.split()
    way = ways[name](folder / name)
    if act == "see":
        found = way.load(spread(0.0))
        first = [] if found is None else [np.asarray(leaf if name == "ours" else leaf.addressable_data(0))
                                          for leaf in found]  # fmt: skip
        values = sorted({float(value) for leaf in first for value in np.unique(leaf)})
        tell(number=number, values=values)
        return
    for step in range(1, 100):
        state = jax.block_until_ready(spread(float(step)))
        if number == 1 and step == 4:
            threading.Timer(after, os.kill, (os.getpid(), signal.SIGKILL)).start()
        way.save(step, state)
        tell(number=number, saved=step)


def together(number: int, folder: Path, what: str, after: float = 0.0) -> tuple[list, list[int], list[float], str]:
    """Starts the processes: what they told, their status, and the seconds that each lived on after process 1 ended."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        address = f"127.0.0.1:{free.getsockname()[1]}"
    environment = {**os.environ, "XLA_FLAGS": "--xla_force_host_platform_device_count=1", "JAX_PLATFORMS": "cpu"}
    started = [subprocess.Popen([sys.executable, __file__, "--one", address, str(number), str(i), str(folder), what,
                                 str(after)], env=environment, text=True, stdout=subprocess.PIPE,
                                stderr=subprocess.PIPE) for i in range(number)]  # fmt: skip
    ends: dict[int, float] = {}
    told: dict[int, tuple[str, str]] = {}

    def wait(i: int, process: subprocess.Popen) -> None:
        try:
            told[i] = process.communicate(timeout=240)
        except subprocess.TimeoutExpired:
            process.kill()
            told[i] = process.communicate()
        ends[i] = time.perf_counter()

    threads = [threading.Thread(target=wait, args=pair) for pair in enumerate(started)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    lines = [[json.loads(line) for line in re.findall("told: (.*)", told[i][0])] for i in range(number)]
    last = (told[0][1].strip().splitlines() or [""])[-1][:300]
    return lines, [process.returncode for process in started], [round(ends[i] - ends[1], 1) for i in ends], last


def main() -> None:
    """Measures, and tells."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--processes", type=int, default=2)
    parser.add_argument("--kills", type=int, default=5)
    given = parser.parse_args()
    with tempfile.TemporaryDirectory() as place:
        lines, codes, _, last = together(given.processes, Path(place), "time")
        print(json.dumps({"seconds, median, least, most": lines[0], "status": codes, "stderr": last if any(codes)
                          else ""}), flush=True)  # fmt: skip
    for name in ("ours", "orbax"):
        for kill in range(given.kills):
            with tempfile.TemporaryDirectory() as place:
                after = 0.02 + 0.1 * kill
                lines, codes, lived, last = together(given.processes, Path(place), f"kill {name}", after)
                saved = [max((line["saved"] for line in one), default=0) for one in lines]
                seen, codes_after, _, _ = together(given.processes, Path(place), f"see {name}")
                print(json.dumps({"way": name, "killed after": round(after, 2), "saved": saved, "status": codes,
                                  "lived on": lived, "stderr": last, "found": [one[:1] for one in seen],
                                  "status then": codes_after}), flush=True)  # fmt: skip


if __name__ == "__main__":
    if sys.argv[1:2] == ["--one"]:
        where, count, own, place, what, after = sys.argv[2:]
        with processes.joined(where, int(count), int(own), patience=30):
            jnp.zeros(1).block_until_ready()
            one(int(own), Path(place), what, float(after))
    else:
        main()
