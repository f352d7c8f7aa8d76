"""Options of `train`: one for each field of `Settings`, and which methods use which option."""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable, Iterable
from enum import StrEnum
from typing import Annotated, Any

import typer

from jaxsim.cli.options import given
from jaxsim.train.settings import DISTILLED, ITERATED, LEARNED, METHODS, S2NET, STOPPED, TUNED, Field, Settings, fields


def choice(name: str, names: Iterable[str]) -> type[StrEnum]:
    """The type of an option that takes one of several names.

    Args:
      name: of the setting.
      names: the legal ones.

    Returns:
      An enumeration, as Typer wants it.

    Example:
      >>> [str(member) for member in choice("weighting", ["tf", "tf_idf"])]
      ['tf', 'tf_idf']
    """
    return StrEnum(name.title().replace("_", ""), {value.upper().replace("-", "_"): value for value in names})


def option_of(field: Field) -> inspect.Parameter:
    """The parameter of a command that sets a field of `Settings`.

    Args:
      field: of `settings.fields`.

    Returns:
      A parameter with the field's name, type, default, range and help.

    Example:
      >>> dim = next(field for field in fields() if field.name == "dim")
      >>> option_of(dim).default, option_of(dim).annotation.__metadata__[0].min
      (300, 1)
    """
    help, _, least, most, names = field.option
    kind: Any = choice(field.name, names) if names else field.type
    flag = (f"--{field.name.replace('_', '-')}",) if field.type is bool else ()  # without a --no-
    default = field.default if field.default is None or not names else kind(field.default)
    option = typer.Option(*flag, help=help, min=least, max=most, case_sensitive=False)
    annotation = Annotated[kind | None if field.optional else kind, option]
    return inspect.Parameter(field.name, inspect.Parameter.KEYWORD_ONLY, default=default, annotation=annotation)


def with_settings(command: Callable) -> Callable:
    """Gives a command an option for every field of `Settings`, in place of its parameter ``settings``.

    Args:
      command: function of a command, one of whose parameters is ``settings``.

    Returns:
      The function that Typer registers.
    """
    own = inspect.signature(command, eval_str=True).parameters.values()
    parameters = [option for parameter in own for option in
                  (map(option_of, fields()) if parameter.name == "settings" else [parameter])]

    @functools.wraps(command)
    def run(**values):
        given = {field.name: values.pop(field.name) for field in fields()}
        plain = {name: str(value) if isinstance(value, StrEnum) else value for name, value in given.items()}
        return command(settings=Settings(**plain), **values)

    run.__signature__ = inspect.Signature(
        [parameter.replace(kind=inspect.Parameter.KEYWORD_ONLY) for parameter in parameters])
    run.__annotations__ = {parameter.name: parameter.annotation for parameter in parameters}
    return run


USED_BY: dict[str, tuple[str, ...]] = {
    **{field.name: field.option.methods for field in fields() if field.option.methods != METHODS},
    "resume": ITERATED,
    "log": ITERATED,
    "tune": TUNED,
    "label_weights": S2NET,
    "stop_by": tuple(dict.fromkeys((*STOPPED, *DISTILLED))),
    "weights": LEARNED,
}
"""Option -> methods that use it; all methods use the others."""


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
                      f"a method that uses it ({listed(users)})", f"--method {method}")


def listed(names: tuple[str, ...]) -> str:
    """Names in a sentence; if most are among them, those that are not.

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
