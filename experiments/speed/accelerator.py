"""What S2Net costs on an accelerator: the all-pairs loss, as a share of the rate of matrix products, and documents.

No paper. Rows `all-pairs-…`: value and gradient of the loss in both directions take three products of 2 m² k
operations, in float32, TF32 or bfloat16. Their rate is set beside that of one square product in the same precision and
run, for the panels that `tiles.tile` chooses from the device's memory. Expected: 53 % of the rate by panels, and 70 %
by the kernel that keeps scores on chip: on a GPU `losses.weight_kernel`, in TF32 and bfloat16; on a TPU
`losses.tile_kernel`, which takes four products, so that 75 % is the most it can reach. The kernel is compared with
float64 first (by `peers`), and timed in turns with the panels; what the device refuses is "not measured".

Row `documents`: an evaluation of S2Net at the paper's size, 43,380 pairs of 96 of 20,000 terms, in 300 and 1,000
dimensions, expected within 1 s; and the products of its documents in every storage (`sparse.held` chooses one), beside
cuSPARSE through JAX. Row `compilation`: two programs of a closed form compiled as `sparse.compilation` has them, with
cuBLAS, and with XLA's trials of its own kernels; expected in no more than 1.2 times their time to run. Row `first-fit`:
an evaluation of S2Net both ways, of few pairs and of the paper's; L-BFGS has it with cuBLAS, and the first fit of a
shape waits for its compilation.

The quick preset takes forced host devices, on one and on two of them, and compares their losses; its shares mean
nothing, and the kernel is interpreted. The full preset takes the accelerator that JAX finds, and says "not run" where
there is none.

    python -m experiments.speed.accelerator --preset quick --out /tmp/quick    # seconds
    python -m experiments.speed.accelerator --preset full                      # four minutes on a GPU
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
WITHIN = {"float32": 1e-4, "tf32": 1e-3, "bfloat16": 1e-2}
PRECISIONS = ("float32", "tf32", "bfloat16")
PRESETS = {
    "quick": {"pairs": (256,), "dimensions": (16,), "side": 256, "paper": (200, 500, (16,), 12), "repeats": 2},
    "full": {"pairs": (8_192, 32_768, 131_072), "dimensions": (300, 1_000), "side": 8_192,
             "paper": (43_380, 20_000, (300, 1_000), 96), "repeats": 5},
}
ROWS = {**dict.fromkeys(("documents", "compilation", "first-fit")),
        **{f"all-pairs-{policy}": policy for policy in PRECISIONS}}
"""Row -> the precision of its products; None for those that have JAX's default, or the highest."""


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
    """Precisions of the kernel that keeps scores on chip."""
    return PRECISIONS[1:] if backend == "gpu" else PRECISIONS


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


def kernel_parity(sheet, settings: dict, policy: str) -> None:
    """The kernel beside float64, before it is timed."""
    import numpy as np

    from experiments.speed import peers

    sides = _normal(min(settings["pairs"][0], 700), settings["dimensions"][0])
    expected = peers.all_pairs_numpy(*(np.asarray(side, np.float64) for side in sides), GAMMA, both=True)
    program = _compiled(sheet, "parity, on chip", _value_and_grads(policy, True), *sides)
    if program is None:
        return
    value, grads = program(*sides)
    for what, ours, right in zip(("value", "gradient left", "gradient right"), (value, *grads), expected, strict=True):
        sheet.parity(f"on chip, {policy}, {what}", ours, right, within=WITHIN[policy])


def loss_cells(sheet, settings: dict, policy: str) -> None:
    """Value and gradient of the loss at every size, by panels and on chip, beside the square product."""
    import jax
    import jax.numpy as jnp
    from tqdm import tqdm

    from experiments.kit.measure import race
    from jaxsim.losses import tiles
    from jaxsim.sparse.precision import matmul

    side, sizes = settings["side"], list(itertools.product(settings["pairs"], settings["dimensions"]))
    matrix = jax.random.normal(jax.random.key(0), (side, side), jnp.float32)
    # Rounded beforehand: the rate is that of the product alone.
    matrix = matrix.astype(jnp.bfloat16) if policy == "bfloat16" else matrix
    product = functools.partial(jax.jit(functools.partial(matmul, policy=policy)), matrix, matrix)
    rate = 2.0 * side**3 / min(race({"square": product})["square"].seconds)
    sheet.add(f"square product, {policy}", rate / 1e12, "TFLOP/s", note=f"{side:,} a side")
    losses = {"all pairs": _value_and_grads(policy, False)}
    if policy in _on_chip(jax.default_backend()):
        losses["all pairs on chip"] = _value_and_grads(policy, True)
    for m, k in tqdm(sizes, disable=None, desc=policy):
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


def evaluations(sheet, settings: dict, devices: int) -> None:
    """Evaluations of S2Net at the paper's size, in every storage on one device, and on all of them as a mesh has it."""
    import jax
    import jax.numpy as jnp
    import numpy as np

    from experiments.kit.measure import race
    from jaxsim import parallel, sparse
    from jaxsim.methods import s2net

    pairs, terms, dimensions, _ = settings["paper"]
    csr = _documents(settings)
    stored = {name: [store(sparse.from_scipy(side)) for side in csr] for name, store in _stores().items()}
    if devices > 1:
        mesh = jax.make_mesh((devices,), ("pairs",), devices=jax.devices())
        stored[f"{devices} devices"] = [parallel.sharding.shard(sparse.from_scipy(side), mesh) for side in csr]
    evaluate = jax.jit(jax.value_and_grad(s2net.objective))
    for k in dimensions:
        start = jax.tree.map(lambda leaf: leaf.astype(jnp.float32), s2net.random_init(terms, k, key=jax.random.key(0)))
        found, times = {}, {}
        for name, sides in stored.items():
            data = s2net.Data(*sides, jnp.float32(GAMMA), jnp.float32(0), start)
            program = _compiled(sheet, f"S2Net, k = {k:,}, {name}", evaluate, start, data)
            if program is not None:
                found[name] = float(program(start, data)[0])
                times |= race({name: functools.partial(program, start, data)}, repeats=settings["repeats"])
        fastest = min(times, key=lambda name: times[name].median)
        for name, seconds in times.items():
            against = () if name == fastest else (times[fastest], fastest)
            sheet.time(f"value and gradient of S2Net, {pairs:,} pairs, k = {k:,}, {name}", seconds, *against)
        sheet.expect(f"seconds an evaluation, k = {k:,}", times[fastest].median, SECONDS)
        if not np.allclose(list(found.values()), found[fastest], rtol=1e-5):
            raise ArithmeticError(f"accelerator: expected one loss in any storage, got {found}")


def products(sheet, settings: dict) -> None:
    """Products of one side's documents with a projection, and of their transpose, in every storage."""
    import jax
    import jax.numpy as jnp
    import numpy as np

    from experiments.kit.measure import race
    from jaxsim import sparse

    pairs, terms, dimensions, _ = settings["paper"]
    csr = _documents(settings)[0]
    stored = {name: store(sparse.from_scipy(csr)) for name, store in _stores().items()}
    if jax.default_backend() == "gpu":
        stored["cuSPARSE through JAX"] = stored["sparse rows"]
    few, down = csr[:100].astype(np.float64), csr.T.tocsr()[:100].astype(np.float64)
    for k in dimensions:
        weights, dense = (jax.random.normal(jax.random.key(seed), (rows, k), jnp.float32)
                          for seed, rows in enumerate((terms, pairs)))
        for what, product, some, other in (("project", sparse.project, few, weights),
                                           ("transpose", sparse.project_transpose, down, dense)):
            found, same, right = {}, {}, some @ np.asarray(other, np.float64)
            for name, documents in stored.items():
                # A setting of JAX, read where a program is lowered; `jax.jit` would keep that of an equal function.
                jax.config.update("jax_bcoo_cusparse_lowering", name.startswith("cuSPARSE"))
                program = _compiled(sheet, f"{what}, k = {k:,}, {name}", jax.jit(functools.partial(product)), documents,
                                    other)
                if program is None:
                    continue
                runs = [np.asarray(program(documents, other)) for _ in range(3)]
                sheet.parity(f"{what}, k = {k:,}, {name}", runs[0][:100], right, within=1e-4)
                same[name] = all(np.array_equal(runs[0], run) for run in runs)
                found |= race({name: functools.partial(program, documents, other)}, repeats=settings["repeats"])
            fastest = min(found, key=lambda name: found[name].median)
            for name, seconds in found.items():
                against = () if name == fastest else (found[fastest], fastest)
                sheet.time(f"{what}, {pairs:,} documents, k = {k:,}, {name}", seconds, *against,
                           note="the same bits in three runs" if same[name] else "other last bits in each run")
    jax.config.update("jax_bcoo_cusparse_lowering", False)


def _both_ways(sheet, what: str, function, args, repeats: int) -> dict:
    """Compiles and times a program, with cuBLAS and with the kernels that XLA tries."""
    import jax

    from experiments.kit.measure import race
    from jaxsim.sparse import compilation

    programs, ways = {}, {"cuBLAS": compilation.OPTIONS.get(jax.default_backend()), "trials": None}
    for name, options in ways.items():
        lowered = jax.jit(functools.partial(function), compiler_options=options).lower(*args)
        begun = time.perf_counter()
        programs[name] = lowered.compile()
        sheet.add(f"compilation, {what}, {name}", time.perf_counter() - begun, "s")
    found = race({name: functools.partial(program, *args) for name, program in programs.items()}, repeats=repeats)
    for name, times in found.items():
        sheet.time(f"{what}, {name}", times, *(() if name == "trials" else (found["trials"], "trials")))
    return found


def compilations(sheet, settings: dict) -> None:
    """Seconds to compile and to run programs of a closed form, with cuBLAS, and with the kernels that XLA tries."""
    import jax
    import jax.numpy as jnp

    from jaxsim.linalg import krylov

    _, terms, dimensions, _ = settings["paper"]
    k = max(dimensions)
    basis, block, rotation = (jax.random.normal(jax.random.key(seed), shape, jnp.float32)
                              for seed, shape in enumerate(((terms, k), (terms, k // 6), (k, k))))
    for what, function, args in (("a block without its part in a basis", krylov.without.__wrapped__, (block, basis)),
                                 ("a basis times a rotation", krylov.times.__wrapped__, (basis, rotation))):
        found = _both_ways(sheet, f"{what}, k = {k:,}", function, args, settings["repeats"])
        sheet.expect(f"{what}: time to run, of that with trials", found["cuBLAS"].median / found["trials"].median,
                     1.2)


def first_fits(sheet, settings: dict) -> None:
    """Seconds to compile and to run an evaluation of S2Net, of few pairs and of the paper's, likewise."""
    import jax
    import jax.numpy as jnp

    from jaxsim import sparse
    from jaxsim.methods import s2net

    pairs, terms, dimensions, per_doc = settings["paper"]
    k = min(dimensions)
    start = jax.tree.map(lambda leaf: leaf.astype(jnp.float32), s2net.random_init(terms, k, key=jax.random.key(0)))
    for size in (pairs // 20, pairs):
        sides = [sparse.gathered(sparse.from_scipy(side)) for side in _made(size, terms, per_doc)]
        data = s2net.Data(*sides, jnp.float32(GAMMA), jnp.float32(0), start)
        _both_ways(sheet, f"value and gradient of S2Net, {size:,} pairs, k = {k:,}",
                   jax.value_and_grad(s2net.objective), (start, data), settings["repeats"])


def _stores() -> dict:
    """How one device can hold documents."""
    from jaxsim import sparse

    return {"sparse rows": lambda terms: terms, "with their zeros": sparse.filled, "gathered": sparse.gathered}


@functools.cache
def _made(pairs: int, terms: int, per_doc: int):
    from experiments.corpora.synthetic import documents

    return documents(pairs, terms, per_doc, seed=0, shared=per_doc // 2, views=2)


def _documents(settings: dict):
    """Both sides of made-up pairs, as SciPy matrices."""
    pairs, terms, _, per_doc = settings["paper"]
    return _made(pairs, terms, per_doc)


def main() -> int:
    """Measures on forced host devices or on the accelerator, and writes a record."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--preset", choices=PRESETS, default="quick")
    parser.add_argument("--only", choices=ROWS, nargs="+", help="rows; all unless given")
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
    settings = PRESETS[given.preset]
    for row in given.only or ROWS:
        begun, policy = time.perf_counter(), ROWS[row]
        of_documents = row in ("documents", "first-fit")
        made, sizes = ("pairs of documents by Zipf's law", settings["paper"][:1]) if of_documents else (
            "normal embeddings", settings["pairs"])
        sheet = Sheet(row, 1, full, synthetic(made, pairs=max(sizes)), {"gamma": GAMMA, "products": policy})
        if row in ("compilation", "first-fit"):
            (compilations if row == "compilation" else first_fits)(sheet, settings)
        elif policy is None:
            evaluations(sheet, settings, len(jax.devices()))
            products(sheet, settings)
        else:
            if policy in _on_chip(jax.default_backend()):
                kernel_parity(sheet, settings, policy)
            loss_cells(sheet, settings, policy)
        record = records.new(experiment="speed", paper="none", table="accelerator", row=row,
                             config={"preset": given.preset, **sheet.config}, dataset=sheet.dataset, metrics={},
                             environment=environment, **sheet.fields(),
                             seconds={"evaluate": time.perf_counter() - begun})
        records.write(record, out, allow_dirty=not full)
        sheet.tell(f"{row}: {jax.devices()[0].device_kind}")
    print(out)
    return 0


if __name__ == "__main__":
    sys.exit(main())
