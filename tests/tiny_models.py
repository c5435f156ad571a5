"""Tiny transformers with random weights and trained tokenizers, saved as Hugging Face saves real ones."""

from collections.abc import Callable
from pathlib import Path

import torch
import transformers
from tokenizers import Tokenizer, decoders, models, normalizers, pre_tokenizers, processors, trainers

_SIZE = {"hidden_size": 48, "num_hidden_layers": 3, "num_attention_heads": 4, "intermediate_size": 96}
_GPT_SIZE = {"n_embd": 48, "n_layer": 3, "n_head": 4}


def build_bert(directory: Path, texts: list[str]) -> None:
    """Cased BERT: WordPiece, [CLS] and [SEP]."""
    tokenizer = Tokenizer(models.WordPiece(unk_token="[UNK]"))
    tokenizer.normalizer = normalizers.BertNormalizer(lowercase=False)
    tokenizer.pre_tokenizer = pre_tokenizers.BertPreTokenizer()
    special = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]"]
    tokenizer.train_from_iterator(texts, trainers.WordPieceTrainer(vocab_size=400, special_tokens=special))
    tokenizer.post_processor = processors.TemplateProcessing(
        single="[CLS] $A [SEP]", special_tokens=[("[CLS]", 2), ("[SEP]", 3)]
    )
    fast = transformers.PreTrainedTokenizerFast(
        tokenizer_object=tokenizer,
        unk_token="[UNK]",
        pad_token="[PAD]",
        cls_token="[CLS]",
        sep_token="[SEP]",
        model_max_length=512,
    )
    config = transformers.BertConfig(vocab_size=len(fast), max_position_embeddings=512, initializer_range=0.2, **_SIZE)
    _save(directory, fast, lambda: transformers.BertModel(config))


def build_gpt(directory: Path, texts: list[str]) -> None:
    """GPT (2018): lower-cased BPE that marks word ends; neither padding nor special tokens."""
    tokenizer = Tokenizer(models.BPE(unk_token="<unk>", end_of_word_suffix="</w>"))
    tokenizer.normalizer = normalizers.BertNormalizer(lowercase=True)
    tokenizer.pre_tokenizer = pre_tokenizers.BertPreTokenizer()
    trainer = trainers.BpeTrainer(vocab_size=400, special_tokens=["<unk>"], end_of_word_suffix="</w>")
    tokenizer.train_from_iterator(texts, trainer)
    fast = transformers.PreTrainedTokenizerFast(tokenizer_object=tokenizer, unk_token="<unk>", model_max_length=512)
    config = transformers.OpenAIGPTConfig(vocab_size=len(fast), n_positions=512, initializer_range=0.2, **_GPT_SIZE)
    _save(directory, fast, lambda: transformers.OpenAIGPTModel(config))


def build_gpt2(directory: Path, texts: list[str]) -> None:
    """GPT-2: byte-level BPE whose tokens begin with the space before them; no padding token."""
    tokenizer = Tokenizer(models.BPE())
    tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    tokenizer.decoder = decoders.ByteLevel()
    tokenizer.post_processor = processors.ByteLevel(trim_offsets=False)
    alphabet = pre_tokenizers.ByteLevel.alphabet()
    trainer = trainers.BpeTrainer(vocab_size=500, special_tokens=["<|endoftext|>"], initial_alphabet=alphabet)
    tokenizer.train_from_iterator(texts, trainer)
    fast = transformers.PreTrainedTokenizerFast(
        tokenizer_object=tokenizer, bos_token="<|endoftext|>", eos_token="<|endoftext|>", model_max_length=512
    )
    config = transformers.GPT2Config(vocab_size=len(fast), n_positions=512, initializer_range=0.2, **_GPT_SIZE)
    _save(directory, fast, lambda: transformers.GPT2Model(config))


def build_llama(directory: Path, texts: list[str]) -> None:
    """Llama: sentencepiece-like BPE, <s> before every text, and a tokenizer that wants to pad on the left."""
    tokenizer = Tokenizer(models.BPE(unk_token="<unk>"))
    tokenizer.pre_tokenizer = pre_tokenizers.Metaspace(prepend_scheme="first")
    trainer = trainers.BpeTrainer(vocab_size=400, special_tokens=["<unk>", "<s>", "</s>"])
    tokenizer.train_from_iterator(texts, trainer)
    tokenizer.post_processor = processors.TemplateProcessing(single="<s> $A", special_tokens=[("<s>", 1)])
    fast = transformers.PreTrainedTokenizerFast(
        tokenizer_object=tokenizer,
        unk_token="<unk>",
        bos_token="<s>",
        eos_token="</s>",
        pad_token="</s>",
        padding_side="left",
        model_max_length=512,
    )
    config = transformers.LlamaConfig(
        vocab_size=len(fast), max_position_embeddings=512, initializer_range=0.2, num_key_value_heads=2, **_SIZE
    )
    _save(directory, fast, lambda: transformers.LlamaModel(config))


BUILDERS: dict[str, Callable[[Path, list[str]], None]] = {
    "bert": build_bert,
    "gpt": build_gpt,
    "gpt2": build_gpt2,
    "llama": build_llama,
}


def _save(
    directory: Path, tokenizer: transformers.PreTrainedTokenizerFast, build: Callable[[], torch.nn.Module]
) -> None:
    torch.manual_seed(0)  # before the weights are drawn: a model draws them as it is made, and not again
    tokenizer.save_pretrained(directory)
    build().save_pretrained(directory)
