"""The program around the commands: its options, exit statuses, and errors as one line."""

from __future__ import annotations

import functools
import os
import sys
import warnings
from collections.abc import Callable, Sequence
from typing import Annotated

import typer
from typer.core import TyperCommand, TyperGroup

from jaxsim.cli.output import called, flush, interruption, say, show

INTERRUPTED = 2
"""Exit status after Ctrl-C."""
_OTHERWISE = {"grades": "--label", "dev_grades": "--dev", "pair_weights": "--label-weights",
              "run": "--run-out"}  # arguments that options become besides
_INSTEAD = {"query": " (--queries takes a file of them)", "pairs": " (put the pairs into one file)",
            "documents": " (put the documents into one file)", "texts": " (put the texts into one file)"}
_WRITTEN = ("output", "run_out", "figure")
_TYPERS = 130  # of Typer itself, for a Ctrl-C before the command began


class _Interrupted(Exception):
    """Ctrl-C on its way through the library of commands, which would print a line and a status of its own."""


class _Commands(TyperGroup):
    def invoke(self, ctx):
        """Runs the command."""
        try:
            return super().invoke(ctx)
        except KeyboardInterrupt as error:
            raise _Interrupted(interruption(error)) from error


class _Once(TyperCommand):
    """A command that refuses a second file of data where it would take the place of the first one.

    Of settings, and of what is written, the last value counts, as usual, so that a script's can be overridden.
    """

    def parse_args(self, ctx, args):
        """Reads the words behind the command."""
        from jaxsim.checks import expect

        words = [*args]
        rest = super().parse_args(ctx, args)  # --help ends here
        given = [param for param in self.make_parser(ctx).parse_args(args=words)[2] if _is_data(param)]
        for param in dict.fromkeys(given):
            times = given.count(param)
            got = f"{'twice' if times == 2 else f'{times} times'}{_INSTEAD.get(param.name, '')}"
            expect(times == 1, param.opts[0], "once", f"it {got}")
        return rest


def _is_data(param) -> bool:
    """Whether an option names data that are read, and has one value."""
    one = getattr(param, "nargs", None) == 1 and not getattr(param, "multiple", False)
    names = "FILE" in (getattr(param, "metavar", None) or "") or param.name in ("query", "texts")
    return one and names and param.name not in _WRITTEN


class _App(typer.Typer):
    def command(self, name=None, *, cls=_Once, **options):
        """Adds a command."""
        return super().command(name, cls=cls, **options)


app = _App(cls=_Commands, add_completion=False, rich_markup_mode=None, pretty_exceptions_enable=False)


@app.callback(help="Learned text similarity: train a projection from pairs of documents and compare it with baselines.",
              epilog="`jaxsim COMMAND --help` says what a command reads and writes, with an example.")
def _options(
    debug: Annotated[bool, typer.Option("--debug", help="Show the traceback of an error.")] = False,
    version: Annotated[bool, typer.Option("--version", help="Print the version and stop.", is_eager=True)] = False,
) -> None:
    """Declares the options that `main` takes out before any command is looked at."""
    del debug, version


def main(arguments: Sequence[str] | None = None) -> int:
    """Runs one command.

    Args:
      arguments: Words after the program's name; those of this process if None.

    Returns:
      The exit status: 0, 1 where a check found a difference, 2 for bad input and after Ctrl-C, 141 if nobody reads
      stdout any more (`| head`).

    Raises:
      Exception: whatever went wrong, with `--debug`, and errors that are not about the input.

    Example:
      >>> main(["demo", "--k", "0"])  # stderr: jaxsim: Invalid value for '--k': ...
      2
    """
    words = list(sys.argv[1:] if arguments is None else arguments)
    debug = "--debug" in words
    words = [word for word in words if word != "--debug"]
    try:
        status = _version() if words[:1] == ["--version"] else _commands().main(
            args=words or ["--help"], prog_name="jaxsim", standalone_mode=False)
        status = status if isinstance(status, int) else 0
        flush()
    except typer.Exit as error:
        status = error.exit_code
    except _Interrupted as error:
        say(str(error))
        return INTERRUPTED
    except (KeyboardInterrupt, typer.Abort):
        status = _TYPERS
    except Exception as error:
        interrupt, message = _interrupt(error), _message(error) or _of_the_machine(error, words)
        if message is not None and isinstance(error, ValueError | OSError):
            message = called(message, _options_of(words))
        if message is not None and hasattr(error, "param"):
            given = _given(error.param, words)
            message += f", got {given}" if given and repr(given) not in message else ""
        if debug or (message is None and interrupt is None):
            raise
        say(f"jaxsim: {message}" if interrupt is None else interruption(interrupt))
        return 2
    if status == _TYPERS:
        say(interruption(KeyboardInterrupt()))
        return INTERRUPTED
    return status


def entry(leave: Callable[[int], object] = os._exit) -> None:
    """Runs the command of this process and ends it with the command's status.

    Args:
      leave: ends it at once, with a status or with a better one.
    """
    for name in ("stdout", "stderr"):
        if getattr(sys, name) is None:  # closed by the caller
            setattr(sys, name, open(os.devnull, "w"))
        getattr(sys, name).reconfigure(errors="backslashreplace")
    warnings.formatwarning = _warning
    status = main()
    try:
        sys.stdout.flush()
    except OSError:  # told already; what is left in the buffer would fail again at exit
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
    if status == INTERRUPTED:  # or bad input, told already. After Ctrl-C Python may end with SIGINT's status
        if pools := sys.modules.get("multiprocessing.util"):
            pools._run_finalizers(0)  # what a pool of workers left would be told of after the message
        leave(status)
    sys.exit(status)


@functools.cache
def _commands() -> TyperGroup:
    """The commands with their options, made once a process, of which it is a noticeable part."""
    return typer.main.get_command(app)


def _warning(message, category, filename, lineno, line=None) -> str:
    """A warning as a line, without the place in the program that it came from."""
    return f"jaxsim: {' '.join(str(message).split())}\n"


def _options_of(words: Sequence[str]) -> dict[str, str]:
    """Options of the command, by the argument of the library that each becomes."""
    commands = _commands().commands
    command = next((commands[word] for word in words if word in commands), None)
    found = {one.name: one.opts[0] for one in getattr(command, "params", ()) if one.opts[0].startswith("--")}
    found |= {argument: option for argument, option in _OTHERWISE.items() if option in found.values()}
    values = {word.split("=")[-1] for word in words}  # a file may be called as an argument is
    return {argument: option for argument, option in found.items() if argument not in values}


def _given(param, words: Sequence[str]) -> str:
    """What came for an option, which Typer does not say of a number out of its range; nothing if it was not given."""
    for option in getattr(param, "opts", ()):
        for word, following in zip(words, [*words[1:], ""], strict=True):
            if word == option or word.startswith(f"{option}="):
                return following if word == option else word.partition("=")[2]
    return ""


def _interrupt(error: BaseException | None) -> KeyboardInterrupt | None:
    """The Ctrl-C of which a library made an error of its own, or in whose course this one came; None for none."""
    while error is not None and not isinstance(error, KeyboardInterrupt):
        error = error.__cause__ or error.__context__
    return error


def _version() -> None:
    from jaxsim import __version__

    show(__version__)


def _of_the_machine(error: Exception, words: Sequence[str]) -> str | None:
    """One line about what this machine lacks: memory, or the platform that JAX is told to use."""
    reason = " ".join(str(error).split())[:200]
    if isinstance(error, MemoryError) or "RESOURCE_EXHAUSTED" in reason:
        return f"{' '.join(words)}: expected enough memory, got none ({reason or 'out of memory'})"
    platforms = os.environ.get("JAX_PLATFORMS") or os.environ.get("JAX_PLATFORM_NAME")
    if platforms and isinstance(error, RuntimeError) and "backend" in reason.lower():
        return f"JAX_PLATFORMS: expected platforms that are there, such as cpu, got {platforms} ({reason})"
    return None


def _message(error: Exception) -> str | None:
    """One line about an error that the input caused; None for any other, which is a fault of ours."""
    if hasattr(error, "format_message"):
        text = error.format_message().replace(": Value error, ", ": ")
    elif isinstance(error, OSError) and error.filename is not None and error.strerror is not None:
        text = f"{error.filename or repr(error.filename)}: {error.strerror}"
    elif isinstance(error, ValueError | OSError | ImportError | ArithmeticError):
        text = str(error)
    else:
        return None
    return " ".join(text.split())
