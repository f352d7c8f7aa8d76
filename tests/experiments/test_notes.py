"""Codes of rows, the check of staleness, and records of older forms."""

from __future__ import annotations

import dataclasses
import json
from dataclasses import dataclass

import pytest

from experiments import kit
from experiments.corpora import topic_models
from experiments.kit import migrate, notes, records, report_tables
from experiments.kit.scripts import collect
from jaxsim.methods import cplsa, jplsa, plsa
from tests.experiments.test_records import ENVIRONMENT, made_up

FIT = {"loss": 0.5, "grad_norm": 0.01, "converged": False, "steps": 7, "evaluations": 9}


def row(**changes):
    fields = {"seeds": [], "config": {}, "dev": {"mrr": 0.5}, "curve": [], "fit": {}, "metrics": {"mrr": 0.5}}
    return made_up(**{**fields, **changes})


@pytest.mark.parametrize(("changes", "expected"), [
    ({}, []),
    ({"seeds": [1, 2], "metrics": {"mrr": [0.5, 0.5]}}, ["fewer-than-five-seeds"]),
    ({"seeds": range(5), "metrics": {"mrr": [0.5] * 5}}, []),
    ({"fit": FIT, "config": {"max_iter": 7}}, ["cap-reached"]),
    ({"fit": {**FIT, "converged": True}, "config": {"max_iter": 7}}, []),
    ({"fit": FIT, "config": {"max_iter": 8}}, []),
    ({"fit": FIT, "preset": {"name": "full", "settings": {"max_iter": 7}}}, ["cap-reached"]),
    ({"fit": {**FIT, "history": {"step": [0, 1], "loss": [0.9, 0.5], "validation": [0.7, 0.6]}}}, ["start-unchanged"]),
    ({"fit": {**FIT, "history": {"step": [0, 1], "loss": [0.9, 0.5], "validation": [0.5, 0.6]}}}, []),
    ({"fit": {**FIT, "loss": None}}, ["start-unchanged"]),  # by minibatches: no epoch's loss is the returned one's
    ({"fit": {**FIT, "loss": None, "evaluations": 7}}, []),  # ITML has no loss at all
    ({"fit": FIT, "curve": [{"k": 5, "mrr": 0.5, "start": 0.5}], "config": {"k": 5}}, ["start-unchanged"]),
    ({"fit": FIT, "curve": [{"k": 5, "mrr": 0.5, "start": 0.4}], "config": {"k": 5}}, []),
    ({"fit": FIT, "config": {"slack": 1.0}, "dev": {"grid": [{"slack": 1.0, "auc": 0.5, "best_step": 0},
                                                             {"slack": 2.0, "auc": 0.4, "best_step": 3}]}},
     ["start-unchanged", "edge-of-grid (slack +.1000)"]),
    ({"config": {"k": 9, "noise": 0.1}, "dev": {"grid": [{"k": 5, "noise": n, "dev": n} for n in (0.1, 1.0, 9.0)]}},
     ["edge-of-grid (noise)"]),
    ({"config": {"k": 9}, "curve": [{"k": k, "mrr": 0.5, "split": "dev"} for k in (5, 9)]}, ["edge-of-grid (k)"]),
    ({"config": {"k": 9}, "curve": [{"k": k, "mrr": 0.5, "split": "dev", "rank": 9} for k in (5, 9)]}, []),
    ({"config": {"share": 0.0}, "curve": [{"share": share, "mrr": 0.5 - share} for share in (0.0, 0.1)]}, []),
    ({"config": {"b": 3.0, "triples": 100},  # an epoch's triples, and how many training took
      "curve": [{"b": b, "triples": 300 * b, "map": b / 9, "split": "dev"} for b in (1.0, 3.0)]},
     ["edge-of-grid (b +.2222)"]),
    ({"config": {"k": 9}, "curve": [{"k": k, "mrr": 0.5, "split": "test"} for k in (5, 9)]}, []),
    ({"config": {"subwords": True}, "dev": {"grid": [{"subwords": b, "mrr": 0.1} for b in (True, False)]}}, []),
    ({"config": {"k1": 1.2}, "dev": {}}, ["not-chosen-on-dev"]),
    ({"config": {"k1": 1.2}, "dev": {"test mrr, standard error over queries": 0.1}}, ["not-chosen-on-dev"]),
    ({"config": {"max_iter": 5}, "dev": {}}, []),
    ({"fit": FIT, "preset": {"name": "full", "settings": {"max_iter": 7}},
      "dev": {"folds": [{"auc": 0.7, "auc_at_start": 0.7, "steps": 4, "edges": ["alpha"]},
                        {"auc": 0.8, "auc_at_start": 0.7, "steps": 7, "edges": []}]}},
     ["start-unchanged in 1 of 2 folds", "edge-of-grid (alpha) in 1 of 2 folds", "cap-reached in 1 of 2 folds"]),
    ({"config": {"c": 2}, "dev": {"grid": [{"c": c, "train_rank_loss": 0.1} for c in (1, 2, 3)]}},
     ["not-chosen-on-dev"]),
])  # fmt: skip
def test_codes_are_computed_from_the_record(changes, expected):
    assert notes.codes(row(**changes)) == expected


def test_a_stale_row_says_so():
    assert notes.codes(row(), is_stale=True) == ["stale"]


@dataclass(frozen=True)
class Settings:
    ks: tuple[int, ...] = (5, 10)
    limit: int | None = None


def test_records_must_agree_with_their_scripts():
    experiment = kit.Experiment("made_up", "About.", None, {"en-es": kit.Plan({}, {"full": Settings()})})
    scripts = {"made_up": experiment}
    settings = {"ks": [5, 10], "limit": None}

    def said(name="full", **changes):
        return notes.stale(row(preset={"name": name, "settings": {**settings, **changes}}), scripts)

    assert said() is None and notes.stale(row(), scripts) is None
    assert said(ks=[5]) == "preset.settings.ks: expected [5, 10], as in the script, got [5]"
    assert said(extra=1) == "preset.settings.extra: expected None, as in the script, got 1"
    assert notes.stale(row(preset={"name": "full", "settings": {"ks": [5, 10]}}), scripts) is None  # limit came later
    assert said("gone") == "preset: expected one of the script's for table en-es, got gone"
    of_limit = kit.Plan({}, {"full": Settings()}, reads={row()["row"]: ("limit",)})  # a row that does not read `ks`
    scripts["made_up"] = kit.Experiment("made_up", "About.", None, {"en-es": of_limit})
    assert said(ks=[5]) is None and said(limit=3) == "preset.settings.limit: expected None, as in the script, got 3"
    assert notes.excepted(row()) == "no-preset" and notes.excepted(row(preset={"name": "full", "settings": {}})) is None
    older = {**row(), "config": {"limit": 3}}  # without its preset, but what its row read is in its configuration
    assert notes.stale(older, scripts) == "config.limit: expected None, as in the script, got 3"
    assert notes.stale({**older, "config": {"limit": None, "ks": 3}}, scripts) is None  # `ks` is not read
    for reads, expected in ((("max_iter", "seeds"), ("config.max_iter: expected 200, as in the script, got 60",
                                                     "seeds: expected 5, as in the script, got 1")),
                            ((), (None, None))):  # fmt: skip
        plan = kit.Plan({}, {"full": {"max_iter": 200, "seeds": (0, 1, 2, 3, 4)}}, reads={row()["row"]: reads})
        scripts["made_up"] = kit.Experiment("made_up", "About.", None, {"en-es": plan})
        assert notes.stale({**row(), "config": {"max_iter": 60}, "seeds": [0]}, scripts) == expected[0]
        assert notes.stale({**row(), "config": {"max_iter": 200}, "seeds": [0]}, scripts) == expected[1]
        assert notes.stale({**row(), "config": {"max_iter": 200}, "seeds": [0, 1, 2, 3, 4]}, scripts) is None
        assert notes.stale({**row(), "seeds": []}, scripts) is None  # nothing is random


def test_a_record_of_an_older_split_is_stale_and_no_table_mixes_two():
    plan = kit.Plan({}, {"full": Settings()}, split=2)
    scripts = {"made_up": kit.Experiment("made_up", "About.", None, {"en-es": plan})}
    settings = {"ks": [5, 10], "limit": None}

    def dealt(row_id, version, **preset):
        record = row(row=row_id, **preset)
        return {**record, "dataset": {**record["dataset"], **({"split": version} if version else {})}}

    old, new = dealt("a", None), dealt("b", 2, preset={"name": "full", "settings": settings})
    assert notes.stale(old, scripts) == "dataset.split: expected version 2, as in the script, got 1"
    assert notes.stale(new, scripts) is None and notes.excepted(old) == "no-preset" and notes.excepted(new) is None
    older = dealt("a", None, preset={"name": "full", "settings": settings})
    assert notes.excepted(older, notes.stale(older, scripts)) == "no-split"
    report_tables.belong_together({"b.json": new, "c.json": dealt("c", 2)})
    with pytest.raises(ValueError, match=r"b.json: dataset.split: expected version 1, as in a.json, got 2"):
        report_tables.belong_together({"a.json": old, "b.json": new})


def test_a_newer_version_of_a_method_makes_a_record_stale(monkeypatch):
    from jaxsim.methods.projections import opca

    monkeypatch.setattr(opca, "VERSION", 3, raising=False)
    assert notes.stale(row(method_version={"projections.opca": 2}), {}) == \
        "method_version: expected 3 of projections.opca, got 2"
    assert notes.stale(row(method_version={"projections.opca": 3, "gone.away": 1}), {}) is None


@pytest.mark.parametrize(("status", "expected"), [
    ("reproduced", {}),
    ("no row of the paper's table", {}),
    ("within noise", {}),
    ("reproduced. AUC is higher", {"notes": ["AUC is higher."]}),
    ("off: cca is above by 0.1 MRR (paired t, p = 0.3)", {"notes": ["cca is above by 0.1 MRR (paired t, p = 0.3)."]}),
    ("within noise: holds m = 5,000 against (paired t, p = 6e-27) 1.07 (expected <= 1.4); GB 5e-2 (expected >= 1)",
     {"limits": [{"name": "m = 5,000 against (paired t, p = 6e-27)", "value": 1.07, "at_most": 1.4},
                 {"name": "GB", "value": 0.05, "at_least": 1.0}]}),
    ("missed: s 0.4 (expected <= 0.3)", {"limits": [{"name": "s", "value": 0.4, "at_most": 0.3}]}),
])  # fmt: skip
def test_an_old_record_keeps_every_figure_and_loses_its_status(tmp_path, capsys, status, expected):
    record = made_up(status=status)
    del record["notes"], record["method_version"]
    path = tmp_path / "made_up" / "en-es" / "opca.json"
    path.parent.mkdir(parents=True)
    path.write_text(migrate.written(record))
    assert migrate.main([str(tmp_path)]) == 0 and "1 records" in capsys.readouterr().out
    new = records.read(path)
    assert {name: new[name] for name in ("notes", "limits") if name in new} == expected
    assert new["commits"] == [ENVIRONMENT["commit"]] and "status" not in new and "commit" not in new
    rest = {name: value for name, value in new.items() if name not in ("notes", "limits", "commits")}
    assert rest == {name: value for name, value in record.items() if name not in ("status", "commit")}
    migrate.main([str(tmp_path)])
    assert "0 records" in capsys.readouterr().out
    migrate.main([str(tmp_path), "--moved", "ab" * 20, "--experiments", "made_up"])
    assert records.read(path)["commits"] == [ENVIRONMENT["commit"], "ab" * 20]


def test_a_table_whose_figures_stand_elsewhere_in_the_paper_is_named_by_that_place():
    assert migrate.migrated({"paper": "000 §4.1.2", "commits": []}) == {"paper": "000 §4.1.1", "commits": []}
    assert migrate.migrated({"paper": "000 Table 1", "commits": []})["paper"] == "000 Table 1"


@pytest.mark.parametrize(("place", "line", "expected"), [
    ("limits", {"name": "test mrr less s2net's (paired t, p = 0.04)", "at_least": 0.0, "value": 0.002},
     kit.compared("opca", "s2net", "mrr", at_least=0.0)),
    ("limits", {"name": "MAP less that of static-embedding: -0.0238 (paired t, p = 3e-68), the lower end of the 95 % "
                        "interval", "value": -0.026, "at_least": 0.0},
     kit.compared("opca", "static-embedding", "map", at_least=0.0, by="lower end")),
    ("limits", {"name": "MAP of s2net less this: +0.0035 (paired t, p = 0.4), the lower end of the 95 % interval",
                "value": -0.004, "at_least": 0.0}, kit.compared("s2net", "opca", "map", at_least=0.0, by="lower end")),
    ("limits", {"name": "MAP of opca-r less that of the best dimension (paired t, p = 0.07)", "value": 0.006,
                "at_least": -0.01}, kit.compared("opca-r", "opca", "map", at_least=-0.01)),
    ("measurements", {"name": "MRR less that of s2net (paired t, p = 0.03)", "unit": "MRR", "value": -0.005},
     kit.compared("opca", "s2net", "mrr")),
])  # fmt: skip
def test_what_an_old_record_says_of_two_rows_is_asked_again(place, line, expected):
    other = {"name": "seconds", "value": 2.0, **({"unit": "s"} if place == "measurements" else {"at_most": 3.0})}
    old = {"row": "opca", "commits": [], place: [other, line], "per_query": "opca.npz"}
    new = migrate.migrated(old)
    assert new == {**old, place: [other], "comparisons": [expected]} and list(new)[-1] == "per_query"
    assert place not in migrate.migrated({**old, place: [line]}) and migrate.migrated(new) == new


def test_the_published_records_have_todays_form():
    """No record holds a figure about another row, which may have been run again since."""
    for path, record in records.read_all(kit.RESULTS).items():
        assert migrate.migrated(record) == record, path
        lines = [*record.get("limits", ()), *record.get("measurements", ())]
        assert not any("paired t" in line["name"] for line in lines), path


def test_what_rows_read_are_settings_of_their_tables():
    declared = 0
    for experiment in collect().values():
        for plan in experiment.tables.values():
            fields = {field.name for preset in plan.presets.values() for field in dataclasses.fields(preset)}
            for row, read in plan.reads.items():
                assert set(read) <= fields, f"{experiment.name}: {row}"
                declared += row in plan.rows
    assert declared > 100


def test_committed_records_agree_with_their_scripts():
    scripts = collect()
    assert scripts["platt2010_mates"].claims
    for path, record in records.read_all(kit.RESULTS).items():
        what = notes.stale(record, scripts)
        assert what is None or notes.excepted(record, what), path


@pytest.mark.parametrize(("name", "folding"), [("platt2010_mates", topic_models.OF_2010),
                                               ("yih2011_mates", topic_models.OF_2011)])
def test_committed_topic_models_tried_the_numbers_of_topics_of_their_script(name, folding):
    methods = {"plsa": plsa, "jplsa": jplsa, "cplsa": cplsa}
    found = 0
    for path, record in records.read_all(kit.RESULTS).items():
        if record["experiment"] != name or record["row"] not in methods:
            continue
        settings = topic_models.TABLES.get(record["table"], topic_models.Settings())
        expected = topic_models.numbers(settings, methods[record["row"]], folding)
        most = record["curve"][0].get("rank", max(expected))
        assert [point["k"] for point in record["curve"]] == kit.up_to_rank(expected, most), path
        found += 1
    assert found > 20


def test_no_committed_record_has_a_status():
    for path in sorted(kit.RESULTS.rglob("*/*.json")):
        text = path.read_text()
        assert not {"status", "commit"} & json.loads(text).keys() and "reproduced" not in text, path
