"""How a model is trained: `Settings`, whose fields are the options of ``jaxsim train`` as well.

Nothing large is loaded here: the command line reads this module to print its help.
"""

import dataclasses
import numbers
import types
import typing
from collections.abc import Iterator

from jaxsim import checks

S2NET = ("s2net", "s2net-2")
"""S2Net with one matrix for both sides, and with one a side."""
SSI = ("ssi", "ssi-sym")
"""Methods that learn W = UᵀV + b·I, or UᵀU + b·I."""
GRADED = ("s2net-mse", "s2net-pref")
"""Methods that learn from grades."""
TOPICS = ("jplsa", "cplsa", "plsa")
"""Topic models: of pairs, of coupled pairs, and of all texts."""
BARE = ("log-tfidf", "tfidf")
"""Bare term weights: nothing is learned but how often words occur."""
METHODS = (*S2NET, "opca", "cca", "cl-lsi", "lsa", *SSI, *GRADED, *TOPICS, *BARE)
LEARNED = tuple(method for method in METHODS if method not in BARE)
ITERATED = (*S2NET, *SSI, *GRADED, *TOPICS)
"""Methods that train in iterations and keep checkpoints."""
CLOSED = ("opca", "cca", "cl-lsi", "lsa")
"""Projections in closed form."""
WITH_SUBWORDS = (*S2NET, "opca", "cca", "lsa", *GRADED)
"""Methods that can learn from character n-grams beside words."""
TUNED = tuple(method for method in WITH_SUBWORDS if method not in GRADED)
"""Methods whose settings can be chosen by `tuning.tune`."""
DISTILLED = ("s2net", "opca", "lsa")
"""Methods of one linear projection for both sides, which can be distilled."""

STOPPED = (*S2NET, *SSI)
"""Methods that judged queries can stop; see `asks`."""

FEW = 20_000
"""With fewer training pairs words learn with their n-grams, unless ``subwords`` is given."""
SHARE = 0.5
"""The share of a word that its n-grams have then."""
WEIGHTINGS = ("log_tf_idf", "tf_idf", "tf")
STARTS = ("opca", "random")
ACTIVATIONS = ("none", "tanh", "sigmoid")
PRECISIONS = ("float32", "tf32", "bfloat16")


class Option(typing.NamedTuple):
    """What the command line knows of a setting beside its name, type and default.

    Attributes:
      help: what it means.
      methods: the methods that use it; with others the command line refuses it.
      least: smallest value.
      most: largest value.
      choices: legal names.
    """

    help: str = ""
    methods: tuple[str, ...] = METHODS
    least: float | None = None
    most: float | None = None
    choices: tuple[str, ...] = ()


def _setting(default, help: str, methods: tuple[str, ...] = METHODS, **limits):
    return dataclasses.field(default=default, metadata={"option": Option(help, methods, **limits)})


@dataclasses.dataclass(frozen=True)
class Settings:
    """How a model is trained. Every field says what it means, and is an option of ``jaxsim train`` too.

    Example:
      >>> Settings(method="opca", dim=100).max_terms
      50000
    """

    method: str = _setting("s2net", "How to learn.", choices=METHODS)
    dim: int = _setting(300, "Length of the vectors; shorter if the data does not support as much.", LEARNED, least=1)
    weighting: str = _setting(
        "log_tf_idf", "Term weights.", tuple(method for method in METHODS if method not in ("tfidf", *TOPICS)),
        choices=WEIGHTINGS)
    drop_top: int = _setting(0, "Number of most frequent terms to leave out.", least=0)
    max_terms: int = _setting(50_000, "Largest number of terms in the vocabulary.", least=1)
    min_df: int = _setting(
        2, "Smallest number of texts that a term must occur in (1 with fewer than 100 training pairs).", least=1)
    subwords: float | None = _setting(
        None, "Share of a word's weight that goes to its character n-grams: words with similar spelling learn "
        "together, and unseen words get vectors; 0 for none. Unless given, 0.5 with fewer than 20,000 pairs to train "
        "on, which can make training up to five times as long, and 0 with more, with --drop-top or --shard-terms, "
        "or for grades; --tune chooses.", WITH_SUBWORDS, least=0.0, most=0.99)
    distill: float = _setting(
        0.0, "After training, teach the vectors to reproduce a score that also counts the bare terms, so that they "
             "tell more words apart: the share of the terms in that score, such as 0.5. If held-out pairs (with "
             "--stop-by, judged queries) do not score better, the model stays as it was. Takes some minutes.",
        DISTILLED, least=0.0, most=0.99)
    max_iter: int | None = _setting(
        None, "Largest number of iterations, or epochs, of S2Net, SSI, methods of grades or topics; chosen by the "
        "number of pairs unless given.", ITERATED, least=1)
    patience: int | None = _setting(
        None, "Iterations, or epochs, without a better dev score before S2Net, SSI, methods of grades or topics stop; "
        "30 (10 in batches, 5 for SSI) unless given. Scores may dip before they rise.", ITERATED, least=1)
    noise: float = _setting(
        1e-4, "Noise of OPCA, also where S2Net starts from it; ridge of CCA.", (*S2NET, "opca", "cca"),
        least=0.0)
    start: str = _setting(
        "opca", "What S2Net starts from: the projection of OPCA, or random numbers, which take more iterations.", S2NET,
        choices=STARTS)
    gamma: float = _setting(
        10.0, "Scale of S2Net's loss: the larger, the more the nearest wrong texts count.",
        (*S2NET, "s2net-pref"), least=1e-6, most=1e6)
    beta: float = _setting(
        0.0, "Penalty on the distance of S2Net's projection from its start, without batches. Try a value above 0 if "
             "the model will be used on texts of another domain than the pairs.", S2NET, least=0.0)
    blend: bool = _setting(
        False, "After S2Net, try means of its start and its end, and keep the best one by the held-out pairs or, with "
        "--stop-by, judged queries.", S2NET)
    activation: str = _setting("none", "Function applied to S2Net's vectors.", S2NET, choices=ACTIVATIONS)
    batch_size: int | None = _setting(
        None, "Pairs in a batch of S2Net; 0 takes all pairs at once, exactly. Chosen by the number of pairs unless "
        "given.", S2NET, least=0)
    identity: float | None = _setting(
        None, "Weight b of the words themselves in SSI; unless given, held-out pairs (with --stop-by, judged "
        "queries) choose: 3, 10, 30, and beyond the best of them.", SSI, least=0.0, most=1e6)
    learning_rate: float | None = _setting(
        None, "Learning rate of SSI; unless given, held-out pairs (with --stop-by, judged queries) choose: .003, "
        ".01, .03, and beyond the best of them.", SSI, least=1e-6, most=1e3)
    seed: int = _setting(0, "Seed of everything random, and of the split.")
    all_negatives: bool = _setting(
        False, "Take near-duplicates as negatives of each other too, in S2Net and SSI; equal texts never are "
               "negatives.",
        (*S2NET, *SSI))
    precision: str | None = _setting(
        None, "Precision of the matrix products in S2Net's loss, with sums in float32; the device's default unless "
        "given.", S2NET, choices=PRECISIONS)
    devices: int | None = _setting(
        None, "Number of devices that share the pairs of S2Net without batches; all devices of this process unless "
              "given.",
        S2NET, least=1)
    shard_terms: bool = _setting(
        False, "The devices share the projection too, a row for each term: for vocabularies too large for one device.",
        S2NET)


class Field(typing.NamedTuple):
    """A field of `Settings`.

    Attributes:
      name: of the field.
      type: of its values, None left out.
      optional: whether None is legal.
      default: unless given.
      option: the rest.
    """

    name: str
    type: type
    optional: bool
    default: typing.Any
    option: Option


def fields(settings: type = Settings) -> Iterator[Field]:
    """The fields, in their order.

    Args:
      settings: a dataclass such as `Settings`.

    Yields:
      `Field`.

    Example:
      >>> [field.type for field in fields() if field.name in ("dim", "devices")]
      [<class 'int'>, <class 'int'>]
    """
    hints = typing.get_type_hints(settings)
    for field in dataclasses.fields(settings):
        hint = hints[field.name]
        kinds = typing.get_args(hint) if isinstance(hint, types.UnionType) else (hint,)
        kind = next(kind for kind in kinds if kind is not types.NoneType)
        yield Field(field.name, kind, types.NoneType in kinds, field.default, field.metadata.get("option", Option()))


def asks(settings: Settings) -> bool:
    """Whether judged queries can decide about anything in a training.

    Args:
      settings: of the training.

    Returns:
      True for `STOPPED`, and where what was learned is distilled.

    Example:
      >>> asks(Settings()), asks(Settings(method="opca")), asks(Settings(method="opca", distill=0.5))
      (True, False, True)
    """
    return settings.method in STOPPED or settings.distill > 0


def _check_value(field: Field, value: typing.Any) -> None:
    """Refuses a value that the option could not have; shares are looked at by `check`."""
    option = field.option
    if field.optional and value is None:
        return
    if option.choices:
        expected = f"{'None, or ' * field.optional}one of {', '.join(option.choices)}"
        checks.expect(value in option.choices, field.name, expected, value)
    elif field.type is bool:
        checks.expect(value in (True, False), field.name, "True or False", value)
    elif field.name == "seed":
        whole = isinstance(value, numbers.Integral) and -(2**63) <= value < 2**63
        checks.expect(whole, "seed", "a whole number of 64 bits", value)
    elif field.type is int:  # without iterations a training is its start
        checks.whole(value, field.name, 0, or_none=field.optional)
    elif field.name not in ("subwords", "distill"):  # what else they may be, the methods say
        fits = isinstance(value, numbers.Real) and 0 <= value < float("inf")
        checks.expect(fits, field.name, f"{'None, or ' * field.optional}a finite number of at least 0", value)


def check(settings: Settings) -> None:
    """Refuses settings that no training can have; what depends on the pairs is checked later.

    Args:
      settings: of a training.

    Raises:
      ValueError: naming the setting.

    Example:
      >>> check(Settings(method="opca", distill=0.5))
    """
    checks.kind(settings, "settings", Settings)
    for field in fields():
        _check_value(field, getattr(settings, field.name))
    checks.positive_int(settings.dim, "dim")
    for name in ("subwords", "distill"):
        share = getattr(settings, name)
        if name == "subwords" and share is None:  # by the number of pairs
            continue
        checks.expect(isinstance(share, numbers.Real) and 0 <= share < 1, name, "a share in [0, 1)", share)
    if settings.subwords:
        checks.expect(settings.method in WITH_SUBWORDS, "subwords", f"0, for {settings.method} (n-grams are for "
                      f"{', '.join(WITH_SUBWORDS)})", settings.subwords)
        checks.expect(settings.drop_top == 0, "drop_top", "0, if subwords are above 0 (n-grams would bring back the "
                      "words left out)", settings.drop_top)
    if settings.distill:
        checks.expect(settings.method in DISTILLED, "distill", f"0, for {settings.method} (it is for "
                      f"{', '.join(DISTILLED)})", settings.distill)
        checks.expect(settings.activation == "none", "activation", "none, with distill", settings.activation)
        checks.expect(not settings.shard_terms, "shard_terms", "False, with distill", settings.shard_terms)
    if settings.method in S2NET:
        checks.expect(not settings.beta or not settings.batch_size, "beta", "0, with batches", settings.beta)
        checks.expect(not settings.blend or settings.activation == "none", "blend", "False, with an activation", True)
        checks.expect(not settings.blend or not settings.shard_terms, "blend", "False, with shard_terms", True)
