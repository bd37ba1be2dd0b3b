"""peft: a few weights are trained instead of all."""

# SPDX-License-Identifier: Apache-2.0

import tempfile

import torch
import transformers
from peft import (
    AdaLoraConfig,
    IA3Config,
    LoraConfig,
    PeftModel,
    PrefixTuningConfig,
    PromptTuningConfig,
    TaskType,
    get_peft_model,
    get_peft_model_state_dict,
)
from uses import descend, main, settle, use

IDS = torch.tensor([[5, 9, 2, 7, 11, 3], [8, 1, 4, 4, 6, 10]])


def gpt2():
    config = transformers.GPT2Config(
        vocab_size=60,
        n_embd=32,
        n_layer=2,
        n_head=4,
        n_positions=64,
        resid_pdrop=0.0,
        embd_pdrop=0.0,
        attn_pdrop=0.0,
    )
    return settle(transformers.GPT2LMHeadModel(config))


def trained(config):
    model = settle(get_peft_model(gpt2(), config))
    count = model.get_nb_trainable_parameters()
    optimizer = torch.optim.AdamW([p for p in model.parameters() if p.requires_grad], lr=0.01)
    losses = descend(model, lambda: model(input_ids=IDS, labels=IDS).loss, optimizer=optimizer)
    return model, [list(count), losses]


@use("LoRA: train, save, load, merge")
def lora():
    config = LoraConfig(r=4, lora_alpha=8, target_modules=["c_attn"], task_type="CAUSAL_LM")
    model, found = trained(config)
    model.eval()
    before = model(IDS).logits
    with tempfile.TemporaryDirectory() as folder:
        model.save_pretrained(folder)
        base = gpt2()
        whole = model.base_model.model.state_dict()
        state = {k.replace(".base_layer", ""): v for k, v in whole.items() if "lora" not in k}
        base.load_state_dict(state)
        loaded = PeftModel.from_pretrained(base, folder).eval()
    same = torch.allclose(loaded(IDS).logits, before, atol=1e-5)
    names = len(get_peft_model_state_dict(model))
    merged = model.merge_and_unload()
    return [found, same, names, torch.allclose(merged(IDS).logits, before, atol=1e-4), before]


@use("DoRA and adapters by name")
def dora():
    config = LoraConfig(r=2, target_modules=["c_proj"], use_dora=True, task_type="CAUSAL_LM")
    model, found = trained(config)
    model.add_adapter("second", LoraConfig(r=2, target_modules=["c_attn"], task_type="CAUSAL_LM"))
    model.set_adapter("second")
    with model.disable_adapter():
        plain = model(IDS).logits
    return [found, plain]


@use("IA3, AdaLoRA, prefix and prompt tuning")
def others():
    task = TaskType.CAUSAL_LM
    return [
        trained(config)[1]
        for config in (
            IA3Config(task_type=task, target_modules=["c_attn"], feedforward_modules=[]),
            AdaLoraConfig(task_type=task, target_modules=["c_attn"], total_step=10),
            PrefixTuningConfig(task_type=task, num_virtual_tokens=3),
            PromptTuningConfig(task_type=task, num_virtual_tokens=3),
        )
    ]


if __name__ == "__main__":
    main("peft")
