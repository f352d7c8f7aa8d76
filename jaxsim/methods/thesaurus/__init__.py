"""Words and their opposites from thesauri: signed entries, look-up, polarity inducing LSA, S2Net for antonyms.

`signed.documents` turns thesauri into a signed matrix. `pilsa` and `s2net_antonym` fit projections of its columns;
`lookup` is the baseline without vectors. A `Space` holds words and vectors, and embeds words that the thesaurus lacks
by the rules of a `Lexicon` or, with `oov`, by their neighbours in a corpus. `Senses` gives a word a vector for each of
its entries. `mixture` adds cosines of several spaces.
"""

from jaxsim.methods.projections.projection import encode
from jaxsim.methods.thesaurus import lexicon, lookup, mixture, oov, pilsa, s2net_antonym, senses, signed, space
from jaxsim.methods.thesaurus.lexicon import Lexicon
from jaxsim.methods.thesaurus.senses import Senses
from jaxsim.methods.thesaurus.signed import Signed
from jaxsim.methods.thesaurus.space import Space

__all__ = ["Lexicon", "Senses", "Signed", "Space", "encode", "lexicon", "lookup", "mixture", "oov", "pilsa",
           "s2net_antonym", "senses", "signed", "space"]
