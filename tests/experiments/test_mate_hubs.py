"""`mates.hubs` on a few docstrings: what is done to S2Net's vectors, and what its rows are compared with."""

from __future__ import annotations

import numpy as np
import pytest

from experiments import kit
from experiments.kit import records, report_limits
from experiments.mates import hubs
from jaxsim.methods.projections.agreement import agreement

pytestmark = pytest.mark.programs


@pytest.fixture(scope="module")
def table(tmp_path_factory):
    place = tmp_path_factory.mktemp("hubs")
    settings = hubs.Settings(k=10, limit=200, max_iter=4, patience=4)
    return kit.Table("mate_hubs", "docstrings", settings, "quick", hubs.load("docstrings", settings), place,
                     kit.Fits(place / "cache", say=lambda line: None))  # fmt: skip


def test_s2net_has_rows_beside_opca_and_says_by_how_much_they_differ(table):
    found = {row: records.read(table.fill(row, hubs.UNSEEN[row])) for row in hubs.UNSEEN if row.startswith("s2net")}
    mrr = {row: record["metrics"]["mrr"]["mean"] for row, record in found.items()}
    plain = records.read(table.fill("opca", hubs.ROWS["opca"]))["metrics"]["mrr"]["mean"]
    for row, record in found.items():
        rows = [records.read(table.path(other)) for other in ("opca", "s2net")]
        lines = [one for one in report_limits.judged([record, *rows], table.out) if one.row == row]
        assert lines[0].value == pytest.approx(mrr[row] - plain, abs=1e-6) and "less that of opca" in lines[0].name
        assert row == "s2net" or lines[1].value == pytest.approx(mrr[row] - mrr["s2net"], abs=1e-6)
        assert "measurements" not in record and all(one.holds is None for one in lines)
    assert found["s2net-beta"]["config"]["beta"] == 1e-3 and found["s2net-r"]["config"]["power"] == 1
    best = found["s2net-blend"]
    assert best["dev"]["mrr"] == max(one["mrr"] for one in best["dev"]["grid"]) >= found["s2net"]["dev"]["mrr"]
    assert best["config"]["end"] in table.settings.shares and set(hubs.TABLES["docstrings"].rows) == set(hubs.ROWS)


def test_the_agreement_is_that_of_development_pairs(table):
    vectors = hubs.vectors(table, "s2net")
    left, right = (hubs._unit(side * agreement(*vectors["dev"])) for side in vectors["test"])
    cosines = left @ right.T
    ranks = np.concatenate([(way >= np.diag(way)[:, None]).sum(axis=1) for way in (cosines, cosines.T)])
    np.testing.assert_array_equal(hubs.searched(table, "s2net", weighed=True, csls=False)["mrr"], 1 / ranks)


def test_a_blend_is_the_mean_of_start_and_end_at_length_one(table):
    params, choice = hubs.blended(table)
    end = choice.best["end"]
    first, last = (np.asarray(one.weights, np.float64) for one in (hubs.start(table), hubs.trained(table)))
    first, last = first / np.linalg.norm(first), last / np.linalg.norm(last)
    expected = (1 - end) * first + end * last
    np.testing.assert_allclose(np.asarray(params.weights) / np.linalg.norm(params.weights),
                               expected / np.linalg.norm(expected), atol=1e-6)  # fmt: skip
