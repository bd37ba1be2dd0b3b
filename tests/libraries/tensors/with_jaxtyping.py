"""jaxtyping: shapes and dtypes of tensors as types."""

# SPDX-License-Identifier: Apache-2.0

import torch
from beartype import beartype
from jaxtyping import Bool, Float, Float32, jaxtyped
from uses import main, use

checks = jaxtyped(typechecker=beartype)


@checks
def product(
    x: Float[torch.Tensor, "b n"], y: Float[torch.Tensor, "n m"]
) -> Float[torch.Tensor, "b m"]:
    return x @ y


def outcome(*args):
    try:
        return product(*args)
    except Exception as error:
        return type(error).__name__


@use("check the shapes and dtypes of a function's arguments")
def checked():
    x, y = torch.ones(2, 3), torch.ones(3, 4)
    return [
        outcome(x, y),
        outcome(x, torch.ones(4, 4)),
        outcome(x.int(), y),
        isinstance(x.bfloat16(), Float[torch.Tensor, "2 3"]),
        isinstance(x.bool(), Bool[torch.Tensor, "..."]),
        isinstance(x.double(), Float32[torch.Tensor, "2 3"]),
    ]


if __name__ == "__main__":
    main("jaxtyping")
