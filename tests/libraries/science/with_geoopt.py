"""geoopt: curved spaces."""

# SPDX-License-Identifier: Apache-2.0

import geoopt
from uses import descend, draw, main, use


@use("optimize in the Poincare ball, project to the sphere and the Stiefel manifold")
def descend_in():
    ball, sphere, frames = geoopt.PoincareBall(), geoopt.Sphere(), geoopt.Stiefel()
    x = ball.expmap0(draw(3, 2) * 0.3)
    p = geoopt.ManifoldParameter(x.clone(), manifold=ball)
    optimizer = geoopt.optim.RiemannianAdam([p], lr=0.1)
    losses = descend(None, lambda: ball.dist(p, ball.origin(2)).sum(), optimizer=optimizer)
    return [
        losses,
        p,
        ball.mobius_add(x, x * 0.5),
        sphere.projx(draw(2, 3)),
        frames.projx(draw(4, 2)),
    ]


if __name__ == "__main__":
    main("geoopt")
