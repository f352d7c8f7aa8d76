"""sentence-transformers' StaticEmbedding trained from scratch, in the plainest loop that its parts allow.

The tokenizer is trained on the training texts too (WordPiece, as BERT's), texts are tokenised once and not once an
epoch, a token that stands in a text several times is looked up once, Adam's step is PyTorch's fused one, which is
several times as fast on large tables of tokens, and the dev score is not counted in the seconds: each makes the peer
faster than its own trainer would be. The tokenizer's training breaks ties by chance: two processes differ by some
thousandths.
"""

from __future__ import annotations

import inspect
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import torch
from sentence_transformers import SentenceTransformer
from sentence_transformers.losses import MultipleNegativesRankingLoss
from sentence_transformers.models import StaticEmbedding
from tokenizers import Tokenizer, decoders, models, normalizers, pre_tokenizers, trainers

_WORDS = 30_000
Text = tuple[np.ndarray, np.ndarray]  # of Tokens


@dataclass(eq=False)
class Static:
    """A trained StaticEmbedding.

    Attributes:
      model: the SentenceTransformer.
      vocabulary: number of tokens.
      seconds: of training from raw texts, evaluation not counted.
      curve: ``(seconds, dev score)`` after every epoch.
    """

    model: SentenceTransformer
    vocabulary: int
    seconds: float
    curve: list[tuple[float, float]]

    def embed(self, rows: Sequence[Text]) -> np.ndarray:
        """``[n, k]`` float32 of texts that are tokens already (`Tokens.of`)."""
        with torch.no_grad():
            return self.model(_bag(rows))["sentence_embedding"].numpy()

    def encode(self, texts: Sequence[str]) -> np.ndarray:
        """``[n, k]`` float32."""
        return self.model.encode(list(texts), batch_size=1024, show_progress_bar=False, convert_to_numpy=True)

    def save(self, path: Path) -> None:
        """Writes the folder."""
        self.model.save(str(path), create_model_card=False)


@dataclass(eq=False)
class Tokens:
    """Training texts as tokens, for trainings that differ in their settings alone.

    Attributes:
      tokenizer: WordPiece, trained on these texts.
      sides: the left and the right texts: numbers of their tokens, each once, and the share of the text that each is.
      seconds: that this took.
    """

    tokenizer: Tokenizer
    sides: tuple[list[Text], list[Text]]
    seconds: float

    def of(self, texts: Sequence[str]) -> list[Text]:
        """Tokens of other texts."""
        return _tokens(self.tokenizer, texts)


def tokens(left: Sequence[str], right: Sequence[str]) -> Tokens:
    """Trains the tokenizer and takes the texts apart.

    Args:
      left: ``m`` queries.
      right: their documents.

    Returns:
      `Tokens`.
    """
    begun = time.perf_counter()
    tokenizer = _tokenizer([*left, *right])
    sides = _tokens(tokenizer, left), _tokens(tokenizer, right)
    return Tokens(tokenizer, sides, time.perf_counter() - begun)


def _tokenizer(texts: Sequence[str]) -> Tokenizer:
    tokenizer = Tokenizer(models.WordPiece(unk_token="[UNK]"))
    tokenizer.normalizer = normalizers.BertNormalizer(lowercase=True)
    tokenizer.pre_tokenizer = pre_tokenizers.BertPreTokenizer()
    tokenizer.decoder = decoders.WordPiece()
    tokenizer.train_from_iterator(texts, trainers.WordPieceTrainer(
        vocab_size=_WORDS, special_tokens=["[PAD]", "[UNK]"], show_progress=False))
    return tokenizer


def _tokens(tokenizer: Tokenizer, texts: Sequence[str]) -> list[Text]:
    every = tokenizer.encode_batch(list(texts), add_special_tokens=False)
    counted = (np.unique(np.array(one.ids, np.int64), return_counts=True) for one in every)
    return [(ids, (counts / max(counts.sum(), 1)).astype(np.float32)) for ids, counts in counted]


def _bag(rows: Sequence[Text]) -> dict[str, torch.Tensor]:
    """Features of a batch, for `_mean_of_tokens`."""
    ids, shares = ([np.zeros(0, kind), *part] for kind, part in
                   zip((np.int64, np.float32), zip(*rows, strict=True), strict=True))
    ends = np.cumsum([0, *map(len, ids[1:])])[:-1]
    return {"input_ids": torch.from_numpy(np.concatenate(ids)), "offsets": torch.from_numpy(ends),
            "shares": torch.from_numpy(np.concatenate(shares))}


def _mean_of_tokens(static: StaticEmbedding) -> None:
    """Lets it take features of `_bag` too, where a token stands once, with its share of the text."""
    of_tokens = static.forward

    def forward(features: dict, **named):
        if "shares" not in features:
            return of_tokens(features, **named)
        features["sentence_embedding"] = torch.nn.functional.embedding_bag(
            features["input_ids"], static.embedding.weight, features["offsets"], mode="sum",
            per_sample_weights=features["shares"])
        return features

    static.forward = forward


def train(given: Tokens, *, k: int, rate: float, batch_size: int, epochs: int,
          patience: int, both_ways: bool, validate: Callable[[Static], float], scale: float = 20.0,
          warm_up: float | None = None, seed: int = 0) -> Static:
    """Trains by Adam with a rate that rises linearly at first, and keeps the epoch that dev likes best.

    Args:
      given: ``m`` pairs.
      k: dimension.
      rate: learning rate.
      batch_size: pairs a batch; a last, smaller one is left out, as it has fewer negatives.
      epochs: at most.
      patience: epochs without a better dev score.
      both_ways: whether documents choose among queries too.
      validate: dev score.
      scale: of the cosines in the loss.
      warm_up: epochs until the rate is reached; a tenth of ``epochs`` unless given.
      seed: of the first vectors and of the order of the pairs.

    Returns:
      `Static`.
    """
    torch.manual_seed(seed)
    begun = time.perf_counter()
    model = SentenceTransformer(modules=[StaticEmbedding(given.tokenizer, embedding_dim=k)], device="cpu")
    _mean_of_tokens(model[0])
    ways = {}
    if both_ways and "directions" in inspect.signature(MultipleNegativesRankingLoss).parameters:
        ways = {"directions": ("query_to_doc", "doc_to_query"), "partition_mode": "per_direction"}
    loss = MultipleNegativesRankingLoss(model, scale=scale, **ways)
    optimizer = torch.optim.Adam(model.parameters(), lr=rate, fused=True)
    number = len(given.sides[0])
    batch_size = min(batch_size, number)
    warm = max(1, round((epochs / 10 if warm_up is None else warm_up) * (number // batch_size)))
    schedule = torch.optim.lr_scheduler.LambdaLR(optimizer, lambda step: min(1.0, (step + 1) / warm))
    order = np.random.default_rng(seed)
    found = Static(model, given.tokenizer.get_vocab_size(), 0.0, [])
    best, kept, since = -1.0, None, 0
    seconds = given.seconds + time.perf_counter() - begun
    for _ in range(epochs):
        begun = time.perf_counter()
        rows = order.permutation(number)
        model.train()
        for start in range(0, len(rows) - batch_size + 1, batch_size):
            chosen = rows[start : start + batch_size]
            optimizer.zero_grad()
            loss([_bag([side[i] for i in chosen]) for side in given.sides], None).backward()
            optimizer.step()
            schedule.step()
        model.eval()
        seconds += time.perf_counter() - begun
        score = validate(found)
        found.curve.append((seconds, score))
        since = 0 if score > best else since + 1
        if score > best:
            best, kept = score, {name: value.clone() for name, value in model.state_dict().items()}
        if since >= patience:
            break
    model.load_state_dict(kept)
    found.seconds = seconds
    return found
