"""The papers' own figures, as printed, to stand beside ours in BENCHMARKS.md.

Only what the papers print stands here. Rows that are ours alone (other starts, other dimensions) need no entry: they
follow the paper's rows in a table.
"""

from __future__ import annotations

from typing import NamedTuple

CITATIONS = {
    "000": "Yih, Toutanova, Platt, Meek: Learning Discriminative Projections for Text Similarity Measures. CoNLL 2011.",
    "001": "Yih, Meek: Learning Vector Representations for Similarity Measures. Microsoft Research report, 2010.",
    "002": "Platt, Toutanova, Yih: Translingual Document Representations from Discriminative Projections. EMNLP 2010.",
    "003": "Bai, Weston, Grangier, Collobert, Sadamasa, Qi, Chapelle, Weinberger: Learning to Rank with (a Lot of) "
    "Word Features. Information Retrieval, 2010.",
    "004": "Yih: Learning Term-weighting Functions for Similarity Measures. EMNLP 2009.",
}
"""Reference of each paper by the number that records use."""


class PaperRow(NamedTuple):
    """One printed row.

    Attributes:
      row: Row id of our records.
      label: The name as printed.
      figures: One value a metric of the table, None where the paper prints none.
      k: The dimension printed beside it, None where there is none.
    """

    row: str
    label: str
    figures: tuple[float | None, ...]
    k: int | None = None


class PaperTable(NamedTuple):
    """One printed table.

    Attributes:
      title: What it measures.
      data: The paper's data, with its split counts.
      metrics: Metric keys of the columns.
      rows: Printed rows in the paper's order, except that the untranslated baseline, our sanity row, comes first.
    """

    title: str
    data: str
    metrics: tuple[str, ...]
    rows: tuple[PaperRow, ...]


TABLES = {
    "002 Table 1": PaperTable(
        title="Comparable document retrieval in Europarl",
        data="Europarl EN–ES, 52,685 / 11,933 / 18,415 pairs",
        metrics=("accuracy", "mrr"),
        rows=(
            PaperRow("log-tfidf", "Untranslated", (0.1595, 0.2564)),
            PaperRow("opca", "OPCA", (0.9742, 0.9806), 1000),
            PaperRow("cplsa", "CPLSA", (0.9716, 0.9782), 1000),
            PaperRow("wbw", "Word-by-word", (0.9707, 0.9779)),
            PaperRow("wbw-lsa", "Word-by-word, LSA", (0.9706, 0.9778), 5000),
            PaperRow("jplsa", "JPLSA", (0.9645, 0.9726), 1000),
            PaperRow("cca", "CCA", (0.9613, 0.9705), 1500),
            PaperRow("cl-lsi", "CL-LSI", (0.9457, 0.9595), 3000),
        ),
    ),
    "002 Table 2": PaperTable(
        title="Comparable document retrieval in Wikipedia",
        data="Wikipedia EN–ES, 43,380 / 8,675 / 8,675 pairs",
        metrics=("accuracy", "mrr"),
        rows=(
            PaperRow("log-tfidf", "Untranslated", (0.4692, 0.5383)),
            PaperRow("tf", "Untranslated, raw counts (in the text)", (None, 0.1024)),
            PaperRow("opca", "OPCA", (0.7255, 0.7734), 2000),
            PaperRow("wbw", "Word-by-word", (0.7033, 0.7467)),
            PaperRow("cca", "CCA", (0.6894, 0.7378), 1500),
            PaperRow("wbw-lsa", "Word-by-word, LSA", (0.6786, 0.7236), 5000),
            PaperRow("cl-lsi", "CL-LSI", (0.5302, 0.6130), 5000),
            PaperRow("cplsa", "CPLSA", (0.4579, 0.5130), 200),
            PaperRow("jplsa", "JPLSA", (0.3322, 0.3619), 1000),
        ),
    ),
    "000 Table 1": PaperTable(
        title="Comparable document retrieval in Wikipedia, with S2Net",
        data="Wikipedia EN–ES, 43,380 / 8,675 / 8,675 pairs",
        metrics=("accuracy", "mrr"),
        rows=(
            PaperRow("s2net", "S2Net", (0.7447, 0.7973), 2000),
            PaperRow("opca", "OPCA", (0.7255, 0.7734), 2000),
            PaperRow("cca", "CCA", (0.6894, 0.7378), 1500),
            PaperRow("cplsa", "CPLSA", (0.6329, 0.6842), 1000),
            PaperRow("jplsa", "JPLSA", (0.6079, 0.6604), 1000),
            PaperRow("cl-lsi", "CL-LSI", (0.5302, 0.6130), 5000),
        ),
    ),
    "001 Table 2": PaperTable(
        title="Document similarity by term vectors",
        data="Reuters-21578, 7,310 / 2,848 documents",
        metrics=("auc", "max_f1", "p@5", "p@10", "map"),
        rows=(
            PaperRow("tfidf", "TFIDF", (0.817, 0.621, 0.799, 0.773, 0.601)),
            PaperRow("tweak-pref", "TWEAK", (0.890, 0.728, 0.838, 0.812, 0.625)),
            PaperRow("hdilr", "HDILR", (0.826, 0.632, 0.810, 0.784, 0.607)),
            PaperRow("vl-ext", "VL-Ext", (0.968, 0.846, 0.873, 0.852, 0.749)),
        ),
    ),
    "001 Table 3": PaperTable(
        title="Document similarity by concept vectors",
        data="Reuters-21578, 7,310 / 2,848 documents",
        metrics=("auc", "max_f1", "p@5", "p@10", "map"),
        rows=(
            PaperRow("lsa", "LSA", (0.947, 0.806, 0.772, 0.762, 0.703), 5),
            PaperRow("vl-cv", "VL-CV", (0.986, 0.915, 0.817, 0.811, 0.779), 5),
            PaperRow("hdlr", "HDLR", (0.976, 0.886, 0.841, 0.834, 0.795), 5),
        ),
    ),
    "003 Table 1": PaperTable(
        title="Document-document ranking by links, 30,000 words",
        data="Wikipedia EN, 1,828,645 articles, 24,667,286 links (70% for training)",
        metrics=("rank_loss", "map", "p@10"),
        rows=(
            PaperRow("tfidf", "TFIDF", (0.0162, 0.329, 0.163)),
            PaperRow("qe", "QE", (0.0162, 0.330, 0.163)),
            PaperRow("lsa", "LSI", (0.0479, 0.158, 0.098), 1000),
            PaperRow("lsi+tfidf", "αLSI + (1 − α)TFIDF", (0.0128, 0.346, 0.170), 200),
            PaperRow("ssi-diag", "SSI: W = D", (0.0141, 0.355, 0.177)),
            PaperRow("ssi-full", "SSI: W unconstrained", (0.0041, 0.477, 0.212)),
            PaperRow("ssi-sparse-1000", "SSI: sparse W, 1000D", (0.0041, 0.461, 0.213)),
            PaperRow("ssi-sparse-100", "SSI: sparse W, 100D", (0.0040, 0.462, 0.209)),
            PaperRow("ssi-sparse-10", "SSI: sparse W, 10D", (0.0053, 0.425, 0.197)),
            PaperRow("ssi-sym", "SSI: W = UᵀU + I, 200D", (0.0041, 0.506, 0.225)),
            PaperRow("ssi-asym", "SSI: W = UᵀV + I, 400D", (0.0030, 0.517, 0.229)),
        ),
    ),
    "003 Table 2": PaperTable(
        title="Document-document ranking by links, all words",
        data="Wikipedia EN, 1,828,645 articles, 24,667,286 links (70% for training), 2.5 million words",
        metrics=("rank_loss", "map", "p@10"),
        rows=(
            PaperRow("tfidf", "TFIDF", (0.00842, 0.432, 0.193)),
            PaperRow("qe", "QE", (0.00842, 0.432, 0.193)),
            PaperRow("lsi+tfidf", "αLSI of 30k words + (1 − α)TFIDF", (0.00721, 0.433, 0.193)),
            PaperRow("ssi-all", "SSI: W = UᵀU of 2.5M words + I, 50D", (0.00200, 0.503, 0.220)),
            PaperRow("ssi-top-100k", "SSI: W = UᵀV of 100k words + I, 100D", (0.00178, 0.536, 0.233)),
            PaperRow("ssi-top-60k", "SSI: W = UᵀV of 60k words + I, 100D", (0.00172, 0.541, 0.232)),
            PaperRow("ssi-top-30k", "SSI: W = UᵀV of 30k words + I, 200D", (0.00158, 0.547, 0.239)),
            PaperRow("hash-1m", "SSI: hash kernels, 1M", (0.0298, 0.239, 0.127)),
            PaperRow("hash-3m", "SSI: hash kernels, 3M", (0.0175, 0.301, 0.152)),
            PaperRow("hash-6m", "SSI: hash kernels, 6M", (0.0137, 0.335, 0.164)),
            PaperRow("hash-1m+i", "SSI: hash kernels + αI, 1M", (0.00525, 0.466, 0.207)),
            PaperRow("hash-3m+i", "SSI: hash kernels + αI, 3M", (0.00370, 0.474, 0.211)),
            PaperRow("hash-6m+i", "SSI: hash kernels + αI, 6M", (0.00347, 0.485, 0.215)),
            PaperRow("cfh-2", "SSI: CFH (2-grams)", (0.00149, 0.559, 0.249)),
            PaperRow("cfh-1", "SSI: CFH (1-grams)", (0.00119, 0.614, 0.263)),
        ),
    ),
    "003 Table 3": PaperTable(
        title="Document-document ranking, links or documents split",
        data="Wikipedia EN, 1,828,645 articles, 24,667,286 links",
        metrics=("rank_loss", "map", "p@10"),
        rows=(
            PaperRow("ssi-asym-links", "SSI: W = UᵀV + I, partitioned links", (0.00407, 0.506, 0.225)),
            PaperRow("ssi-asym", "SSI: W = UᵀV + I, partitioned docs + links", (0.00401, 0.503, 0.225)),
        ),
    ),
    "003 Table 4": PaperTable(
        title="The latent dimension N, 30,000 words",
        data="Wikipedia EN, 1,828,645 articles, 24,667,286 links (70% for training)",
        metrics=("rank_loss", "map", "p@10"),
        rows=(
            PaperRow("ssi-sym-100", "SSI: W = UᵀU + I, 100D", (0.00407, 0.506, 0.225), 100),
            PaperRow("ssi-asym-100", "SSI: W = UᵀV + I, 100D", (0.00387, 0.514, 0.225), 100),
            PaperRow("ssi-sym-200", "SSI: W = UᵀU + I, 200D", (0.00380, 0.510, 0.226), 200),
            PaperRow("ssi-asym-200", "SSI: W = UᵀV + I, 200D", (0.00302, 0.517, 0.229), 200),
            PaperRow("ssi-sym-500", "SSI: W = UᵀU + I, 500D", (0.00374, 0.495, 0.221), 500),
            PaperRow("ssi-asym-500", "SSI: W = UᵀV + I, 500D", (0.00310, 0.514, 0.228), 500),
        ),
    ),
    "003 Table 5, k = 5": PaperTable(
        title="Ranking for queries of 5 words, 30,000 words",
        data="Wikipedia EN, 1,828,645 articles, 24,667,286 links",
        metrics=("rank_loss", "map", "p@10"),
        rows=(
            PaperRow("tfidf", "TFIDF", (0.216, 0.047, 0.023)),
            PaperRow("lsi+tfidf", "αLSI + (1 − α)TFIDF", (0.142, 0.049, 0.023), 200),
            PaperRow("ssi-sym", "SSI: W = UᵀU + I, 200D", (0.0480, 0.161, 0.079)),
            PaperRow("ssi-asym", "SSI: W = UᵀV + I, 400D", (0.0437, 0.166, 0.083)),
        ),
    ),
    "003 Table 5, k = 10": PaperTable(
        title="Ranking for queries of 10 words, 30,000 words",
        data="Wikipedia EN, 1,828,645 articles, 24,667,286 links",
        metrics=("rank_loss", "map", "p@10"),
        rows=(
            PaperRow("tfidf", "TFIDF", (0.140, 0.083, 0.035)),
            PaperRow("lsi+tfidf", "αLSI + (1 − α)TFIDF", (0.0973, 0.089, 0.037), 200),
            PaperRow("ssi-sym", "SSI: W = UᵀU + I, 200D", (0.0310, 0.2138, 0.095)),
            PaperRow("ssi-asym", "SSI: W = UᵀV + I, 400D", (0.0291, 0.229, 0.100)),
        ),
    ),
    "003 Table 5, k = 20": PaperTable(
        title="Ranking for queries of 20 words, 30,000 words",
        data="Wikipedia EN, 1,828,645 articles, 24,667,286 links",
        metrics=("rank_loss", "map", "p@10"),
        rows=(
            PaperRow("tfidf", "TFIDF", (0.0914, 0.128, 0.054)),
            PaperRow("lsi+tfidf", "αLSI + (1 − α)TFIDF", (0.0636, 0.133, 0.059), 200),
            PaperRow("ssi-sym", "SSI: W = UᵀU + I, 200D", (0.0187, 0.287, 0.126)),
            PaperRow("ssi-asym", "SSI: W = UᵀV + I, 400D", (0.0180, 0.302, 0.130)),
        ),
    ),
    "003 Table 6": PaperTable(
        title="Ranking for queries of 10 words, all words",
        data="Wikipedia EN, 1,828,645 articles, 24,667,286 links, 2.5 million words",
        metrics=("rank_loss", "map", "p@10"),
        rows=(
            PaperRow("tfidf", "TFIDF", (0.1286, 0.128, 0.035)),
            PaperRow("lsi+tfidf", "αLSI + (1 − α)TFIDF", (0.0895, 0.133, 0.051), 200),
            PaperRow("ssi-asym", "SSI: W = UᵀV + I, 400 × 30k", (0.0302, 0.261, 0.113)),
            PaperRow("ssi-cfh", "SSI: Correlated Feature Hashing", (0.0202, 0.315, 0.135)),
        ),
    ),
    "003 Table 9": PaperTable(
        title="Ranking English documents by links for Japanese ones, 30,000 words a language",
        data="Wikipedia JA–EN, 135,737 mates, 8.1 million links from Japanese to English pages",
        metrics=("rank_loss", "map", "p@10"),
        rows=(
            PaperRow("tfidf-google", "TFIDF, queries translated by Google", (0.0478, 0.319, 0.259)),
            PaperRow("tfidf-words", "TFIDF, queries translated word by word", (0.0827, 0.115, 0.103)),
            PaperRow("tfidf-translated", "TFIDF, translated queries", (0.0483, 0.290, 0.243)),
            PaperRow("lsa-translated", "LSI, translated queries", (0.0754, 0.169, 0.150)),
            PaperRow("lsi+tfidf-translated", "αLSI + (1 − α)TFIDF, translated queries", (0.0371, 0.300, 0.253)),
            PaperRow("cl-lsi", "CL-LSI", (0.0929, 0.190, 0.161)),
            PaperRow("cl-lsi+tfidf-translated", "αCL-LSI + (1 − α)TFIDF, translated queries", (0.0331, 0.275, 0.212)),
            PaperRow("ssi-translated", "SSI trained on English, translated queries", (0.0172, 0.399, 0.325)),
            PaperRow("ssi", "SSI: W = UᵀV", (0.0096, 0.438, 0.351)),
            PaperRow("ssi+tfidf-translated", "αSSI + (1 − α)TFIDF, translated queries", (0.0075, 0.493, 0.377)),
            PaperRow("ssi+ssi-translated", "αSSI + (1 − α)SSI, translated queries", (0.0063, 0.524, 0.386)),
        ),
    ),
    "003 Table 10": PaperTable(
        title="Ranking English documents by links for Japanese ones, all words",
        data="Wikipedia JA–EN, 135,737 mates, 8.1 million links from Japanese to English pages",
        metrics=("rank_loss", "map", "p@10"),
        rows=(
            PaperRow("tfidf-google", "TFIDF, queries translated by Google", (0.0416, 0.346, 0.311)),
            PaperRow("tfidf-translated", "TFIDF, translated queries", (0.0421, 0.338, 0.280)),
            PaperRow("lsi+tfidf-translated", "αLSI + (1 − α)TFIDF, translated queries", (0.0324, 0.365, 0.309)),
            PaperRow("ssi-translated", "SSI trained on English, translated queries", (0.0153, 0.443, 0.367)),
            PaperRow("ssi+tfidf-translated", "αSSI + (1 − α)TFIDF, translated queries", (0.0078, 0.499, 0.380)),
            PaperRow("ssi+ssi-translated", "αSSI + (1 − α)SSI, translated queries", (0.0060, 0.527, 0.391)),
        ),
    ),
    "003 mate finding": PaperTable(
        title="Finding the page of the same subject (in the text of §4.3)",
        data="Wikipedia JA–EN, 135,737 mates",
        metrics=("rank_loss", "map", "p@10"),
        rows=(PaperRow("ssi", "SSI", (0.0053, None, None)), PaperRow("cl-lsi", "CL-LSI", (0.0081, None, None))),
    ),
    "003 Table 11": PaperTable(
        title="Content matching by clicks",
        data="proprietary web pages and adverts, 1.9 million pairs for training, 100,000 for testing",
        metrics=("rank_loss",),
        rows=(
            PaperRow("tfidf", "TFIDF", (0.4560,)),
            PaperRow("ssi-hash-1m", "SSI: Hash Kernels, 1M", (0.2615,)),
            PaperRow("ssi-hash-10m", "SSI: Hash Kernels, 10M", (0.2556,)),
            PaperRow("ssi-asym-10k", "SSI: W = (UᵀV)10k + I", (0.2583,), 50),
            PaperRow("ssi-asym-20k", "SSI: W = (UᵀV)20k + I", (0.2668,), 50),
            PaperRow("ssi-asym", "SSI: W = (UᵀV)30k + I", (0.2698,), 50),
        ),
    ),
    "004 Table 1": PaperTable(
        title="Similarity of queries and suggestions, by learned term weights",
        data="judged web queries, 4,852 pairs of 122 queries, 10 folds",
        metrics=("auc", "map", "p@3"),
        rows=(
            PaperRow("tfidf", "Web-kernel", (0.732, 0.540, 0.556)),
            PaperRow("tweak-sse", "Metric sse", (0.775, 0.590, 0.553)),
            PaperRow("tweak-log", "Metric log", (0.781, 0.585, 0.545)),
            PaperRow("tweak-pref", "Preference", (0.782, 0.597, 0.570)),
        ),
    ),
    "004 Table 2": PaperTable(
        title="Relevance of pages to queries, by learned term weights",
        data="judged landing pages of advertisements, 13,341 pairs, 10 folds",
        metrics=("auc", "tpr@0.1", "tpr@0.2"),
        rows=(
            PaperRow("tfidf", "TFIDF", (0.794, 0.527, 0.658)),
            PaperRow("tweak-tf-df", "TF&DF", (0.806, 0.430, 0.639)),
            PaperRow("tweak-plain", "Plain-text", (0.832, 0.503, 0.704)),
            PaperRow("tweak-html", "HTML", (0.855, 0.568, 0.750)),
        ),
    ),
}
"""Printed tables by the name that a record's `paper` field gives."""
