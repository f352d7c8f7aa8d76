"""Run with several forced host devices: the same topics as on one. Prints one JSON object."""

from __future__ import annotations

import json
import sys
import tempfile

import jax
import numpy as np
import scipy.sparse
from mesh_parity import error

from jaxsim import sparse
from jaxsim.methods import cplsa, jplsa

V, K, M = 40, 3, 13  # documents are no multiple of the devices


def views():
    rng = np.random.default_rng(0)
    shares = rng.dirichlet(np.full(K, 0.3), M)
    sides = [rng.poisson(60 * shares @ rng.dirichlet(np.full(V, 0.1), K)) for _ in range(2)]
    sides[0][4] = 0  # an empty document
    return [sparse.from_scipy(scipy.sparse.csr_matrix(side.astype(np.float32))) for side in sides]


def main() -> None:
    mesh = jax.make_mesh((jax.device_count(),), ("pairs",))
    result = {"devices": jax.device_count()}
    options = {"k": K, "start": "soft", "key": jax.random.key(0), "max_iter": 6}
    for name, method, more in (("jplsa", jplsa, {}), ("cplsa", cplsa, {}), ("shared", cplsa, {"shared": True})):
        one, many = (method.fit(views(), mesh=where, **options, **more) for where in (None, mesh))
        result[name] = [error(a.words, b.words) for a, b in zip(many.params, one.params, strict=True)]
        result[name] += [error(many.history[i]["loss"], one.history[i]["loss"]) for i in (1, -1)]
    with tempfile.TemporaryDirectory() as folder:
        cplsa.fit(views(), mesh=mesh, checkpoint=folder, **options | {"max_iter": 3})
        resumed = cplsa.fit(views(), mesh=mesh, checkpoint=folder, **options)
    whole = cplsa.fit(views(), mesh=mesh, **options)
    result["resumed"] = [bool(np.array_equal(a.words, b.words))
                         for a, b in zip(resumed.params, whole.params, strict=True)]
    json.dump(result, sys.stdout)


if __name__ == "__main__":
    main()
