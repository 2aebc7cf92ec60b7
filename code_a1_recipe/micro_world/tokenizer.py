"""Two tokenizers that differ in their pieces, in the size of their vocabulary and in their method.

The Code LLM's tokenizer is a byte-level BPE model, and its tokens are words. The number of merges is as large as the
corpus allows. The Test LLM's tokenizer is a Unigram model over an explicit list of pieces, and its tokens are phrases
(sequences of words). Both tokenizers fall back to single bytes, so any text survives encoding and decoding. In both
tokenizers, a signed integer is one token.
"""

from collections import Counter
from collections.abc import Iterable
from typing import Literal

from tokenizers import Regex, Tokenizer, decoders, models, pre_tokenizers, trainers  # type: ignore[import-untyped]
from transformers import PreTrainedTokenizerFast

Role = Literal["code", "test", "both"]

PAD, END, USER, MODEL = "<|pad|>", "<|end|>", "<|user|>", "<|model|>"
_SPECIALS = [PAD, END, USER, MODEL]

_INTEGERS = r"-?\d+"
_STARTS = r"\n?assert (?:f|run)\(|def f\("
_REST = r"\n *| ?[^\sA-Za-z0-9\n-]+ ?| ?- ?"
_WORDS = rf"{_STARTS}|{_INTEGERS}|[xvw]\b| ?[A-Za-z]+:? ?|{_REST}"
_PHRASES = rf"{_STARTS}|\"?[)\]]* == \"?|{_INTEGERS}| ?[A-Za-z]+(?: [A-Za-z]+)*:? ?|{_REST}"

# Upper limit of the BPE vocabulary. The corpus runs out of pairs to merge before the vocabulary is that large.
_MAX_BPE_ENTRIES = 640
# Log-probabilities of the Unigram model. Only their order matters: one piece is better than two, and single bytes come
# last.
_PIECE_SCORE, _BYTE_SCORE = -1.0, -10.0
# A piece that is less frequent in the corpus gets no token, and is encoded as smaller pieces.
_MIN_PIECE_COUNT = 3

# Integers that have a token of their own. Arithmetic on the narrow world's inputs gives no other integers.
_KNOWN_INTEGERS = range(-40, 61)

# The template has no whitespace between the tags, because whitespace would become part of the prompt.
_CHAT_TEMPLATE = (
    "{% for message in messages %}"
    f"{{% if message['role'] == 'assistant' %}}{MODEL}{{{{ message['content'] }}}}{END}"
    f"{{% else %}}{USER}{{{{ message['content'] }}}}{{% endif %}}"
    "{% endfor %}"
    f"{{% if add_generation_prompt %}}{MODEL}{{% endif %}}"
)


def build_tokenizer(role: Role, corpus: Iterable[str], *, max_length: int) -> PreTrainedTokenizerFast:
    """Build a policy's tokenizer from texts that resemble its prompts and responses.

    The result depends only on the corpus, not on the process, the machine or the number of threads.

    Args:
        role: decides the pieces and the method. "both" gets the pieces and the method of "test".
        corpus: prompts and responses, without chat markup.
        max_length: longest sequence of the model, in tokens. ``max_length`` is only written into the tokenizer's files.
    """
    texts = [*corpus, *[f"f({i})" for i in _KNOWN_INTEGERS for _ in range(_MIN_PIECE_COUNT)]]
    build, pieces = (_build_bpe, _WORDS) if role == "code" else (_build_unigram, _PHRASES)
    split = pre_tokenizers.Sequence(
        [
            pre_tokenizers.Split(Regex(pieces), "isolated"),
            pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=False),
        ]
    )
    tokenizer = build(texts, split)
    tokenizer.pre_tokenizer = split
    tokenizer.decoder = decoders.ByteLevel()
    wrapped = PreTrainedTokenizerFast(  # type: ignore[no-untyped-call]
        tokenizer_object=tokenizer,
        pad_token=PAD,
        eos_token=END,
        additional_special_tokens=[USER, MODEL],
        clean_up_tokenization_spaces=False,
        model_max_length=max_length,
        padding_side="left",
    )
    wrapped.chat_template = _CHAT_TEMPLATE
    return wrapped


def _build_bpe(texts: list[str], split: pre_tokenizers.PreTokenizer) -> Tokenizer:
    tokenizer = Tokenizer(models.BPE())
    tokenizer.pre_tokenizer = split
    trainer = trainers.BpeTrainer(
        vocab_size=_MAX_BPE_ENTRIES,
        min_frequency=_MIN_PIECE_COUNT,
        special_tokens=_SPECIALS,
        initial_alphabet=pre_tokenizers.ByteLevel.alphabet(),
        show_progress=False,
    )
    tokenizer.train_from_iterator(texts, trainer)
    return tokenizer


def _build_unigram(texts: list[str], split: pre_tokenizers.PreTokenizer) -> Tokenizer:
    counts = Counter(piece for text in texts for piece, _span in split.pre_tokenize_str(text))
    alphabet = sorted(pre_tokenizers.ByteLevel.alphabet())
    pieces = sorted(piece for piece, count in counts.items() if count >= _MIN_PIECE_COUNT and len(piece) > 1)
    vocabulary = [
        *((special, 0.0) for special in _SPECIALS),
        *((byte, _BYTE_SCORE) for byte in alphabet),
        *((piece, _PIECE_SCORE) for piece in pieces),
    ]
    # unk_id is required but never used, since every byte is in the alphabet.
    tokenizer = Tokenizer(models.Unigram(vocabulary, unk_id=0, byte_fallback=False))
    tokenizer.add_special_tokens(_SPECIALS)
    return tokenizer
