"""sentence-transformers: one vector for a text."""

# SPDX-License-Identifier: Apache-2.0

import tempfile

import torch
import transformers
from sentence_transformers import SentenceTransformer, losses, models, util
from tokenizers import Tokenizer, pre_tokenizers
from tokenizers import models as token_models
from uses import main, settle, use

WORDS = "[PAD] [UNK] [CLS] [SEP] [MASK] a red small house stands on the hill".split()


def make(folder):
    tokens = Tokenizer(token_models.WordLevel({w: i for i, w in enumerate(WORDS)}, "[UNK]"))
    tokens.pre_tokenizer = pre_tokenizers.Whitespace()
    transformers.BertTokenizerFast(tokenizer_object=tokens).save_pretrained(folder)
    config = transformers.BertConfig(
        vocab_size=len(WORDS),
        hidden_size=32,
        num_hidden_layers=1,
        num_attention_heads=4,
        intermediate_size=64,
        hidden_dropout_prob=0.0,
        attention_probs_dropout_prob=0.0,
    )
    settle(transformers.BertModel(config)).save_pretrained(folder)
    words = models.Transformer(folder)
    pooling = models.Pooling(words.get_word_embedding_dimension(), "mean")
    return SentenceTransformer(modules=[words, pooling, models.Normalize()], device="cpu")


@use("encode, similarity, search")
def encode():
    with tempfile.TemporaryDirectory() as folder:
        model = make(folder)
        texts = ["a red house", "the small hill", "a house stands on the hill"]
        found = model.encode(texts, convert_to_tensor=True)
        hits = util.semantic_search(found[:1], found, top_k=2)
        return [found, model.similarity(found, found), [h["corpus_id"] for h in hits[0]]]


@use("losses, save and load")
def training():
    with tempfile.TemporaryDirectory() as folder:
        model = make(folder)
        features = [model.tokenize(["a red house", "the hill"]) for _ in range(2)]
        loss = losses.MultipleNegativesRankingLoss(model)(features, torch.zeros(2))
        loss.backward()
        cosine = losses.CosineSimilarityLoss(model)(features, torch.tensor([1.0, 0.5]))
        model.save(folder + "/saved")
        again = SentenceTransformer(folder + "/saved", device="cpu")
        return [loss, cosine, again.encode(["a red house"])]


if __name__ == "__main__":
    main("sentence-transformers")
