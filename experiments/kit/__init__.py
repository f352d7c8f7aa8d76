"""What every experiment shares; it knows no row, no paper and no corpus.

A script describes one experiment with `Experiment`, one `Plan` a table and one function a row, and calls `run`. The kit
loops over tables and rows, keeps fits in a cache, writes records and judges the paper's claims. All else stands in the
script: `experiments/mates/platt2010.py` is the one to read first.

In the order in which a script meets them:

- `Data`: what ``load(table, settings)`` returns: anything the rows need, and what the record says of the data.
- `Table`: what a row function gets: ``table.data``, ``table.settings``, ``table.fit(method)(...)``, ``table.once``.
- `choose`: the best of a grid on development data, with everything that was tried; `climb`: the best of its neighbours.
- `up_to_rank`: the dimensions of a grid that the data are large enough for.
- `Row`: what a row function returns: test values and the configuration that development data chose.
- `compared`: that the report is to compare two rows of the table, and what was expected.
- `Claim`: a sentence of the paper as data, judged from the records by the report.
- `Plan`, `Experiment`, `run`: the tables with their presets, and the command line.

`records` reads and writes records, `report` makes BENCHMARKS.md and `compare` shows how two folders of records differ.
"""

import lazy_loader

from experiments.kit.choose import Choice, choose, climb, up_to_rank
from experiments.kit.fits import Fits
from experiments.kit.judge import Claim, above_over_folds
from experiments.kit.run import RESULTS, Experiment, Plan, run
from experiments.kit.table import Data, Row, Table, compared, say

_MODULES = ["compare", "environment", "papers", "record_schema", "records", "report"]
__all__ = ["RESULTS", "Choice", "Claim", "Data", "Experiment", "Fits", "Plan", "Row", "Table", "above_over_folds",
           "choose", "climb", "compared", "run", "say", "up_to_rank", *_MODULES]
__getattr__, __dir__, _ = lazy_loader.attach(__name__, submodules=_MODULES)
