"""keras on its backend torch."""

# SPDX-License-Identifier: Apache-2.0

import os
import tempfile

os.environ["KERAS_BACKEND"] = "torch"

import keras  # noqa: E402
import numpy  # noqa: E402
import torch  # noqa: E402
from uses import draw, main, use  # noqa: E402


def settled(model):
    model.set_weights([numpy.random.randn(*w.shape) / 3 for w in model.get_weights()])
    return model


@use("compile, fit, evaluate, save")
def fit():
    model = settled(
        keras.Sequential(
            [
                keras.Input((8,)),
                keras.layers.Dense(16, activation="relu"),
                keras.layers.Dense(3),
            ]
        )
    )
    model.compile(
        optimizer=keras.optimizers.Adam(0.01),
        metrics=["accuracy"],
        loss=keras.losses.SparseCategoricalCrossentropy(from_logits=True),
    )
    x, y = numpy.random.randn(32, 8).astype("float32"), numpy.arange(32) % 3
    done = model.fit(x, y, epochs=3, batch_size=8, shuffle=False, verbose=0)
    with tempfile.TemporaryDirectory() as folder:
        model.save(folder + "/m.keras")
        again = keras.models.load_model(folder + "/m.keras")
    same = numpy.allclose(again.predict(x, verbose=0), model.predict(x, verbose=0), atol=1e-5)
    return [done.history["loss"], model.evaluate(x, y, verbose=0), bool(same)]


@use("convolutions, recurrent layers, attention")
def layers():
    image = settled(
        keras.Sequential(
            [
                keras.Input((16, 16, 3)),
                keras.layers.Conv2D(4, 3),
                keras.layers.MaxPooling2D(),
                keras.layers.GlobalAveragePooling2D(),
                keras.layers.Dense(2),
            ]
        )
    )
    series = settled(
        keras.Sequential(
            [
                keras.Input((6, 3)),
                keras.layers.LSTM(4, return_sequences=True),
                keras.layers.GRU(4),
            ]
        )
    )
    attend = keras.layers.MultiHeadAttention(2, 4)
    x = draw(2, 6, 3).numpy()
    attend(x, x)
    settled(attend)
    return [part.detach() for part in (image(draw(2, 16, 16, 3).numpy()), series(x), attend(x, x))]


@use("a custom training step, functions of keras.ops")
def own():
    model = settled(keras.Sequential([keras.Input((4,)), keras.layers.Dense(1)]))
    optimizer = keras.optimizers.SGD(0.1)
    x, losses = torch.ones(3, 4), []
    for _ in range(3):
        model.zero_grad()
        loss = keras.ops.mean(keras.ops.square(model(x)))
        loss.backward()
        with torch.no_grad():
            weights = model.trainable_weights
            optimizer.apply([v.value.grad for v in weights], weights)
        losses.append(loss.item())
    ops = keras.ops
    return [
        losses,
        ops.softmax(ops.arange(4.0)),
        ops.segment_sum(ops.arange(4.0), ops.array([0, 0, 1, 1])),
        ops.top_k(ops.array([3.0, 1.0, 2.0]), 2),
        ops.image.resize(ops.ones((1, 4, 4, 1)), (2, 2)),
    ]


if __name__ == "__main__":
    main("keras")
