"""Compiles every program of a command for a device that is not here, while the command runs on this machine's CPU.

What a TPU or a GPU refuses (a type, a layout, a kernel too large for the chip) shows when a program is compiled, which
needs no device: JAX describes one (`jax.experimental.topologies`). A TPU needs the package libtpu (`pip install
'jax[tpu]'`), a GPU the CUDA plugin (`pip install 'jax[cuda13]'`) and a file that describes it, a
`GpuTargetConfigProto` as text, of which XLA's source has one for each kind. Nothing is run there, so it says nothing
about speed or about figures.

    python .ci/compile_for.py tpu v5e:2x2 train --pairs pairs.tsv --method s2net --max-iter 3 --out /tmp/model
    python .ci/compile_for.py cuda h200.txtpb search --model /tmp/model --documents texts.txt --queries queries.txt
    python .ci/compile_for.py cpu - demo

Every program that a call of `jax.jit` makes outside another is compiled, once for each of its shapes. Exits with 1 if
any is refused.
"""

from __future__ import annotations

import atexit
import functools
import os
import runpy
import sys
from pathlib import Path

import jax
import numpy as np
from jax.experimental import topologies

# No device is looked for.
ENVIRONMENT = {"TPU_SKIP_MDS_QUERY": "1", "TPU_WORKER_HOSTNAMES": "localhost", "ALLOW_MULTIPLE_LIBTPU_LOAD": "1",
               "JAX_SKIP_CUDA_CONSTRAINTS_CHECK": "1"}


def described(platform: str, name: str):
    """A placement on one device of a description; None for the CPU that is here."""
    if platform == "cpu":
        return None
    for variable, value in ENVIRONMENT.items():
        os.environ.setdefault(variable, value)
    given = {"target_config": Path(name).read_text(), "topology": "1x1x1"} if platform == "cuda" else {}
    found = topologies.get_topology_desc(platform=platform, topology_name="" if given else name, **given)
    print(f"compile_for: {found.devices[0].device_kind}", file=sys.stderr)
    mesh = jax.sharding.Mesh(found.devices[:1], ("device",))
    return jax.sharding.NamedSharding(mesh, jax.sharding.PartitionSpec())


class Compiled:
    """A function that `jax.jit` made, which is also compiled for another device at the first call of each shape."""

    where, made, refused, busy = None, 0, 0, False  # of all functions together

    def __init__(self, function, **options):  # noqa: D107
        functools.update_wrapper(self, function, updated=())
        self.jitted, self.seen = JIT(function, **options), set()

    def __getattr__(self, name: str):  # noqa: D105
        return getattr(self.__dict__["jitted"], name)

    def __call__(self, *args, **options):  # noqa: D102
        inside = any(isinstance(leaf, jax.core.Tracer) for leaf in jax.tree.leaves((args, options)))
        if not inside and not Compiled.busy:
            Compiled.busy = True
            try:
                self.compile(*jax.tree.map(self.shape, (args, options)))
            finally:
                Compiled.busy = False
        return self.jitted(*args, **options)

    @classmethod
    def shape(cls, leaf):
        """An array's shape and type, on the device; anything else as it is."""
        if not isinstance(leaf, (jax.Array, np.ndarray)):
            return leaf
        dtype = jax.dtypes.canonicalize_dtype(leaf.dtype) if isinstance(leaf, np.ndarray) else leaf.dtype
        return jax.ShapeDtypeStruct(leaf.shape, dtype, sharding=cls.where)

    def compile(self, args, options) -> None:
        """Compiles for these shapes, unless that was done, and counts."""
        key = str((args, options))
        if key in self.seen:
            return
        self.seen.add(key)
        try:
            self.jitted.lower(*args, **options).compile()
            Compiled.made += 1
        except Exception as error:  # whatever a compiler raises
            Compiled.refused += 1
            said = " ".join(str(error).split())[:500]
            name = f"{getattr(self, '__module__', '')}.{getattr(self, '__name__', '')}"
            print(f"compile_for: {name} refused: {type(error).__name__}: {said}", file=sys.stderr)


def jit(function=None, **options):
    """`jax.jit`, recorded."""
    return functools.partial(jit, **options) if function is None else Compiled(function, **options)


def finish() -> None:
    """Prints the counts, and exits with 1 where a program was refused."""
    print(f"compile_for: {Compiled.made} programs compiled, {Compiled.refused} refused", file=sys.stderr, flush=True)
    if Compiled.refused:
        os._exit(1)


if __name__ == "__main__":
    if len(sys.argv) < 4 or sys.argv[1] not in ("cpu", "cuda", "tpu"):
        sys.exit(__doc__)
    Compiled.where = described(*sys.argv[1:3])
    jax.config.update("jax_platforms", "cpu")  # where the command runs
    JIT, jax.jit = jax.jit, jit
    sys.argv = ["jaxsim", *sys.argv[3:]]
    atexit.register(finish)
    runpy.run_module("jaxsim", run_name="__main__")
