"""The best factorization of N prefix sums by jax-privacy: ``python jax_privacy_prefix.py N``.

Prints the root of the mean squared error at sensitivity 1, the objective that jax-privacy is tuned for; the
seconds of the first call, compilation included; and those of a second one.
"""

import sys
import time

import jax
import jax.numpy as jnp
from jax_privacy.matrix_factorization import dense

jax.config.update("jax_enable_x64", True)

n = int(sys.argv[1])
seconds = []
for _ in range(2):
    began = time.perf_counter()
    strategy = dense.optimize(n).block_until_ready()
    seconds.append(time.perf_counter() - began)
errors = dense.per_query_error(strategy_matrix=strategy) * (strategy**2).sum(axis=0).max()
print(float(jnp.sqrt(jnp.mean(errors))), *seconds)
