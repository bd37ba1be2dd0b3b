"""Every operator that the wheels of torchvision and torchaudio register for the CPU, called with
the same numbers on Treadle and on PyTorch, with its gradients.

    python -m treadle.run _wheel_operators.py OUT.npz     # on Treadle
    python _wheel_operators.py OUT.npz                    # on PyTorch

The file that it writes has an array for each result. tests/data/stable_abi/wheel_operators.npz is
PyTorch's.
"""

# SPDX-License-Identifier: Apache-2.0

import io
import os
import sys
import tempfile

import numpy
import torch

_random = numpy.random.RandomState(0)
_found = {}


def draw(*shape):
    return torch.from_numpy(_random.randn(*shape))


def keep(name, results):
    for i, result in enumerate(results if isinstance(results, (list, tuple)) else [results]):
        if isinstance(result, torch.Tensor):
            result = result.detach().numpy()
        _found[f"{name} {i}"] = numpy.asarray(result)


def call(name, *args, tag="", **kwargs):
    """The results of an operator, and its gradients for all inputs that require one."""
    namespace, _, base = name.partition("::")
    results = getattr(getattr(torch.ops, namespace), base)(*args, **kwargs)
    keep(f"{name} {tag}", results)
    inputs = [a for a in args if isinstance(a, torch.Tensor) and a.requires_grad]
    results = results if isinstance(results, (list, tuple)) else [results]
    outputs = [r for r in results if isinstance(r, torch.Tensor) and r.requires_grad]
    if inputs and outputs:
        given = [draw(*o.shape).to(o.dtype) for o in outputs]
        keep(f"{name} {tag} gradient", torch.autograd.grad(outputs, inputs, given))
    return results


def regions(dtype):
    x = draw(1, 8, 9, 8).to(dtype).requires_grad_()
    rois = torch.tensor([[0, 1, 1, 6, 7.5], [0, 0, 2, 9, 9], [0, 3, 3, 3, 3]], dtype=dtype)
    tag = str(dtype).partition(".")[2]
    for aligned in (False, True):
        call("torchvision::roi_align", x, rois, 0.9, 3, 2, 2, aligned, tag=f"{tag} {aligned}")
    call("torchvision::roi_align", x, rois, 0.5, 2, 2, -1, True, tag=f"{tag} adaptive")
    call("torchvision::roi_pool", x, rois, 0.9, 3, 2, tag=tag)
    call("torchvision::ps_roi_align", x, rois, 0.9, 2, 2, 2, tag=tag)
    call("torchvision::ps_roi_pool", x, rois, 0.9, 2, 2, tag=tag)
    # One that is not contiguous.
    strided = draw(1, 9, 8, 8).to(dtype).permute(0, 3, 1, 2).requires_grad_()
    call("torchvision::roi_align", strided, rois, 1.0, 2, 2, 2, True, tag=f"{tag} strided")


def convolutions(dtype):
    tag = str(dtype).partition(".")[2]
    x, w, b = (draw(*s).to(dtype).requires_grad_() for s in ((1, 4, 5, 6), (6, 2, 3, 3), (6,)))
    offset = (0.7 * draw(1, 2 * 2 * 9, 5, 6)).to(dtype).requires_grad_()
    mask = draw(1, 2 * 9, 5, 6).to(dtype).requires_grad_()
    sizes = (1, 1, 1, 1, 1, 1, 2, 2)
    call("torchvision::deform_conv2d", x, w, offset, mask, b, *sizes, True, tag=f"{tag} masked")
    none = torch.zeros(1, 1, dtype=dtype)
    call("torchvision::deform_conv2d", x, w, offset, none, b, *sizes, False, tag=tag)


def boxes(dtype):
    tag = str(dtype).partition(".")[2]
    corners = 20 * torch.from_numpy(_random.rand(40, 2))
    given = torch.cat([corners, corners + 8 * torch.from_numpy(_random.rand(40, 2))], 1).to(dtype)
    scores = torch.from_numpy(_random.permutation(40) / 40).to(dtype)
    for threshold in (0.2, 0.7):
        call("torchvision::nms", given, scores, threshold, tag=f"{tag} {threshold}")
    turned = torch.cat([corners, 4 + draw(40, 2).abs(), 90 * draw(40, 1)], 1).to(dtype)
    call("torchvision::box_iou_rotated", turned[:10], turned[10:16], tag=tag)


def picture():
    rows, columns = torch.meshgrid(torch.arange(12), torch.arange(17), indexing="ij")
    return torch.stack([14 * columns, 20 * rows, 6 * rows + 8 * columns]).to(torch.uint8)


def images():
    from PIL import Image

    image = picture()
    for level in (0, 6):
        call("image::encode_png", image, level, tag=str(level))
    png = torch.ops.image.encode_png(image, 6)
    jpeg = call("image::encode_jpeg", image, 90)[0]
    written = io.BytesIO()
    frame = Image.fromarray(image.permute(1, 2, 0).numpy())
    frame.save(written, "gif", save_all=True, append_images=[frame.rotate(90)])
    gif = torch.frombuffer(bytearray(written.getvalue()), dtype=torch.uint8)
    webp = io.BytesIO()
    frame.save(webp, "webp", lossless=True)
    webp = torch.frombuffer(bytearray(webp.getvalue()), dtype=torch.uint8)
    for mode in (0, 1, 2, 3, 4):  # unchanged, grey, grey with alpha, RGB, RGB with alpha
        call("image::decode_png", png, mode, tag=str(mode))
        call("image::decode_image", png, mode, tag=str(mode))
        if mode in (0, 1, 3):
            call("image::decode_jpeg", jpeg, mode, tag=str(mode))
        if mode in (0, 3, 4):
            call("image::decode_webp", webp, mode, tag=str(mode))
    call("image::decode_gif", gif)
    with tempfile.TemporaryDirectory() as folder:
        path = os.path.join(folder, "a.png")
        torch.ops.image.write_file(path, png)
        call("image::read_file", path)
    keep("image::_jpeg_version", torch.ops.image._jpeg_version())
    keep("image::_is_compiled_against_turbo", torch.ops.image._is_compiled_against_turbo())
    for bad in (png[:40], png[:0], jpeg[:30], torch.zeros(50, dtype=torch.uint8)):
        for name in ("decode_png", "decode_jpeg", "decode_image"):
            try:
                getattr(torch.ops.image, name)(bad, 0)
            except RuntimeError:
                continue
            raise AssertionError(f"{name} took bytes that are no image")


def sound():
    x, a, out = 0.3 * draw(2, 2, 40), 0.3 * draw(2, 3), torch.zeros(2, 2, 42).double()
    keep("torchaudio::_lfilter_core_loop", torch.ops.torchaudio._lfilter_core_loop(x, a, out))
    x, last_in, last_out, out = (t.double() for t in (x[0], *torch.zeros(2, 2), torch.zeros(2, 40)))
    torch.ops.torchaudio._overdrive_core_loop(x, 0.5 * x, last_in, last_out, out)
    keep("torchaudio::_overdrive_core_loop", [last_in, last_out, out])
    log_probs = draw(1, 12, 5).float().log_softmax(-1)
    targets, lengths = torch.tensor([[1, 2, 2, 4]]), torch.tensor([12])
    counts = torch.tensor([4])
    call("torchaudio::forced_align", log_probs, targets, lengths, counts, 0)
    logits = draw(2, 6, 4, 5).float().requires_grad_()
    words = torch.tensor([[1, 2, 3], [2, 1, 1]], dtype=torch.int32)
    sizes = torch.tensor([6, 5], dtype=torch.int32), torch.tensor([3, 2], dtype=torch.int32)
    with torch.no_grad():
        for fused in (True, False):
            call("torchaudio::rnnt_loss_forward", logits, words, *sizes, 0, -1.0, fused, tag=fused)
    import torchaudio

    loss = torchaudio.functional.rnnt_loss(logits, words, *sizes, blank=0)
    keep("rnnt_loss", [loss, *torch.autograd.grad(loss, [logits])])
    x, a, b = (t.double().requires_grad_() for t in (draw(2, 30), draw(3), draw(3)))
    a.data[0] = 2.0
    filtered = torchaudio.functional.lfilter(x, a, b, clamp=False)
    keep("lfilter", [filtered, *torch.autograd.grad(filtered.square().sum(), [x, a, b])])
    keep("_torchaudio::is_align_available", torch.ops._torchaudio.is_align_available())


def quantized():
    """The operators on the numbers behind quantized values."""
    for dtype in (torch.uint8, torch.int8, torch.int32):
        x = (20 * draw(1, 4, 8, 8) + 60).to(dtype)
        rois = torch.tensor([[0, 1, 1, 6, 7], [0, 0, 2, 5, 6]], dtype=dtype)
        tag = str(dtype).partition(".")[2]
        call("torchvision::qroi_align", x, rois, 0.05, 3, 1.0, 0, 0.9, 3, 2, 2, True, tag=tag)
        corners = torch.tensor([[0, 0, 10, 10], [1, 1, 11, 11], [20, 20, 30, 30]], dtype=dtype)
        scores = torch.tensor([90, 80, 70], dtype=dtype)
        call("torchvision::qnms", corners, scores, 0.5, tag=tag)


def main(out):
    torch.manual_seed(0)
    import torchaudio  # noqa: F401
    import torchvision  # noqa: F401

    for dtype in (torch.float32, torch.float64):
        regions(dtype)
        convolutions(dtype)
        boxes(dtype)
    images()
    sound()
    quantized()
    numpy.savez_compressed(out, **_found)


if __name__ == "__main__":
    torch.version.cuda = None  # torchaudio's wheel asks for the CUDA that it was compiled with
    main(sys.argv[1])
