"""``train --tune``: the options that held-out pairs choose, kept beside the checkpoints."""

from __future__ import annotations

import contextlib
import json
from dataclasses import asdict, replace
from pathlib import Path

import typer

from jaxsim.cli import train_options
from jaxsim.cli.output import say

_FILE = "checkpoint.tuned.json"


def names(context: typer.Context, share: float | None) -> list[str]:
    """The settings to choose: those that are not given.

    Args:
      context: of the command.
      share: of the pairs that is held out; None where held-out pairs are given.

    Returns:
      Names of `tuning.CHOICES`, at least one.

    Raises:
      ValueError: where none is left, or no pairs are held out.
    """
    from jaxsim import checks, tuning

    checks.expect(share != 0, "--dev", "pairs to choose settings by, with --tune", "0")
    found = [name for name in tuning.CHOICES if not train_options.given(context, name)
             and not (name == "subwords" and context.params["drop_top"])]  # fmt: skip
    checks.expect(len(found) > 0, "--tune", "--min-df, or --subwords without --drop-top, left to choose", "none left")
    return found


def chosen(checkpoint: Path | None, pairs, settings, dev, names: list[str]) -> tuple:
    """The settings that held-out pairs choose; where the same was asked before an interruption, those chosen then.

    Args:
      checkpoint: folder of checkpoints, or None.
      pairs: `Pairs` to train on.
      settings: `Settings` as they are given.
      dev: held-out pairs, or their share.
      names: what to choose.

    Returns:
      ``(settings, tried)`` as `tuning.tune`.
    """
    from jaxsim import tuning

    asked = {**asdict(settings), "names": names, "pairs": pairs.sha256, "dev": getattr(dev, "sha256", dev)}
    if checkpoint is not None and kept(checkpoint):
        with contextlib.suppress(OSError, ValueError, KeyError, TypeError):
            found = json.loads((checkpoint / _FILE).read_text(encoding="utf-8"))
            if found["asked"] == asked:
                say("settings as they were chosen before")
                return replace(settings, **found["chosen"]), found["tried"]
    tuned, tried = tuning.tune(pairs, settings, dev=dev, names=names, say=say)
    if checkpoint is not None:
        told = {"asked": asked, "chosen": {name: getattr(tuned, name) for name in names}, "tried": tried}
        with contextlib.suppress(OSError):  # saves time and nothing else
            (checkpoint / _FILE).write_text(json.dumps(told), encoding="utf-8")
    return tuned, tried


def kept(checkpoint: Path) -> bool:
    """Whether a choice is kept in a folder of checkpoints.

    Args:
      checkpoint: the folder.

    Returns:
      Whether it is there.
    """
    return (checkpoint / _FILE).is_file()


def shown(tried: list[dict], settings: dict) -> str:
    """The chosen settings as a command line has them.

    Args:
      tried: as `tuning.tune` returns it, not empty.
      settings: of the training.

    Returns:
      Options and values.

    Example:
      >>> shown([{"min_df": 2, "subwords": 0.0, "mrr": 0.5}], {"min_df": 2, "subwords": 0.5})
      '--min-df 2 --subwords 0.5'
    """
    options = [name for name in tried[0] if name != "mrr"]
    return " ".join(f"--{name.replace('_', '-')} {settings[name]}" for name in options)
