"""transformers: language, vision and speech models."""

# SPDX-License-Identifier: Apache-2.0

import tempfile

import torch
import transformers
from uses import descend, draw, main, settle, use

TINY = {"hidden_size": 32, "num_hidden_layers": 2, "num_attention_heads": 4}
WIDE = TINY | {"intermediate_size": 64}
IDS = torch.tensor([[5, 9, 2, 7, 11, 3], [8, 1, 4, 4, 6, 10]])


@use("BERT: masked words, hidden states and attention")
def bert():
    config = transformers.BertConfig(vocab_size=60, attn_implementation="eager", **WIDE)
    model = settle(transformers.BertForMaskedLM(config)).eval()
    found = model(IDS, labels=IDS, output_hidden_states=True, output_attentions=True)
    found.loss.backward()
    gradient = model.bert.embeddings.word_embeddings.weight.grad
    return [found.loss, found.logits, found.hidden_states[1], found.attentions[0], gradient]


@use("GPT-2: train, generate greedily and by beams")
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
        bos_token_id=0,
        eos_token_id=59,
    )
    model = settle(transformers.GPT2LMHeadModel(config))
    losses = descend(model, lambda: model(IDS, labels=IDS).loss)
    model.eval()
    options = {"max_new_tokens": 6, "pad_token_id": 0, "attention_mask": torch.ones_like(IDS)}
    greedy = model.generate(IDS, do_sample=False, **options)
    beams = model.generate(IDS, num_beams=3, do_sample=False, **options)
    sampled = model.generate(IDS, do_sample=True, top_k=5, **options)
    return [losses, greedy, beams, list(sampled.shape)]


@use("Llama: generate with a cache, grouped key-value heads")
def llama():
    config = transformers.LlamaConfig(vocab_size=60, num_key_value_heads=2, **WIDE)
    model = settle(transformers.LlamaForCausalLM(config)).eval()
    options = {"max_new_tokens": 6, "do_sample": False, "pad_token_id": 0}
    cached = model.generate(IDS, attention_mask=torch.ones_like(IDS), **options)
    again = model.generate(IDS, attention_mask=torch.ones_like(IDS), use_cache=False, **options)
    return [cached, torch.equal(cached, again), model(IDS).logits]


@use("T5: train an encoder and a decoder")
def t5():
    config = transformers.T5Config(
        vocab_size=60,
        d_model=32,
        d_kv=8,
        d_ff=64,
        num_layers=2,
        num_heads=4,
        decoder_start_token_id=0,
        dropout_rate=0.0,
    )
    model = settle(transformers.T5ForConditionalGeneration(config))
    losses = descend(model, lambda: model(input_ids=IDS, labels=IDS).loss)
    return [losses, model.eval().generate(IDS, max_new_tokens=5, do_sample=False)]


@use("ViT and CLIP: images, and images with text")
def vision():
    images = draw(2, 3, 32, 32)
    vit = settle(
        transformers.ViTForImageClassification(
            transformers.ViTConfig(image_size=32, patch_size=8, num_labels=3, **WIDE)
        )
    ).eval()
    clip = transformers.CLIPModel(
        transformers.CLIPConfig(
            text_config={"vocab_size": 60, "eos_token_id": 3, **WIDE},
            vision_config={"image_size": 32, "patch_size": 8, **WIDE},
            projection_dim=16,
        )
    )
    settle(clip).eval()
    with torch.no_grad():
        both = clip(input_ids=IDS, pixel_values=images)
        return [vit(images).logits, both.logits_per_image, both.text_embeds]


@use("Whisper and wav2vec2: speech")
def speech():
    whisper = transformers.WhisperForConditionalGeneration(
        transformers.WhisperConfig(
            vocab_size=60,
            d_model=32,
            encoder_layers=1,
            decoder_layers=1,
            encoder_attention_heads=4,
            decoder_attention_heads=4,
            encoder_ffn_dim=64,
            decoder_ffn_dim=64,
            num_mel_bins=20,
            max_source_positions=50,
            pad_token_id=0,
            bos_token_id=1,
            eos_token_id=2,
            decoder_start_token_id=1,
            begin_suppress_tokens=None,
        )
    )
    settle(whisper).eval()
    wave = transformers.Wav2Vec2ForCTC(
        transformers.Wav2Vec2Config(
            vocab_size=20,
            conv_dim=(32, 32),
            conv_stride=(5, 4),
            conv_kernel=(10, 8),
            num_feat_extract_layers=2,
            num_conv_pos_embeddings=16,
            num_conv_pos_embedding_groups=4,
            **WIDE,
        )
    )
    settle(wave).eval()
    with torch.no_grad():
        heard = whisper(draw(1, 20, 100), decoder_input_ids=IDS[:1])
        return [heard.logits, wave(draw(1, 800)).logits]


@use("mixture of experts: Mixtral")
def experts():
    config = transformers.MixtralConfig(
        vocab_size=60,
        num_key_value_heads=2,
        num_local_experts=4,
        output_router_logits=True,
        router_aux_loss_coef=0.01,
        **WIDE,
    )
    model = settle(transformers.MixtralForCausalLM(config))
    return descend(model, lambda: model(IDS, labels=IDS).loss)


@use("state space model: Mamba")
def mamba():
    config = transformers.MambaConfig(
        vocab_size=60, hidden_size=32, num_hidden_layers=2, state_size=4
    )
    model = settle(transformers.MambaForCausalLM(config))
    return descend(model, lambda: model(IDS, labels=IDS).loss)


@use("save and load by save_pretrained")
def saved():
    config = transformers.DistilBertConfig(vocab_size=60, dim=32, n_layers=1, n_heads=4)
    model = settle(transformers.DistilBertForSequenceClassification(config)).eval()
    with tempfile.TemporaryDirectory() as folder:
        model.save_pretrained(folder)
        other = transformers.AutoModelForSequenceClassification.from_pretrained(folder).eval()
        half = transformers.AutoModel.from_pretrained(folder, dtype=torch.bfloat16)
    with torch.no_grad():
        found = model(IDS).logits
        return [torch.equal(found, other(IDS).logits), str(half.dtype), found]


@use("Trainer: train, evaluate, write a checkpoint")
def trainer():
    config = transformers.BertConfig(
        vocab_size=60,
        num_labels=2,
        hidden_dropout_prob=0.0,
        attention_probs_dropout_prob=0.0,
        **WIDE,
    )
    model = settle(transformers.BertForSequenceClassification(config))
    rows = [{"input_ids": IDS[i % 2], "labels": torch.tensor(i % 2)} for i in range(8)]
    with tempfile.TemporaryDirectory() as folder:
        arguments = transformers.TrainingArguments(
            folder,
            per_device_train_batch_size=4,
            num_train_epochs=2,
            report_to=[],
            use_cpu=True,
            logging_steps=1,
            save_steps=2,
            disable_tqdm=True,
            seed=1,
        )
        runner = transformers.Trainer(
            model=model, args=arguments, train_dataset=rows, eval_dataset=rows
        )
        done = runner.train()
        again = transformers.Trainer(model=model, args=arguments, train_dataset=rows)
        again.train(resume_from_checkpoint=True)
        return [done.global_step, done.training_loss, runner.evaluate()["eval_loss"]]


@use("a tokenizer made from words, and a pipeline")
def pipeline():
    from tokenizers import Tokenizer, models, pre_tokenizers

    words = {word: i for i, word in enumerate("[PAD] [UNK] the house is small and red".split())}
    made = Tokenizer(models.WordLevel(words, unk_token="[UNK]"))
    made.pre_tokenizer = pre_tokenizers.Whitespace()
    tokenizer = transformers.PreTrainedTokenizerFast(
        tokenizer_object=made, pad_token="[PAD]", unk_token="[UNK]"
    )
    config = transformers.BertConfig(vocab_size=60, num_labels=2, **WIDE)
    model = settle(transformers.BertForSequenceClassification(config)).eval()
    run = transformers.pipeline("text-classification", model=model, tokenizer=tokenizer)
    given = tokenizer(["the house", "is red and small"], padding=True, return_tensors="pt")
    return [given["input_ids"], given["attention_mask"], [r["score"] for r in run(["the house"])]]


if __name__ == "__main__":
    main("transformers")
