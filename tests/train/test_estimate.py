"""Predictions of memory against the compiled programs, of time against their own formula; and the command."""

from __future__ import annotations

import dataclasses
import json
import subprocess
import sys
from pathlib import Path

import jax
import jax.numpy as jnp
import numpy as np
import pytest
import scipy.sparse
from light import as_users_have_it

from jaxsim import cli
from jaxsim.methods import s2net
from jaxsim.methods.projections import Projection
from jaxsim.model import Model
from jaxsim.optim import lbfgs
from jaxsim.sparse import Terms
from jaxsim.train import estimate

ROOT = Path(__file__).parents[2]
F, I = jnp.float32, jnp.int32  # noqa: E741


def shape(dtype, *sizes):
    return jax.ShapeDtypeStruct(sizes, dtype)


def documents(m, v, z):
    slots = (shape(dtype, z) for dtype in (F, I))
    values, indices = slots
    return Terms(values, indices, shape(I, m + 1), indices, indices, shape(I, v + 1), v)


@pytest.mark.parametrize(("m", "v", "k", "words", "matrices"), [
    (20_000, 20_000, 300, 96, 1), (3_000, 2_000, 50, 30, 1), (3_000, 8_000, 50, 30, 2)])
@pytest.mark.usefixtures("fully_compiled")
def test_memory_is_within_30_percent_of_the_compiled_program(m, v, k, words, matrices):
    training = estimate.Training(pairs=m, terms=v, dim=k, words=words, matrices=matrices)
    result = estimate.memory(training)
    one = Projection(shape(F, v, k))
    a = one if matrices == 1 else (one, one)
    sides = documents(m, v, training.nnz)
    data = s2net.Data(sides, sides, shape(F), shape(F), a)
    program = lbfgs.evaluate.compiled(None).lower(s2net.objective, a, data).compile().memory_analysis()
    assert result["loss"] == pytest.approx(program.temp_size_in_bytes, rel=0.3)
    # Its arguments are the documents, the projection and the start; its result is a gradient.
    arguments = result["documents"] + (0 if data.beta is None else 1) * result["projection"] / 7 * 2
    assert arguments == pytest.approx(program.argument_size_in_bytes, rel=0.3)
    assert result["projection"] / 7 == pytest.approx(program.output_size_in_bytes, rel=0.01)


def test_memory_of_the_history_is_what_the_optimiser_keeps():
    training = estimate.Training(pairs=10, terms=50, dim=4, words=5, history_size=3, block_size=(16, 16))
    assert estimate.memory(training)["history"] == 2 * 3 * 50 * 4 * 4
    both = [estimate.memory(dataclasses.replace(training, pairs=10_000, devices=d)) for d in (1, 4)]
    assert both[1]["loss"] < both[0]["loss"] / 2 and both[1]["documents"] < both[0]["documents"] / 3
    assert both[1]["history"] == both[0]["history"]
    parted = estimate.memory(dataclasses.replace(training, pairs=10_000, devices=4, shard_terms=True))
    assert parted["history"] == pytest.approx(both[1]["history"] / 4, rel=0.05)  # 13 of 50 terms
    assert parted["projection"] == pytest.approx(both[1]["projection"] / 4, rel=0.05)


@pytest.mark.parametrize("method", estimate.METHODS)
def test_a_process_holds_libraries_texts_start_arrays_and_programs(method):
    training = estimate.Training(pairs=20_000, terms=20_000, dim=100, words=50, method=method)
    found = estimate.process(training)
    parts = ("loaded", "texts", "start", "training", "programs")
    assert set(found) == {*parts, "peak", "opca_peak"} and found["peak"] == sum(found[name] for name in parts)
    assert found["training"] == estimate.memory(training)["total"]
    more = estimate.process(dataclasses.replace(training, pairs=30_000))
    assert more["start"] == found["start"] and more["texts"] == 1.5 * found["texts"]  # of 8,000 pairs at most
    assert found["start"] < found["opca_peak"] < found["peak"]


@pytest.mark.parametrize(("sizes", "expected"), [
    ((100, 80_000, 10, 20), 4 * (2 * 200**2 + 3 * 200**2)),  # 200 documents span little: a dense matrix of them
    ((300, 150, 60, 20), 4 * 3 * 150**2),  # a basis would be as large as the terms
    ((9_000, 30_000, 100, 50), 4 * (3 * 8_000**2 + 6 * 30_000 * 17 * 14)),  # a factor, and a basis of 238 columns
])
def test_the_start_holds_what_the_algorithm_of_opca_needs(sizes, expected):
    training = estimate.Training(**dict(zip(("pairs", "terms", "dim", "words"), sizes, strict=True)))
    assert estimate.process(training)["start"] == expected


def zipf_pairs(path, pairs, words, rng):
    """A file of pairs that share their rarer words; the number of terms in two texts, and of distinct ones a text."""
    drawn = (50 * ((3_050) / 50) ** rng.random((pairs, words)) - 50).astype(int)
    others = (50 * ((3_050) / 50) ** rng.random((pairs, words)) - 50).astype(int)
    others[:, : words // 2] = drawn[:, : words // 2]
    rows = [[" ".join(f"w{word}" for word in row) for row in side] for side in (drawn, others)]
    path.write_text("".join(f"{a}\t{b}\n" for a, b in zip(*rows, strict=True)))
    return np.unique(np.concatenate([drawn, others])).size, np.mean([len(set(row)) for row in (*drawn, *others)])


@pytest.mark.programs
@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="measured on Linux")
@pytest.mark.parametrize(("method", "key", "options"), [
    ("s2net", "peak", ["--batch-size", "0", "--max-iter", "12", "--subwords", "0"]),
    ("s2net", "peak", ["--batch-size", "0", "--max-iter", "12"]), ("opca", "opca_peak", ["--subwords", "0"])])
def test_the_peak_of_a_process_is_within_30_percent_of_the_true_one(method, key, options, rng, tmp_path):
    terms, words = zipf_pairs(tmp_path / "pairs.tsv", 1_500, 40, rng)
    # By a small process between, since the peak of a child starts at that of the process that it was forked from.
    between = ("import resource, subprocess, sys\n"
               "subprocess.run(sys.argv[1:], check=True, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)\n"
               "print(resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss)")
    done = subprocess.run(
        [sys.executable, "-c", between, sys.executable, "-m", "jaxsim", "train", "--pairs", "pairs.tsv", "--out",
         "model", "--method", method, "--dim", "100", *options], cwd=tmp_path, check=True, capture_output=True,
        env={**as_users_have_it(), "JAX_PLATFORMS": "cpu", "PYTHONPATH": str(ROOT)})  # fmt: skip
    grams = 0 if "--subwords" in options else len(Model.load(tmp_path / "model").subwords)
    sizes = {"pairs": 1_350, "terms": terms + grams, "dim": 100, "words": words}
    found = estimate.process(estimate.Training(**sizes, ngrams=min(estimate.GRAMS_A_WORD * words, grams)))
    assert found[key] == pytest.approx(1024 * int(done.stdout), rel=0.3)


def test_ngrams_of_few_pairs_count_as_terms_and_on_all_negatives_are_multiplied_once():
    assert estimate.grams(19_999, 10_000) == 20_000 and estimate.grams(20_000, 10_000) == 0
    assert estimate.grams(100, 90_000) == 100_000
    plain = {"pairs": 4_000, "terms": 30_000, "dim": 100, "words": 50.0}
    rates = estimate.Rates(1e11, 0, 2e-10, 0, 0, 0, 0)
    for method in estimate.METHODS:
        made = estimate.Training(**plain, method=method, ngrams=450.0)
        bare = estimate.Training(**plain, method=method)
        assert made.nnz == 10 * bare.nnz == 4_000 * 500
        more = estimate.memory(made)["documents"] / estimate.memory(bare)["documents"]
        slower = estimate.seconds(made, rates)["documents"] / estimate.seconds(bare, rates)["documents"]
        assert more > 5 and (slower < 3 if method == "s2net" else slower == pytest.approx(10))
    with pytest.raises(ValueError, match="ngrams: expected a number of at least 0, with the words at most 30000"):
        estimate.Training(**plain, ngrams=29_951)


def test_time_is_quadratic_in_pairs_for_all_of_them_and_linear_for_batches():
    rates = estimate.Rates(1e11, 4e-9, 2e-10, 1e-9, 3e-11, 3e-9, 1e-5)
    sizes = {"terms": 20_000, "dim": 300, "words": 96}

    def iteration(m, method, **other):
        return estimate.seconds(estimate.Training(pairs=m, method=method, **sizes, **other), rates)

    small, large = (iteration(m, "s2net") for m in (10_000, 20_000))
    assert large["products"] / small["products"] == pytest.approx(4) == large["scores"] / small["scores"]
    gradient = 20_000 * 300 * rates.gradient  # does not depend on the pairs
    assert (large["documents"] - gradient) / (small["documents"] - gradient) == pytest.approx(2)
    assert large["bookkeeping"] == small["bookkeeping"]
    batches = [iteration(m, "s2net_sgd")["iteration"] for m in (10_240, 20_480)]
    assert batches[1] / batches[0] == pytest.approx(2)
    shared = iteration(20_000, "s2net", devices=4)
    assert shared["products"] == pytest.approx(large["products"] / 4) and shared["bookkeeping"] == large["bookkeeping"]
    assert large["total"] == pytest.approx(101 * large["iteration"])
    for method in estimate.METHODS:  # two matrices: the same documents and scores, twice what is learned
        one, two = (iteration(10_240, method, matrices=matrices) for matrices in (1, 2))
        assert {name for name in one if one[name] != two[name]} == {"bookkeeping", "iteration", "total"}
        assert one["bookkeeping"] < two["bookkeeping"] <= 2 * one["bookkeeping"]


@pytest.mark.parametrize("method", estimate.METHODS)
def test_rates_are_measured_of_both_methods(method):
    rates = estimate.measure(estimate.Training(pairs=60, terms=80, dim=4, words=6, method=method, batch_size=16))
    assert (rates.update > 0) == (method == "s2net_sgd")
    assert all(0 < rate < float("inf") for name, rate in rates._asdict().items() if name != "update")


def test_no_probe_is_larger_than_a_laptops_memory(monkeypatch):
    asked, size = {}, 2**31 - 2
    monkeypatch.setattr(estimate, "block_seconds", lambda pairs, dim, **_: asked.update(vectors=pairs * dim) or 1.0)
    rows = scipy.sparse.csr_matrix(scipy.sparse.eye(64))
    monkeypatch.setattr(estimate, "_probe", lambda t: asked.update(terms=t.terms, words=t.words) or (rows, 1))
    monkeypatch.setattr(estimate, "_byte_seconds", lambda size, history: 1e-9)
    monkeypatch.setattr(estimate, "_update_seconds", lambda terms, dim: asked.update(weights=terms * dim) or 1e-9)
    estimate.measure(estimate.Training(pairs=size, terms=size, dim=size, words=size, batch_size=size,
                                       method="s2net_sgd"))  # fmt: skip
    assert asked.keys() == {"vectors", "terms", "words", "weights"} and max(asked.values()) <= 100_000_000


@pytest.mark.parametrize(("change", "message"), [
    ({"pairs": 0}, "pairs: expected"),
    ({"words": 101}, r"words: expected a number above 0, at most 100 \(terms\), got 101"),
    ({"method": "lsa"}, "method: expected one of s2net, s2net_sgd, got lsa"),
    ({"devices": 11}, r"devices: expected at most 10 \(pairs to train on\), got 11"),
    ({"terms": 2**31 - 1}, "terms: expected at most 2,147,483,646 .*, got 2,147,483,647"),
    ({"matrices": 3}, "matrices: expected 1 or 2, got 3"),
    ({"method": "s2net_sgd", "devices": 2}, "devices: expected 1, with s2net_sgd, got 2"),
    ({"precision": "half"}, "precision: expected"),
])
def test_trainings_that_cannot_be_are_refused(change, message):
    with pytest.raises(ValueError, match=message):
        estimate.Training(**{"pairs": 10, "terms": 100, "dim": 5, "words": 10, **change})


def test_the_command_prints_both_ways_and_the_sooner(monkeypatch, capsys):
    asked = []

    def measure(training):
        asked.append(training)
        return estimate.Rates(1e11, 4e-9, 2e-10, 1e-9, 3e-11, 3e-9, 1e-5)

    monkeypatch.setattr(estimate, "measure", measure)
    sizes = ["--terms", "20000", "--dim", "1000", "--precision", "tf32"]
    assert cli.main(["estimate", "--pairs", "43380", *sizes, "--max-iter", "80", "--epochs", "7"]) == 0
    head, all_, batches, sooner = capsys.readouterr().out.splitlines()
    peak = ["peak", "GB"] * (jax.default_backend() == "cpu")
    assert head.split() == ["43,380", "pairs", "GB", *peak, "s", "a", "round", "minutes"]
    assert all_.startswith("all negatives") and batches.startswith("batches")
    assert sooner == "sooner: batches (80 iterations, or 7 epochs)"
    assert [(one.method, one.max_iter, one.precision) for one in asked] == [
        ("s2net", 80, "tf32"), ("s2net_sgd", 7, "tf32")]
    assert cli.main(["estimate", "--pairs", "300", *sizes, "--epochs", "4000", "--json"]) == 0
    facts = json.loads(capsys.readouterr().out)
    assert facts["sooner"] == "all negatives" and facts["all negatives"]["bytes"] > 20 * 4 * 20_000 * 1_000
    assert facts["all negatives"]["seconds"] < facts["batches"]["seconds"]
    if peak:
        assert facts["all negatives"]["peak bytes"] > facts["all negatives"]["bytes"] + 5e8
    assert cli.main(["estimate", "--pairs", "300", "--method", "s2net-2", *sizes, "--json"]) == 0
    assert {one.matrices for one in asked[:-2]} == {1} and {one.matrices for one in asked[-2:]} == {2}
    assert json.loads(capsys.readouterr().out)["batches"]["bytes"] > facts["batches"]["bytes"]
    assert {one.terms for one in asked[-2:]} == {60_000}  # with n-grams, which shared terms have none of by default
    assert cli.main(["estimate", "--pairs", "300", "--shard-terms", "--devices", "2", *sizes, "--json"]) == 0
    assert {(one.terms, one.ngrams) for one in asked[-2:]} == {(20_000, 0)}


@pytest.mark.parametrize(("arguments", "named"), [
    ([], "--pairs"), (["--pairs", "1"], "--pairs"),
    (["--pairs", "9", "--shard-terms"], "--shard-terms: expected several devices to share the terms (--devices)"),
    (["--pairs", "9", "--terms", "10", "--words", "11"], "--words: expected"),
    (["--pairs", "9", "--precision", "half"], "--precision"), (["--pairs", "9", "--method", "lsa"], "--method"),
    (["--pairs", "3", "--devices", "4"], "--devices: expected at most 3 (pairs to train on), got 4"),
    (["--pairs", "3000000000"], "--pairs: expected at most 2,147,483,646 (numbers of 32 bits), got 3,000,000,000"),
    (["--pairs", "9", "--terms", "3000000000"], "--terms: expected at most 2,147,483,646"),
])
def test_bad_input_of_the_command_is_one_line_before_anything_is_measured(capsys, arguments, named, monkeypatch):
    monkeypatch.setattr(estimate, "measure", lambda training: pytest.fail("measured"))
    assert cli.main(["estimate", *arguments]) == 2
    (line,) = capsys.readouterr().err.splitlines()
    assert named in line
