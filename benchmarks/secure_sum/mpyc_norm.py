"""The exact norm check of vectors by MPyC among three parties: ``python mpyc_norm.py -M3 D CLIENTS``."""

import json
import sys
import time

from mpyc.runtime import mpc

STEPS = 64
"""An honest vector has norm at most 64 steps."""


async def main() -> None:
    dimension, clients = (int(word) for word in sys.argv[1:3])
    numbers = mpc.SecInt(24)
    await mpc.start()
    vector = [0] * dimension
    vector[0] = STEPS
    long = [STEPS, 1] + [0] * (dimension - 2)  # its squared norm is too large by 1
    start, processor = time.perf_counter(), time.process_time()
    accepted = []
    for i in range(clients):
        shared = mpc.input([numbers(v) for v in (long if i % 2 else vector)], senders=0)
        short = mpc.in_prod(shared, shared) <= STEPS**2
        accepted.append(bool(await mpc.output(short)))
    seconds = (time.perf_counter() - start) / clients
    processor = sum(await mpc.transfer(time.process_time() - processor)) / clients
    sent = sum(getattr(peer.protocol, "nbytes_sent", 0) for peer in mpc.parties)
    if mpc.pid == 0:
        measured = {"seconds": seconds, "processor": processor, "bytes": sent / clients}
        print(json.dumps(measured | {"accepted": accepted}))
    await mpc.shutdown()


mpc.run(main())
