"""The row of the speed tables for SSI: triples a second of the compiled loop, for two vocabularies, and a peer."""

from __future__ import annotations

import jax
import jax.numpy as jnp
import numpy as np

from experiments.corpora.synthetic import documents, synthetic
from experiments.kit.measure import Sheet, Times, installed, race
from jaxsim import sparse
from jaxsim.methods import ssi as method
from jaxsim.methods.ssi import host
from jaxsim.methods.ssi import shared as ssi_shared
from jaxsim.methods.ssi import triples as triples_room
from jaxsim.methods.ssi.products import Products
from jaxsim.optim.rows import scan_chunk

RATE = 1e-4  # small, so that the margin stays violated and every step is a whole one
FULL = {"docs": 512, "slots": 200, "k": 100, "triples": 4096, "terms": (30_000, 300_000)}
QUICK = {"docs": 40, "slots": 20, "k": 8, "triples": 64, "terms": (500, 5_000)}


class Problem:
    """Documents of a fixed number of terms over a vocabulary, triples of them, and a start."""

    def __init__(self, num_terms: int, size: dict):
        """Makes it."""
        (self.csr,) = documents(size["docs"], num_terms, size["slots"], seed=0)
        sides = sparse.from_scipy(self.csr)
        count = size["docs"]
        links = np.stack([np.arange(count), (np.arange(count) + 1) % count], axis=1)
        table = triples_room.table(links, count, count, known=np.repeat(np.arange(count), 2).reshape(-1, 2))
        triples = triples_room.draw(jax.random.key(0), table, size["triples"])
        self.chunk = method.Example(triples, Products(sides, sides, 1.0).apart(triples))
        self.data = ssi_shared.Documents(*ssi_shared.padded(sides, None) * 2, jnp.float32(1.0))
        rng = np.random.default_rng(1)
        self.start = [rng.normal(scale=0.1, size=(num_terms, size["k"])).astype(np.float32) for _ in range(2)]

    def run(self, tables, chunk, *, steps=None):
        """The steps of a chunk by the loop of the host, or by the scan; tables are changed, or donated."""
        if steps is None:
            return scan_chunk(method.objective, method.rows, tables, self.data, chunk, jnp.float32(RATE))
        return tables, steps(tables, chunk, RATE)

    def ours(self, *, steps=None):
        """A function of nothing that goes on training."""
        state = [tuple(map(jnp.array if steps is None else np.array, self.start))]

        def go():
            state[0], losses = self.run(state[0], self.chunk, steps=steps)
            return losses

        return go

    def plain(self, number: int, rate: float) -> tuple[np.ndarray, np.ndarray]:
        """The same steps, one by one, in float64."""
        u, v = (side.astype(np.float64) for side in self.start)
        wide = self.csr.astype(np.float64)
        columns = zip(*(np.asarray(part)[:number] for part in (*self.chunk.triple, self.chunk.apart)), strict=True)
        for query, better, worse, apart in columns:
            q, d = wide[[query]], wide[[better]] - wide[[worse]]
            left, right = (q @ u).ravel(), (d @ v).ravel()
            if 1 - apart - left @ right > 0:
                u[q.indices] += rate * np.outer(q.data, right)
                v[d.indices] += rate * np.outer(d.data, left)
        return u, v

    def torch(self, torch, batch: int, number: int):
        """What StarSpace does, in PyTorch: bags of embeddings with sparse gradients, SGD on ``batch`` triples."""
        bags = [torch.nn.EmbeddingBag.from_pretrained(torch.tensor(side), mode="sum", sparse=True, freeze=False)
                for side in self.start]
        optimizer = torch.optim.SGD([bag.weight for bag in bags], lr=RATE)
        ids = torch.tensor(np.asarray(self.data.terms), dtype=torch.int64)
        values = torch.tensor(np.asarray(self.data.values))
        parts = [torch.tensor(np.asarray(part)[:number].astype(np.int64)) for part in self.chunk.triple]
        apart = torch.tensor(np.asarray(self.chunk.apart)[:number])

        def go():
            for start in range(0, number, batch):
                query, better, worse = (part[start : start + batch] for part in parts)
                optimizer.zero_grad()
                left = bags[0](ids[query], per_sample_weights=values[query])
                right = (bags[1](ids[better], per_sample_weights=values[better])
                         - bags[1](ids[worse], per_sample_weights=values[worse]))
                loss = torch.relu(1 - apart[start : start + batch] - (left * right).sum(1)).sum()
                loss.backward()
                optimizer.step()
            return np.zeros(1)

        return go, bags


def ssi(sizes, cores: int, full: bool) -> Sheet:
    """Cost of a step of UᵀV + I for two vocabularies; per triple, beside PyTorch with sparse gradients."""
    size = FULL if full else QUICK
    few, many = size["terms"]
    sheet = Sheet("ssi", cores, full, synthetic("documents by Zipf's law", docs=size["docs"],
                                                terms_a_document=size["slots"], terms=few, more_terms=many),
                  {"k": size["k"], "triples": size["triples"], "learning_rate": RATE})
    problems = {num_terms: Problem(num_terms, size) for num_terms in size["terms"]}
    first = jax.tree.map(lambda column: column[:32], problems[few].chunk)
    loops = {num_terms: host.steps(problem.data) for num_terms, problem in problems.items()}
    ways = {"steps": loops[few]} if loops[few] is None else {"steps": loops[few], "steps by XLA": None}
    for way, steps in ways.items():
        begin = jnp.array if steps is None else np.array
        tables, _ = problems[few].run(tuple(map(begin, problems[few].start)), first, steps=steps)
        for name, found, expected, begun in zip("UV", tables, problems[few].plain(32, RATE), problems[few].start,
                                                strict=True):
            sheet.parity(f"{way} of {name}", np.asarray(found, np.float64) - begun, expected - begun, within=1e-2)
    torch = installed("torch")
    contestants = {f"jaxsim, {num_terms:,} terms": problem.ours(steps=loops[num_terms])
                   for num_terms, problem in problems.items()}
    if loops[few] is not None:
        contestants[f"jaxsim without numba, {few:,} terms"] = problems[few].ours()
    mine = tuple(contestants)
    counts = dict.fromkeys(contestants, size["triples"])
    if torch is not None:
        torch.set_num_threads(cores)
        steps, bags = problems[few].torch(torch, 1, 32)
        steps()
        for name, bag, expected, begun in zip("UV", bags, problems[few].plain(32, RATE), problems[few].start,
                                              strict=True):
            sheet.parity(f"PyTorch's steps of {name}", bag.weight.detach().numpy().astype(np.float64) - begun,
                         expected - begun, within=1e-2)
        for batch, share in ((1, 16), (32, 4)):
            number = max(size["triples"] // share, batch)
            name = f"PyTorch, {few:,} terms, {batch} triple{'s' * (batch > 1)} a step"
            contestants[name], counts[name] = problems[few].torch(torch, batch, number)[0], number
    times = {name: Times(tuple(seconds / counts[name] for seconds in found.seconds))
             for name, found in race(contestants, repeats=sizes.repeats).items()}
    ours, *others = times
    for name, measured in times.items():
        ratio = times[ours].median / measured.median
        sheet.add(name, 1 / measured.median, "triples/s", ratio=None if name == ours else ratio,
                  of=None if name == ours else f"{ours}'s rate", note=f"{1e6 * measured.median:.3g} µs a triple")
    sheet.expect(f"time of a step at {many:,} terms against {few:,}", times[others[0]].median / times[ours].median, 2.5)
    if torch is None:
        sheet.missing("PyTorch, sparse gradients", "torch is not installed")
    else:
        fastest = min(measured.median for name, measured in times.items() if name not in mine)
        sheet.expect("times as fast as PyTorch", fastest / times[ours].median, 5.0, at_least=True)
    temporary = [_temporary(problem) for problem in problems.values()]
    for num_terms, used in zip(size["terms"], temporary, strict=True):
        sheet.add(f"temporary memory of XLA's program, {num_terms:,} terms", used / 1e6, "MB",
                  ratio=used / (4 * num_terms * size["k"]), of="one table")
    return sheet


def _temporary(problem: Problem) -> int:
    lowered = scan_chunk.lower(method.objective, method.rows, tuple(map(jnp.asarray, problem.start)), problem.data,
                               problem.chunk, jnp.float32(RATE))
    return lowered.compile().memory_analysis().temp_size_in_bytes
