"""What the pages on export and on scikit-learn show, command and code, on small data."""

from __future__ import annotations

import re
import shlex
from pathlib import Path

import numpy as np
import pytest
from command_line import LEFT

from jaxsim import cli
from jaxsim.model import Model
from jaxsim.model.export import FORMATS

DOCS = Path(__file__).parent.parent / "docs"
PAGE = (DOCS / "export.md").read_text(encoding="utf-8")
BLOCK = re.compile(r"^```python\n(.*?)^```$", re.MULTILINE | re.DOTALL)
CODE = dict(zip(FORMATS, BLOCK.findall(PAGE.partition("## Measure a model")[0]), strict=True))
NEEDS = {"sentence-transformers": ("sentence_transformers", "tokenizers"), "model2vec": ("model2vec", "tokenizers"),
         "word2vec": ("gensim",), "onnx": ("onnx", "onnxruntime", "tokenizers")}  # fmt: skip


@pytest.mark.parametrize("to", FORMATS)
def test_the_code_of_the_page_reads_what_its_command_writes(to, trained, tmp_path, monkeypatch):
    for name in NEEDS[to]:
        pytest.importorskip(name)
    monkeypatch.chdir(tmp_path)
    command, *_ = re.findall(r"^jaxsim (export .*)$", PAGE, re.MULTILINE)
    words = shlex.split(command.replace("--model model", f"--model {trained}"))
    assert words[words.index("--to") + 1] in FORMATS
    words[words.index("--to") + 1] = to
    assert cli.main(words) == 0
    texts = ["sparse row", "random seed of a plot axis"]
    code = CODE[to].replace('["a text", "another"]', repr(texts)).replace('["a", "text"]', '["sparse", "row"]')
    found: dict = {}
    exec(code, found)
    model = Model.load(trained)
    if to == "word2vec":
        np.testing.assert_allclose(found["vector"], model.encode("sparse row"), rtol=1e-5)
        return
    vectors = np.asarray(found["vectors"], np.float64)
    vectors /= np.linalg.norm(vectors, axis=1, keepdims=True)
    np.testing.assert_allclose(vectors, model.encode(texts, normalize=True), atol=1e-5)


@pytest.mark.pages
def test_the_page_on_scikit_learn(folder, capsys):
    pytest.importorskip("sklearn", "1.6")
    search, classify = BLOCK.findall((DOCS / "scikit-learn.md").read_text(encoding="utf-8"))
    names: dict = {}
    exec(search.replace("[20, 50]", "[4, 6]").replace("GroupKFold(3)", "GroupKFold(2)"), names)
    assert names["search"].best_params_["dim"] in (4, 6) and 0 < names["search"].best_score_ <= 1
    assert Model.load(folder / "model").dim == names["projection"].n_features_out_
    exec(classify.replace('"array" in', '"sparse" in').replace("the sum of an array", LEFT[0]), names)
    assert capsys.readouterr().out.splitlines()[-1] == "[ True]"
