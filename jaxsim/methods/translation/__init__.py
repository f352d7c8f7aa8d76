"""Word translation: tables Pr(word of one language | word of the other), and documents translated word by word (002).

`ibm1` and `hmm` learn a table from sentences and their translations, in both directions at once; `dictionary` makes one
of word pairs. `bitext` reads sentences, or the equal paragraphs of pages. `table` applies a table to documents, prints
the best translations of a word, and keeps tables on disk.
"""

from jaxsim.methods.translation import bitext, dictionary, hmm, ibm1, table
from jaxsim.methods.translation.bitext import Bitext
from jaxsim.methods.translation.table import Translation, encode, translate

__all__ = ["Bitext", "Translation", "bitext", "dictionary", "encode", "hmm", "ibm1", "table", "translate"]
