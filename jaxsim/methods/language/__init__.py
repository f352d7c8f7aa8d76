"""Language models and other scorers of sentences: n-grams, latent semantic analysis, and their combination.

They give scores to the choices of a sentence-completion question and encode no documents.

What they read (`jaxsim.data.corpora.sentences.Sentences`, made by `novels.build`, or by `sentences.build` from any
documents): ``tokens`` is a memory-mapped array ``[num_tokens]`` of int32 that holds sentence after sentence, each
``<s>`` (number 1) words ``</s>`` (number 2). Words have the numbers from 3 on, by descending count, so a model that
keeps words with at least ``min_count`` occurrences has the vocabulary ``0 <= number < sentences.size(min_count)``;
all others become ``<unk>`` (number 0): ``np.where(tokens < size, tokens, 0)``. Punctuation marks and numbers are
tokens. ``sentences.vocabulary[number]`` is the word, ``sentences.numbers[word]`` its number,
``sentences.counts[number]`` how often it occurs; ``sentences.head(num_tokens)`` is the start of the text, with the
same numbers.

What they score (`jaxsim.data.corpora.questions.Filled`, made by ``questions.encode(questions, sentences.numbers)``):
``tokens [num_questions, num_choices, width]`` int32, every choice filled in, with both marks, -1 after the end;
``lengths``, and ``chosen``, a mask of the tokens that the choice brought. Numbers of words below ``min_count`` are
still there: a model maps them to 0 by its own size, as above. Score sums over a sentence may differ in length between
choices of a question.

A method is ``fit(sentences, ..., key where it is random) -> Fit`` and ``scores(params, filled) -> [num_questions,
num_choices]`` float64, higher is better; minus infinity is legal, NaN is not. Language models also have
``log_probs(params, tokens) -> [num_tokens]`` (natural logarithm; 0 where the token is ``<s>``), of which
`ngram.perplexity` makes the usual figure.
"""

import lazy_loader

__all__ = ["combination", "documents", "log_bilinear", "lsa_lm", "lsa_recon", "lsa_totsim", "model_m", "ngram",
           "pmi_weighted", "pmi_window", "rnn_cells", "rnn_lm", "rnn_training", "word_classes"]
__getattr__, __dir__, _ = lazy_loader.attach(__name__, submodules=__all__)
