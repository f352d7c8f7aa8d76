"""Checkpoints of several processes by Orbax beside ours: seconds, what a kill leaves, whether a changed bit is seen.

    python tests/programs/orbax_beside.py [--processes 2] [--kills 5]

Starts itself as processes joined over loopback. Three matrices of 20,000 x 300 are spread over them by rows, saved
and read back in turns: by ours, by Orbax, and by Orbax with digests of every process's rows beside it. Then process 1
is killed in the middle of a save, a few times; each time it is said how the others ended, after how many seconds, and
whether a whole state is found afterwards, and which. At last one bit of the newest state is changed, in one place at a
time, and it is said whether it is read, refused, or passed over for the state before.
Prints lines of JSON. By hand: it decides nothing but what the documentation says (docs/scale.md).
"""

from __future__ import annotations

import argparse
import functools
import hashlib
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
from jax.experimental import multihost_utils
from jax.sharding import NamedSharding, PartitionSpec

from jaxsim import io
from jaxsim.optim import checkpoints
from jaxsim.parallel import processes

SHAPE, REPEATS = (20_000, 300), 5


def tell(**found) -> None:
    """Prints a line that can be told from those of gloo."""
    print(f"told: {json.dumps(found)}", flush=True)


def spread(step: int):
    """A state that tells which it is, spread over all processes by rows."""
    mesh = jax.make_mesh((jax.device_count(),), ("rows",))
    along = NamedSharding(mesh, PartitionSpec("rows"))
    made = [np.float32(step) + noise(i) for i in range(3)]
    return [jax.make_array_from_callback(SHAPE, along, lambda index, whole=whole: whole[index]) for whole in made]


@functools.cache
def noise(i: int) -> np.ndarray:
    """Numbers from 0 to 1 that no compression makes smaller."""
    return np.random.default_rng(i).random(SHAPE, np.float32)


def told_step(found) -> str:
    """Which step's state this is, and whether to the last bit."""
    if found is None:
        return "none"
    pieces = [[(slice(None), leaf)] if isinstance(leaf, np.ndarray) else
              [(shard.index, np.asarray(shard.data)) for shard in leaf.addressable_shards] for leaf in found]
    step = int(pieces[0][0][1][0, 0])
    same = all(np.array_equal(values, (np.float32(step) + noise(i))[index])
               for i, leaf in enumerate(pieces) for index, values in leaf)
    return f"step {step}" + ("" if same else ", changed")


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


class Digested(Orbax):
    """The same with digests of each process's rows, written after them: a state counts if all its digests agree."""

    def __init__(self, folder: Path):
        """The folder, and one beside it for the digests."""
        super().__init__(folder)
        self.folder = folder.with_name(f"{folder.name}-digests")
        self.folder.mkdir(exist_ok=True)

    def file(self, step: int) -> Path:
        """Of this process."""
        return self.folder / f"{step}-{jax.process_index()}.json"

    def save(self, step: int, state) -> None:
        """Writes a state, then its digests."""
        super().save(step, state)
        io.write_bytes(self.file(step), json.dumps(digests(state)).encode())
        for old in self.folder.glob(f"*-{jax.process_index()}.json"):
            if int(old.name.split("-")[0]) not in self.keeper.all_steps():
                old.unlink()

    def load(self, like):
        """The newest state that every process reads as it wrote it."""
        like = jax.tree.map(orbax.utils.to_shape_dtype_struct, like)
        for step in sorted(self.keeper.all_steps(), reverse=True):
            try:
                found = self.keeper.restore(step, args=orbax.args.StandardRestore(like))
                good = json.loads(self.file(step).read_bytes()) == digests(found)
            except (OSError, ValueError):
                good = False
            if multihost_utils.process_allgather(jnp.array([good])).all():
                return found
        return None


def digests(state) -> list[str]:
    """Of the rows of this process."""
    return [hashlib.sha256(np.ascontiguousarray(shard.data)).hexdigest()
            for leaf in state for shard in leaf.addressable_shards]


WAYS = {"ours": Ours, "orbax": Orbax, "digested": Digested}


def one(number: int, folder: Path, what: str, after: float) -> None:
    """What one process does."""
    ways = WAYS
    if what == "time":
        kept = {name: way(folder / name) for name, way in ways.items()}
        seconds: dict[str, list[float]] = {}
        for step in range(REPEATS + 1):
            state = jax.block_until_ready(spread(step))
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
        tell(number=number, read=told_step(way.load(spread(0))))
        return
    for step in range(1, 100):
        state = jax.block_until_ready(spread(step))
        if act == "kill" and number == 1 and step == 4:
            threading.Timer(after, os.kill, (os.getpid(), signal.SIGKILL)).start()
        way.save(step, state)
        tell(number=number, saved=step)
        if act == "keep" and step == 2:
            return


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
    parser.add_argument("--bits", type=int, default=4)
    given = parser.parse_args()
    with tempfile.TemporaryDirectory() as place:
        lines, codes, _, last = together(given.processes, Path(place), "time")
        print(json.dumps({"seconds, median, least, most": lines[0], "status": codes, "stderr": last if any(codes)
                          else ""}), flush=True)  # fmt: skip
    for name in WAYS:
        for kill in range(given.kills):
            with tempfile.TemporaryDirectory() as place:
                after = 0.02 + 0.1 * kill
                lines, codes, lived, last = together(given.processes, Path(place), f"kill {name}", after)
                saved = [max((line["saved"] for line in one), default=0) for one in lines]
                seen, codes_after, _, _ = together(given.processes, Path(place), f"see {name}")
                print(json.dumps({"way": name, "killed after": round(after, 2), "saved": saved, "status": codes,
                                  "lived on": lived, "stderr": last,
                                  "found": [line["read"] for one in seen for line in one],
                                  "status then": codes_after}), flush=True)  # fmt: skip
    for name in WAYS:
        with tempfile.TemporaryDirectory() as place:
            together(given.processes, Path(place), f"keep {name}")
            print(json.dumps({"way": name, "changed bits": changed(given.processes, Path(place), name, given.bits)}),
                  flush=True)  # fmt: skip


def changed(number: int, folder: Path, name: str, bits: int) -> list:
    """What is read of two states after a bit of the newer one's largest file is changed, place by place."""
    files = [path for path in (folder / name / ("" if name == "ours" else "2")).rglob("*") if path.is_file()]
    file = max(files, key=lambda path: (path.stat().st_size, path.stat().st_mtime_ns))
    found = []
    whole = file.read_bytes()
    for place in np.linspace(0.05, 0.95, bits):
        at = int(place * len(whole))
        file.write_bytes(whole[:at] + bytes([whole[at] ^ 16]) + whole[at + 1 :])
        seen, codes, _, last = together(number, folder, f"see {name}")
        found.append([line["read"] for one in seen for line in one] if not any(codes) else last)
        file.write_bytes(whole)
    return found


if __name__ == "__main__":
    if sys.argv[1:2] == ["--one"]:
        where, count, own, place, what, after = sys.argv[2:]
        with processes.joined(where, int(count), int(own), patience=30):
            jnp.zeros(1).block_until_ready()
            one(int(own), Path(place), what, float(after))
    else:
        main()
