"""The best factorization of N prefix sums by jax-privacy: ``python jax_privacy_prefix.py N mean|max``.

Prints the root of the mean or of the largest squared error at sensitivity 1; the seconds of the processor for
the first call, compilation included; and the seconds of a second one. jax-privacy is tuned for the mean; its
search for the largest error ends after 2,000 steps, since its own criterion does not hold there.
"""

import sys
import time

import jax
import jax.numpy as jnp
from jax_privacy.matrix_factorization import dense

jax.config.update("jax_enable_x64", True)

n, objective = int(sys.argv[1]), {"mean": jnp.mean, "max": jnp.max}[sys.argv[2]]
steps = 2_000 if objective is jnp.max else 10_000
seconds = []
for _ in range(2):
    began = time.process_time()
    strategy = dense.optimize(n, reduction_fn=objective, max_optimizer_steps=steps).block_until_ready()
    seconds.append(time.process_time() - began)
errors = dense.per_query_error(strategy_matrix=strategy) * (strategy**2).sum(axis=0).max()
print(float(jnp.sqrt(objective(errors))), *seconds)
