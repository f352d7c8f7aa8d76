"""The row of the speed tables that fits PILSA: the truncated SVD of all thesauri, its time and its memory."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
from pathlib import Path

import numpy as np
import scipy.sparse
import scipy.sparse.linalg

from experiments.corpora import thesauri
from experiments.kit.measure import Sheet, once
from jaxsim import sparse
from jaxsim.methods import pilsa as pilsa_method

LEADING = 10
"""Singular values that are compared with ARPACK's in float64."""
K, SECONDS, GB = 400, 60.0, 2.0


def pilsa(sizes, cores: int, full: bool) -> Sheet:
    """PILSA of the union of thesauri, in a process of its own: one run, the first, with compilation."""
    collection = thesauri.real() if full else thesauri.made_up()
    signed, k = collection.signed("union"), K if full else K // 4
    sheet = Sheet("pilsa", cores, full, {
        "name": "thesauri", "sha256": collection.sha256("union"), "counts": collection.counts("union"), "groups": {},
        "differs": "substitute: thesauri in the public domain for Bloomsbury's" if full else
        "synthetic: a made-up thesaurus"}, {"k": k})  # fmt: skip
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "columns.npz"
        scipy.sparse.save_npz(path, signed.columns, compressed=False)
        found = _apart(path, k)
    number = min(LEADING, k // 20)  # the last of k are less accurate
    reference = np.sort(scipy.sparse.linalg.svds(signed.columns.astype(np.float64), k=number,
                                                 return_singular_vectors=False))[::-1]
    # The made-up thesaurus has a flat spectrum, of which few dimensions are rough.
    sheet.parity("largest singular values", found["values"][:number], reference, within=1e-3 if full else 2e-2)
    sheet.add("jaxsim, the fit with compilation", found["seconds"], "s", note="one run")
    sheet.expect("seconds", found["seconds"], SECONDS)
    if found["gb"] is None:
        sheet.missing("peak resident memory", "this system has no /proc/self/status")
    else:
        sheet.add("peak resident memory of the process", found["gb"], "GB")
        sheet.expect("GB of the process", found["gb"], GB)
    return sheet


def _apart(path: Path, k: int) -> dict:
    """What `measured` finds in a process of its own."""
    paths = os.pathsep.join([str(Path(__file__).resolve().parents[2]), os.environ.get("PYTHONPATH", "")])
    code = ("import json; from experiments.speed import thesaurus; "
            f"print(json.dumps(thesaurus.measured({str(path)!r}, {k})))")
    done = subprocess.run([sys.executable, "-c", code], env={**os.environ, "PYTHONPATH": paths}, capture_output=True,
                          text=True, check=True)
    return json.loads(done.stdout.splitlines()[-1])


def measured(path: str | Path, k: int) -> dict:
    """Fits PILSA to the columns in a file: seconds, peak memory of this process, and the largest singular values."""
    words = sparse.from_scipy(scipy.sparse.load_npz(path))
    params, seconds = once(lambda: pilsa_method.fit(words, k=k).params)
    status = Path("/proc/self/status")
    lines = status.read_text().splitlines() if status.exists() else []
    peak = [int(line.split()[1]) * 1024 / 1e9 for line in lines if line.startswith("VmHWM:")]
    images = np.linalg.norm(np.asarray(sparse.project(words, params.weights)), axis=0)  # of singular vectors
    return {"seconds": seconds, "gb": peak[0] if peak else None, "values": images[:LEADING].tolist()}
