"""torchaudio: sound."""

# SPDX-License-Identifier: Apache-2.0

import torch

# The wheel asks PyTorch for the CUDA that it was compiled with, and uses none here.
torch.version.cuda = None

import torchaudio  # noqa: E402
from torchaudio import functional, transforms  # noqa: E402
from uses import draw, main, settle, use  # noqa: E402


@use("spectrograms, cepstra, pitch")
def spectra():
    x = 0.3 * draw(2, 4000)
    parts = {"n_fft": 256, "n_mels": 20}
    return [
        transforms.Spectrogram(n_fft=256)(x),
        transforms.MFCC(8000, n_mfcc=8, melkwargs=parts)(x),
        transforms.AmplitudeToDB()(transforms.MelSpectrogram(8000, **parts)(x)),
        transforms.PitchShift(8000, 2, n_fft=256)(x),
        functional.resample(x, 8000, 6000),
    ]


@use("filters with gradients, overdrive")
def filters():
    x = (0.3 * draw(2, 400)).requires_grad_()
    a = torch.tensor([1.0, -0.5, 0.2], requires_grad=True)
    b = torch.tensor([0.3, 0.1, 0.2], requires_grad=True)
    functional.lfilter(x, a, b, clamp=False).square().sum().backward()
    low = functional.lowpass_biquad(x.detach(), 8000, 500.0)
    return [a.grad, b.grad, x.grad, low, functional.overdrive(x.detach())]


@use("transducer loss, forced alignment")
def align():
    logits, words = draw(2, 6, 4, 5).requires_grad_(), torch.tensor([[1, 2, 3], [2, 1, 1]])
    lengths, counts = torch.tensor([6, 5]), torch.tensor([3, 2])
    loss = functional.rnnt_loss(logits, words.int(), lengths.int(), counts.int(), blank=0)
    loss.backward()
    path, scores = functional.forced_align(
        draw(1, 12, 5).log_softmax(-1), torch.tensor([[1, 2, 2, 4]]), blank=0
    )
    return [loss, logits.grad, path, scores]


@use("speech recognition models")
def models():
    heard = torchaudio.models.Conformer(8, 2, 16, 1, depthwise_conv_kernel_size=3)
    letters = torchaudio.models.Wav2Letter(num_classes=5)
    out, lengths = settle(heard).eval()(draw(2, 5, 8), torch.tensor([5, 4]))
    return [out, lengths, settle(letters).eval()(draw(1, 1, 1000))]


if __name__ == "__main__":
    main("torchaudio")
