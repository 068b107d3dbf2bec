"""Flower's SecAgg+ among 20 clients, by its own client code: bytes and seconds of the processor a client."""

import json
import sys
import time
from importlib import import_module

import numpy as np
from flwr.common import ndarrays_to_parameters
from flwr.common.secure_aggregation.secaggplus_constants import Key

client = import_module("flwr.client.mod.secure_aggregation.secaggplus_mod")  # a function has its name, too
CLIENTS, THRESHOLD = 20, 11


def size(message: object) -> int:
    """The bytes of a message's numbers and strings of bytes, without names and framing."""
    if isinstance(message, bytes):
        return len(message)
    if isinstance(message, dict):
        return sum(map(size, message.values()))
    return sum(map(size, message)) if isinstance(message, list) else 8


def main() -> None:
    dimension = int(sys.argv[1])
    rng = np.random.default_rng(1)
    vectors = rng.standard_normal((CLIENTS, dimension))
    vectors /= np.linalg.norm(vectors, axis=1, keepdims=True)
    states, sent = [], 0
    start = time.process_time()
    setup = {
        Key.SAMPLE_NUMBER: CLIENTS,
        Key.SHARE_NUMBER: CLIENTS,
        Key.THRESHOLD: THRESHOLD,
        Key.CLIPPING_RANGE: 8.0,
        Key.TARGET_RANGE: 2**22,
        Key.MOD_RANGE: 2**32,
        Key.MAX_WEIGHT: 1.0,
    }
    keys = {}
    for i in range(CLIENTS):
        state = client.SecAggPlusState()
        state.nid = i
        answer = client._setup(state, setup)
        keys[str(i)] = (answer[Key.PUBLIC_KEY_1], answer[Key.PUBLIC_KEY_2])
        states.append(state)
        sent += size(answer)
    inbox: list[list[tuple[int, bytes]]] = [[] for _ in range(CLIENTS)]
    for i, state in enumerate(states):
        answer = client._share_keys(state, keys)
        sent += size(answer)
        for to, text in zip(answer[Key.DESTINATION_LIST], answer[Key.CIPHERTEXT_LIST], strict=True):
            inbox[to].append((i, text))
    for i, state in enumerate(states):
        message = {
            Key.CIPHERTEXT_LIST: [text for _, text in inbox[i]],
            Key.SOURCE_LIST: [source for source, _ in inbox[i]],
        }
        answer = client._collect_masked_vectors(state, message, 1, ndarrays_to_parameters([vectors[i]]))
        sent += size(answer)
    unmask = {Key.ACTIVE_NODE_ID_LIST: list(range(CLIENTS)), Key.DEAD_NODE_ID_LIST: []}
    for state in states:
        sent += size(client._unmask(state, unmask))
    processor = (time.process_time() - start) / CLIENTS
    print(json.dumps({"bytes": sent / CLIENTS, "processor": processor, "clients": CLIENTS}))


main()
