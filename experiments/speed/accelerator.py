"""The all-pairs loss on an accelerator: its share of the measured rate of matrix products, and the paper's size.

No paper. Value and gradient of the loss in both directions take three products of 2 m² k operations. Their rate is set
beside that of one square product in the same precision and run, for the panels that `tiles.tile` chooses from the
device's memory. The paper's size is an evaluation of S2Net: 43,380 pairs of 96 of 20,000 terms in 300 dimensions,
expected within 1 s. Expected of the loss: 53 % of the rate by panels.

The quick preset takes forced host devices, on one and on two of them, and compares their losses; its shares mean
nothing. The full preset takes the accelerator that JAX finds, and says "not run" where there is none.

    python -m experiments.speed.accelerator --preset quick --out /tmp/quick    # seconds
    python -m experiments.speed.accelerator --preset full                      # minutes on a GPU
"""

from __future__ import annotations

import argparse
import functools
import os
import sys
import time

from experiments.kit.places import RESULTS, add_out, records_folder

GAMMA, SHARE, SECONDS = 10.0, 0.53, 1.0
PRECISIONS = ("float32", "tf32", "bfloat16")
PRESETS = {
    "quick": {"pairs": (256,), "dimensions": (16,), "side": 256, "paper": (200, 500, 16, 12), "repeats": 2},
    "full": {"pairs": (8_192, 32_768, 131_072), "dimensions": (300, 1_000), "side": 8_192,
             "paper": (43_380, 20_000, 300, 96), "repeats": 5},
}


def loss_cells(sheet, settings: dict) -> None:
    """Value and gradient of the loss at every size and precision, beside the square product."""
    import jax
    import jax.numpy as jnp

    from experiments.kit.measure import race
    from jaxsim import losses
    from jaxsim.losses import tiles
    from jaxsim.sparse.precision import matmul

    side = settings["side"]
    square = jax.random.normal(jax.random.key(0), (side, side), jnp.float32)
    for policy in PRECISIONS:
        product = jax.jit(functools.partial(matmul, policy=policy))
        rate = 2.0 * side**3 / min(race({"square": lambda p=product: p(square, square)})["square"].seconds)
        sheet.add(f"square product, {policy}", rate / 1e12, "TFLOP/s", note=f"{side:,} a side")
        loss = jax.jit(jax.value_and_grad(
            functools.partial(losses.all_pairs_logistic, gamma=GAMMA, precision=policy), argnums=(0, 1)))
        for m in settings["pairs"]:
            for k in settings["dimensions"]:
                left, right = (jax.random.normal(jax.random.key(seed), (m, k), jnp.float32) for seed in (1, 2))
                seconds = race({"loss": lambda f=loss, a=left, b=right: f(a, b)}, repeats=settings["repeats"])["loss"]
                share = 6.0 * m**2 * k / min(seconds.seconds) / rate
                temporary = loss.lower(left, right).compile().memory_analysis().temp_size_in_bytes
                name = f"all pairs, {policy}, m = {m:,}, k = {k:,}"
                sheet.time(name, seconds, note=f"{share:.1%} of the square product's rate; {temporary / 1e9:.3g} GB; "
                                               f"tile {tiles.tile(None, m)}")
                if m == max(settings["pairs"]):
                    sheet.expect(f"share of the rate, {name}", share, SHARE, at_least=True)


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
    for count in sorted({1, devices}):
        sides = [sparse.from_scipy(side) for side in csr]
        if count > 1:
            mesh = jax.make_mesh((count,), ("pairs",), devices=jax.devices()[:count])
            sides = [parallel.sharding.shard(side, mesh) for side in sides]
        data = s2net.Data(*sides, jnp.float32(GAMMA), jnp.float32(0), start)
        seconds = race({"one": lambda data=data: evaluate(start, data)}, repeats=settings["repeats"])["one"]
        found.append(float(evaluate(start, data)[0]))
        sheet.time(f"value and gradient of S2Net, {pairs:,} pairs, k = {k}, {count} devices", seconds)
        sheet.expect(f"seconds an evaluation, {count} devices", seconds.median, SECONDS)
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
    loss_cells(sheet, settings)
    paper_size(sheet, settings, len(jax.devices()))
    record = records.new(experiment="speed", paper="none", table="accelerator", row=sheet.row,
                         config={"preset": given.preset, **sheet.config}, dataset=sheet.dataset, metrics={},
                         environment=environment, **sheet.fields(), seconds={"evaluate": time.perf_counter() - begun})
    records.write(record, out, allow_dirty=not full)
    sheet.tell(f"accelerator: {jax.devices()[0].device_kind}")
    print(out)
    return 0


if __name__ == "__main__":
    sys.exit(main())
