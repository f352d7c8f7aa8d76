"""Direct look-up of antonyms, the first baseline of PILSA (§7.3, Table 6): no vectors.

Two words are opposite if some entry has one on its positive and the other on its negative side. A question's choices
then have score -1 or 0, so that ties are common; an answer among n tied choices is worth 1/n, what guessing earns on
average.
"""

from __future__ import annotations

import numpy as np

from jaxsim.methods.thesaurus.signed import Signed


def opposite(signed: Signed, left: np.ndarray, right: np.ndarray) -> np.ndarray:
    """Whether entries oppose pairs of words.

    Args:
      signed: the entries.
      left: ``[n]`` columns.
      right: ``[n]`` columns.

    Returns:
      ``[n]`` booleans.

    Example:
      >>> from jaxsim.data.corpora import thesauri
      >>> from jaxsim.methods.thesaurus.signed import documents
      >>> signed = documents([thesauri.thesaurus("mine", [("hot", ["warm"], ["cold"])])])
      >>> opposite(signed, np.array([0, 0]), np.array([1, 2])).tolist()
      [False, True]
    """
    columns = signed.tf.T.tocsr()
    return np.asarray((columns[left].multiply(columns[right]) < 0).sum(axis=1)).ravel() > 0
