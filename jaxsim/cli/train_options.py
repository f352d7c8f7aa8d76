"""Which methods use which options of `train`."""

from __future__ import annotations

import typer

METHODS = ("s2net", "s2net-2", "opca", "cca", "cl-lsi", "lsa", "ssi", "ssi-sym", "s2net-mse", "log-tfidf", "tfidf")
S2NET, SSI, BARE = ("s2net", "s2net-2"), ("ssi", "ssi-sym"), ("log-tfidf", "tfidf")
SPELT = (*S2NET, "opca", "cca", "lsa", "s2net-mse")
DISTILLED = ("s2net", "opca", "lsa")
TUNED = (*S2NET, "opca", "cca", "lsa")
ITERATED = (*S2NET, *SSI, "s2net-mse")
"""These keep checkpoints."""

USED_BY: dict[str, tuple[str, ...]] = {
    "dim": tuple(method for method in METHODS if method not in BARE),
    "weighting": tuple(method for method in METHODS if method != "tfidf"),
    **dict.fromkeys(("max_iter", "patience", "resume"), ITERATED),
    "all_negatives": (*S2NET, *SSI),
    **dict.fromkeys(("gamma", "batch_size", "precision", "devices", "shard_terms"), S2NET),
    **dict.fromkeys(("identity", "learning_rate"), SSI),
    "subwords": SPELT,
    "distill": DISTILLED,
    "tune": TUNED,
}
"""Option -> methods that use it; options that are not here all methods use."""


def given(context: typer.Context, name: str) -> bool:
    """Whether an option stands on the command line.

    Args:
      context: of the command.
      name: of the option's parameter.

    Returns:
      False where it has its default.
    """
    source = context.get_parameter_source(name)
    return source is not None and source.name not in ("DEFAULT", "DEFAULT_MAP")


def expect_used(context: typer.Context, method: str) -> None:
    """Refuses options that were given and that the method does not use.

    Args:
      context: of the command.
      method: name of the method.

    Raises:
      ValueError: naming the option and the methods that use it.
    """
    from jaxsim import checks

    for option in context.command.params:
        users = USED_BY.get(option.name, METHODS)
        checks.expect(method in users or not given(context, option.name), option.opts[0],
                      f"nothing, with --method {method} (it is for {listed(users)})",
                      "it" if option.is_flag else context.params[option.name])


def listed(names: tuple[str, ...]) -> str:
    """Names in a sentence; of many, those that are not among them.

    Args:
      names: of methods, at least one.

    Returns:
      A few words.

    Example:
      >>> listed(("s2net", "ssi")), listed(METHODS[:-1])
      ('s2net and ssi', 'all but tfidf')
    """
    others = tuple(method for method in METHODS if method not in names)
    if 0 < len(others) < len(METHODS) / 3:
        return f"all but {listed(others)}"
    return " and ".join(filter(None, [", ".join(names[:-1]), names[-1]]))
