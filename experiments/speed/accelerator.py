"""The all-pairs loss on an accelerator: its share of the measured rate of matrix products, and the paper's size.

No paper. Value and gradient of the loss in both directions take three products of 2 m² k operations. Their rate is
set beside that of one square product in the same precision and run, for the panels that `tiles.tile` chooses from the
device's memory. The paper's size is an evaluation of S2Net: 43,380 pairs of 96 of 20,000 terms in 300 dimensions,
documents as sparse rows and as dense matrices; the faster is expected within 1 s. Expected of the loss: 53 % of the
rate by panels, and 70 % by the kernel that keeps scores on chip: on a GPU `losses.weight_kernel`, in bfloat16 alone; on
a TPU `losses.tile_kernel`, which takes four products, so that 75 % is the most it can reach. The kernel is compared
with float64 first (by `peers`), and timed in turns with the panels; what the device refuses is "not measured".

The quick preset takes forced host devices, on one and on two of them, and compares their losses; its shares mean
nothing, and the kernel is interpreted. The full preset takes the accelerator that JAX finds, and says "not run" where
there is none.

    python -m experiments.speed.accelerator --preset quick --out /tmp/quick    # seconds
    python -m experiments.speed.accelerator --preset full                      # minutes on a GPU
"""

from __future__ import annotations

import argparse
import functools
import itertools
import os
import sys
import time

from experiments.kit.places import RESULTS, add_out, records_folder

GAMMA, SHARE, SHARE_ON_CHIP, SECONDS = 10.0, 0.53, 0.70, 1.0
WITHIN = {"float32": 1e-4, "bfloat16": 1e-2}
PRECISIONS = ("float32", "tf32", "bfloat16")
PRESETS = {
    "quick": {"pairs": (256,), "dimensions": (16,), "side": 256, "paper": (200, 500, 16, 12), "repeats": 2},
    "full": {"pairs": (8_192, 32_768, 131_072), "dimensions": (300, 1_000), "side": 8_192,
             "paper": (43_380, 20_000, 300, 96), "repeats": 5},
}


def _compiled(sheet, name: str, function, *args):
    """A compiled program that has run once; None where the device refuses it, which the sheet says."""
    import jax

    try:
        program = function.lower(*args).compile()
        jax.block_until_ready(program(*args))
        return program
    except Exception as error:  # compilers of kernels, and devices without room, raise types of their own
        sheet.missing(name, f"{type(error).__name__}: {str(error).partition(chr(10))[0]}")
        return None


def _on_chip(backend: str) -> tuple[str, ...]:
    """Precisions of the kernel that keeps scores on chip, the most exact first."""
    return ("bfloat16",) if backend == "gpu" else PRECISIONS


def _value_and_grads(policy: str, on_chip: bool):
    import jax

    from jaxsim import losses

    return jax.jit(jax.value_and_grad(functools.partial(losses.all_pairs_logistic, gamma=GAMMA, precision=policy,
                                                        on_chip=on_chip), argnums=(0, 1)))


def _normal(m: int, k: int):
    """Embeddings of both sides."""
    import jax
    import jax.numpy as jnp

    return [jax.random.normal(jax.random.key(seed), (m, k), jnp.float32) for seed in (1, 2)]


def kernel_parity(sheet, settings: dict) -> None:
    """The kernel in its most exact precision beside float64, before it is timed."""
    import jax
    import numpy as np

    from experiments.speed import peers

    sides = _normal(min(settings["pairs"][0], 700), settings["dimensions"][0])
    policy = _on_chip(jax.default_backend())[0]
    program = _compiled(sheet, "parity, on chip", _value_and_grads(policy, True), *sides)
    if program is None:
        return
    value, grads = program(*sides)
    expected = peers.all_pairs_numpy(*(np.asarray(side, np.float64) for side in sides), GAMMA, both=True)
    for what, ours, right in zip(("value", "gradient left", "gradient right"), (value, *grads), expected, strict=True):
        sheet.parity(f"on chip, {policy}, {what}", ours, right, within=WITHIN[policy])


def loss_cells(sheet, settings: dict) -> None:
    """Value and gradient of the loss at every size and precision, by panels and on chip, beside the square product."""
    import jax
    import jax.numpy as jnp
    from tqdm import tqdm

    from experiments.kit.measure import race
    from jaxsim.losses import tiles
    from jaxsim.sparse.precision import matmul

    side, sizes = settings["side"], list(itertools.product(settings["pairs"], settings["dimensions"]))
    progress = tqdm(total=len(PRECISIONS) * len(sizes), disable=None, desc="sizes")
    square = jax.random.normal(jax.random.key(0), (side, side), jnp.float32)
    for policy in PRECISIONS:
        # Rounded beforehand: the rate is that of the product alone.
        matrix = square.astype(jnp.bfloat16) if policy == "bfloat16" else square
        product = functools.partial(jax.jit(functools.partial(matmul, policy=policy)), matrix, matrix)
        rate = 2.0 * side**3 / min(race({"square": product})["square"].seconds)
        sheet.add(f"square product, {policy}", rate / 1e12, "TFLOP/s", note=f"{side:,} a side")
        losses = {"all pairs": _value_and_grads(policy, False)}
        if policy in _on_chip(jax.default_backend()):
            losses["all pairs on chip"] = _value_and_grads(policy, True)
        for m, k in sizes:
            sides, size = _normal(m, k), f"{policy}, m = {m:,}, k = {k:,}"
            programs = {name: _compiled(sheet, f"{name}, {size}", loss, *sides) for name, loss in losses.items()}
            programs = {name: program for name, program in programs.items() if program is not None}
            times = race({name: functools.partial(program, *sides) for name, program in programs.items()},
                         repeats=settings["repeats"])
            for name, program in programs.items():
                share = 6.0 * m**2 * k / min(times[name].seconds) / rate
                temporary = program.memory_analysis().temp_size_in_bytes
                panels = name == "all pairs"
                against = () if panels or len(times) == 1 else (times["all pairs"], "by panels")
                sheet.time(f"{name}, {size}", times[name], *against,
                           note=f"{share:.1%} of the square product's rate; {temporary / 1e9:.3g} GB"
                                + (f"; tile {tiles.tile(None, m)}" if panels else ""))
                if m == max(settings["pairs"]):
                    sheet.expect(f"share of the rate, {name}, {size}", share, SHARE if panels else SHARE_ON_CHIP,
                                 at_least=True)
            progress.update()
    progress.close()


def paper_size(sheet, settings: dict, devices: int) -> None:
    """An evaluation of S2Net at the paper's size, its documents on one device or spread over all."""
    import jax
    import jax.numpy as jnp
    import numpy as np

    from experiments.corpora.synthetic import documents
    from experiments.kit.measure import race
    from jaxsim import parallel, sparse
    from jaxsim.methods import s2net

    pairs, terms, k, per_doc = settings["paper"]
    csr = documents(pairs, terms, per_doc, seed=0, shared=per_doc // 2, views=2)
    start = jax.tree.map(lambda leaf: leaf.astype(jnp.float32), s2net.random_init(terms, k, key=jax.random.key(0)))
    evaluate = jax.jit(jax.value_and_grad(s2net.objective))
    found = []

    def measure(sides, name: str) -> float:
        data = s2net.Data(*sides, jnp.float32(GAMMA), jnp.float32(0), start)
        seconds = race({"one": lambda: evaluate(start, data)}, repeats=settings["repeats"])["one"]
        found.append(float(evaluate(start, data)[0]))
        sheet.time(f"value and gradient of S2Net, {pairs:,} pairs, k = {k}, {name}", seconds)
        return seconds.median

    for count in sorted({1, devices}):
        sides = [sparse.from_scipy(side) for side in csr]
        if count > 1:
            mesh = jax.make_mesh((count,), ("pairs",), devices=jax.devices()[:count])
            seconds = measure([parallel.sharding.shard(side, mesh) for side in sides], f"{count} devices")
        else:  # `s2net.fit` takes the second where it fits into the memory of an accelerator
            seconds = measure(sides, "1 devices, sparse rows")
            seconds = min(seconds, measure([sparse.filled(side) for side in sides], "1 devices, with their zeros"))
        sheet.expect(f"seconds an evaluation, {count} devices", seconds, SECONDS)
    if not np.allclose(found, found[0], rtol=1e-5):
        raise ArithmeticError(f"accelerator: expected one loss on any number of devices, got {found}")


def main() -> int:
    """Measures on forced host devices or on the accelerator, and writes a record."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--preset", choices=PRESETS, default="quick")
    add_out(parser)
    given = parser.parse_args()
    full = given.preset == "full"
    out = records_folder(parser, given.out, quick=not full)
    if not full:  # before JAX starts
        os.environ["JAX_PLATFORMS"] = "cpu"
        os.environ["XLA_FLAGS"] = os.environ.get("XLA_FLAGS", "") + " --xla_force_host_platform_device_count=2"
    import jax

    from experiments.corpora.synthetic import synthetic
    from experiments.kit import records
    from experiments.kit.measure import Sheet

    if full and jax.default_backend() == "cpu":
        print("accelerator: not run: JAX finds no GPU and no TPU here")
        return 0
    environment = records.environment()
    if full and out == RESULTS and environment["dirty"]:
        parser.error("expected a committed tree, got uncommitted changes (or give --out another folder)")
    begun, settings = time.perf_counter(), PRESETS[given.preset]
    sheet = Sheet("all-pairs", 1, full, synthetic("normal embeddings", pairs=max(settings["pairs"])), {"gamma": GAMMA})
    paper_size(sheet, settings, len(jax.devices()))
    kernel_parity(sheet, settings)
    loss_cells(sheet, settings)
    record = records.new(experiment="speed", paper="none", table="accelerator", row=sheet.row,
                         config={"preset": given.preset, **sheet.config}, dataset=sheet.dataset, metrics={},
                         environment=environment, **sheet.fields(), seconds={"evaluate": time.perf_counter() - begun})
    records.write(record, out, allow_dirty=not full)
    sheet.tell(f"accelerator: {jax.devices()[0].device_kind}")
    print(out)
    return 0


if __name__ == "__main__":
    sys.exit(main())
