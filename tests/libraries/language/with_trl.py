"""trl: language models learn from examples and preferences."""

# SPDX-License-Identifier: Apache-2.0

import copy
import tempfile

import transformers
from datasets import Dataset
from tokenizers import Tokenizer, models, pre_tokenizers
from trl import DPOConfig, DPOTrainer, RewardConfig, RewardTrainer, SFTConfig, SFTTrainer
from uses import main, settle, use

WORDS = "<pad> <eos> <unk> what is red blue good bad the sky rose house answer".split()


def tokenizer():
    made = Tokenizer(models.WordLevel({w: i for i, w in enumerate(WORDS)}, "<unk>"))
    made.pre_tokenizer = pre_tokenizers.Whitespace()
    return transformers.PreTrainedTokenizerFast(
        tokenizer_object=made, pad_token="<pad>", eos_token="<eos>", unk_token="<unk>"
    )


def config(**more):
    return transformers.LlamaConfig(
        vocab_size=len(WORDS),
        hidden_size=32,
        intermediate_size=64,
        num_hidden_layers=1,
        num_attention_heads=4,
        num_key_value_heads=2,
        pad_token_id=0,
        eos_token_id=1,
        **more,
    )


OPTIONS = {
    "per_device_train_batch_size": 2,
    "max_steps": 2,
    "report_to": [],
    "use_cpu": True,
    "disable_tqdm": True,
    "logging_steps": 1,
    "save_strategy": "no",
    "bf16": False,
    "gradient_checkpointing": False,
    "seed": 3,
}


@use("fine-tune on texts: SFTTrainer")
def fine_tune():
    rows = Dataset.from_dict({"text": ["the sky is blue", "the rose is red"] * 2})
    model = settle(transformers.LlamaForCausalLM(config()))
    with tempfile.TemporaryDirectory() as folder:
        trainer = SFTTrainer(
            model,
            SFTConfig(folder, max_length=16, **OPTIONS),
            train_dataset=rows,
            processing_class=tokenizer(),
        )
        done = trainer.train()
    return [done.training_loss, done.global_step]


PAIRS = {
    "prompt": ["what is the sky", "what is the rose"] * 2,
    "chosen": ["blue", "red"] * 2,
    "rejected": ["bad", "house"] * 2,
}


@use("learn from preferences: DPOTrainer")
def preferences():
    model = settle(transformers.LlamaForCausalLM(config()))
    with tempfile.TemporaryDirectory() as folder:
        trainer = DPOTrainer(
            model,
            copy.deepcopy(model),
            DPOConfig(folder, **OPTIONS),
            train_dataset=Dataset.from_dict(PAIRS),
            processing_class=tokenizer(),
        )
        return [trainer.train().training_loss]


@use("train a reward model: RewardTrainer")
def rewards():
    model = settle(transformers.LlamaForSequenceClassification(config(num_labels=1)))
    with tempfile.TemporaryDirectory() as folder:
        trainer = RewardTrainer(
            model,
            args=RewardConfig(folder, **OPTIONS),
            train_dataset=Dataset.from_dict(PAIRS),
            processing_class=tokenizer(),
        )
        return [trainer.train().training_loss]


if __name__ == "__main__":
    main("trl")
