"""openai-whisper: speech to text."""

# SPDX-License-Identifier: Apache-2.0

import torch
import whisper
from uses import descend, draw, main, settle, use


def small():
    dimensions = whisper.ModelDimensions(
        n_mels=80,
        n_audio_ctx=1500,
        n_audio_state=16,
        n_audio_head=2,
        n_audio_layer=1,
        n_vocab=51865,
        n_text_ctx=448,
        n_text_state=16,
        n_text_head=2,
        n_text_layer=1,
    )
    return settle(whisper.Whisper(dimensions)).eval()


@use("a spectrogram, a training step")
def model():
    model, words = small(), torch.tensor([[1, 2, 3, 4]])
    mel = whisper.log_mel_spectrogram(whisper.pad_or_trim(0.1 * draw(16000)))
    wanted = torch.tensor([2, 3, 4, 5])

    def loss():
        return torch.nn.functional.cross_entropy(model(mel[None], words).flatten(0, 1), wanted)

    return [mel, descend(model, loss, 2), model.embed_audio(mel[None])]


@use("decode, greedily and by beams")
def decode():
    model, mel = small(), draw(80, 3000)
    found = []
    for settings in ({"sample_len": 6}, {"sample_len": 4, "beam_size": 2}):
        options = whisper.DecodingOptions(fp16=False, language="en", **settings)
        result = whisper.decode(model, mel, options)
        found += [result.tokens, result.avg_logprob]
    return found


if __name__ == "__main__":
    main("openai-whisper")
