"""The command `estimate`: memory and seconds of a training, before it is started."""

from __future__ import annotations

from typing import Annotated

import typer

from jaxsim.cli import options
from jaxsim.cli.output import show_json, show_result
from jaxsim.cli.program import app
from jaxsim.cli.train_options import choice
from jaxsim.train.settings import PRECISIONS, S2NET

Estimated = choice("method", S2NET)
Precision = choice("precision", PRECISIONS)


@app.command(epilog="\b\nExample, at the size of the paper:\n"
                    "  jaxsim estimate --pairs 43380 --terms 20000 --dim 1000 --max-iter 80")
def estimate(
    pairs: Annotated[int, typer.Option(min=2, help="Pairs to train on.")],
    method: Annotated[Estimated, typer.Option(
        help="As for train: one matrix for both sides, or one per side.")] = Estimated.S2NET,  # fmt: skip
    terms: Annotated[int, typer.Option(min=1, help="Terms of the vocabulary.")] = 50_000,
    dim: Annotated[int, typer.Option(min=1, help="Length of the vectors.")] = 300,
    words: Annotated[float | None, typer.Option(
        help="Mean number of distinct known terms in a text; 96 (or all "
                                                 "terms, if there are fewer) unless given.")] = None,  # fmt: skip
    ngrams: Annotated[int | None, typer.Option(
        min=0, help="N-grams of words that learn too: two for each term (100,000 at most) with fewer than 20,000 "
                    "pairs, and none with more or with --shard-terms, unless given.")] = None,  # fmt: skip
    max_iter: Annotated[int, typer.Option(min=1, help="Iterations on all negatives.")] = 100,
    epochs: Annotated[int, typer.Option(min=1, help="Epochs on batches.")] = 40,
    batch_size: Annotated[int, typer.Option(min=2, help="Pairs in a batch.")] = 256,
    devices: Annotated[int, typer.Option(min=1, help="Devices, as fast as this one, that share the training on all "
                                                  "negatives.")] = 1,
    shard_terms: Annotated[bool, typer.Option("--shard-terms", help="The devices share the projection too; with "
                                                                    "--devices 2 or more.")] = False,
    precision: Annotated[Precision | None, typer.Option(help="Precision of the matrix products.")] = None,
    json: options.JsonOption = False,
) -> None:
    """Estimate memory and time of S2Net, on all negatives and on those of a batch.

    GB are those of the arrays on a device; on a CPU, peak GB are those of the whole process of `jaxsim train`. Arrays
    are counted; seconds come from rates that are measured here, in a few seconds, on the device that a training would
    take. A round is an iteration on all negatives, or an epoch on batches. Only a development set can say which of the
    two is worth its time.
    """
    from jaxsim import checks
    from jaxsim.train import estimate as room

    words = min(96, terms) if words is None else words
    checks.expect(0 < words <= terms, "--words", f"a number above 0, at most {terms} (terms)", words)
    checks.expect(devices > 1 or not shard_terms, "--shard-terms", "several devices to share the terms (--devices)", 1)
    if ngrams is None:
        ngrams = 0 if shard_terms else room.grams(pairs, terms)  # as `training.effective`
    common = {"pairs": pairs, "terms": terms + ngrams, "dim": dim, "words": words,
              "ngrams": min(room.GRAMS_A_WORD * words, ngrams), "precision": precision and str(precision),
              "matrices": 2 if method == Estimated.S2NET_2 else 1}
    # Both are checked before anything is measured.
    trainings = {
        "all negatives": room.Training(**common, max_iter=max_iter, devices=devices, shard_terms=shard_terms),
        "batches": room.Training(**common, method="s2net_sgd", max_iter=epochs, batch_size=batch_size),
    }
    result = {name: _row(room, training) for name, training in trainings.items()}
    sooner = min(result, key=lambda name: result[name]["seconds"])
    if json:
        show_json({**result, "sooner": sooner})
        return
    shown = {name: {"GB": row["bytes"] / 1e9, **({"peak GB": row["peak bytes"] / 1e9} if "peak bytes" in row else {}),
                    "s a round": row["seconds a round"], "minutes": row["seconds"] / 60}
             for name, row in result.items()}  # fmt: skip
    rounds = f"{checks.counted(max_iter, 'iteration')}, or {checks.counted(epochs, 'epoch')}"
    show_result({f"{pairs:,} pairs": shown, "sooner": f"{sooner} ({rounds})"})


def _row(room, training) -> dict[str, float]:
    """Bytes of arrays and, on a CPU, of the process; seconds of one round (an iteration, or an epoch) and of all."""
    import jax

    time = room.seconds(training, room.measure(training))
    alone = jax.default_backend() == "cpu" and training.devices == 1
    return {"bytes": room.memory(training)["total"],
            **({"peak bytes": room.process(training)["peak"]} if alone else {}),
            "seconds a round": time["iteration"], "seconds": time["total"]}  # fmt: skip
