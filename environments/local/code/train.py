"""
Trains the network: one setting of a sweep, or the best of them on several nodes.

The nodes meet at rank 0: each sends the gradients of its part of a batch, and gets the
average back. With the same seed every node holds the same weights after each step.
"""

from __future__ import annotations

import argparse
import json
import os
import pickle
import socket
import struct
import time
from pathlib import Path

import numpy as np
from network import Weights, accuracy, gradients, load_split, new_weights, step

EPOCHS = 30
BATCH = 32
SEED = 11
MEETING_SECONDS = 60


def train_one(data: Path, lr: float, hidden: int) -> None:
    """Train one setting and write its validation accuracy beside the others."""
    images, labels = load_split(data, "train")
    weights = new_weights(images.shape[1], hidden, SEED)
    random = np.random.default_rng(SEED)
    for _ in range(EPOCHS):
        for batch in np.array_split(random.permutation(len(images)), len(images) // BATCH):
            step(weights, gradients(weights, images[batch], labels[batch]), lr)
    score = accuracy(weights, *load_split(data, "validate"))
    print(f"lr={lr} hidden={hidden}: validation accuracy {score:.4f}")
    results = data / "sweep"
    results.mkdir(exist_ok=True)
    text = json.dumps({"lr": lr, "hidden": hidden, "accuracy": score})
    (results / f"lr={lr},hidden={hidden}.json").write_text(text)


def best_setting(data: Path) -> tuple[float, int]:
    """Return learning rate and width with the highest accuracy; the smaller width on a tie."""
    results = [json.loads(path.read_text()) for path in sorted((data / "sweep").glob("*.json"))]
    best = max(results, key=lambda result: (result["accuracy"], -result["hidden"]))
    return best["lr"], best["hidden"]


def send(connection: socket.socket, value: Weights) -> None:
    body = pickle.dumps(value)
    connection.sendall(struct.pack(">I", len(body)) + body)


def receive(connection: socket.socket) -> Weights:
    (size,) = struct.unpack(">I", read_exactly(connection, 4))
    return pickle.loads(read_exactly(connection, size))  # Our own nodes are the only senders.


def read_exactly(connection: socket.socket, size: int) -> bytes:
    body = bytearray()
    while len(body) < size:
        piece = connection.recv(size - len(body))
        if not piece:
            raise ConnectionError("the other node has left")
        body += piece
    return bytes(body)


class Meeting:
    """Averages gradients over all nodes; rank 0 listens where the others find it."""

    def __init__(self, rank: int, nodes: int, address: str, port: int) -> None:
        self.rank = rank
        self.nodes = nodes
        if rank == 0:
            with socket.create_server((address, port)) as server:
                server.settimeout(MEETING_SECONDS)
                self.peers = [server.accept()[0] for _ in range(nodes - 1)]
        else:
            self.peers = [self._call(address, port)]
        for peer in self.peers:
            # An accepted socket inherits no time limit: a node that dies must not hang the rest.
            peer.settimeout(MEETING_SECONDS)

    @staticmethod
    def _call(address: str, port: int) -> socket.socket:
        deadline = time.monotonic() + MEETING_SECONDS
        while True:
            try:
                return socket.create_connection((address, port), timeout=5)
            except OSError:
                if time.monotonic() > deadline:
                    raise
                time.sleep(0.05)

    def average(self, mine: Weights) -> Weights:
        if self.rank != 0:
            send(self.peers[0], mine)
            return receive(self.peers[0])
        everyone = [mine, *(receive(peer) for peer in self.peers)]
        mean = {name: np.mean([one[name] for one in everyone], axis=0) for name in mine}
        for peer in self.peers:
            send(peer, mean)
        return mean


def train_together(data: Path, port: int) -> None:
    """Train the sweep's best setting with every node of this run; rank 0 keeps the result."""
    rank = int(os.environ["FLEETFORM_NODE_RANK"])
    nodes = int(os.environ["FLEETFORM_NODES_NUM"])
    lr, hidden = best_setting(data)
    meeting = Meeting(rank, nodes, os.environ["FLEETFORM_MASTER_NODE_IP"], port)
    images, labels = load_split(data, "train")
    weights = new_weights(images.shape[1], hidden, SEED)
    random = np.random.default_rng(SEED)
    for epoch in range(1, EPOCHS + 1):
        for batch in np.array_split(random.permutation(len(images)), len(images) // BATCH):
            part = batch[rank::nodes]
            step(weights, meeting.average(gradients(weights, images[part], labels[part])), lr)
        if epoch % 10 == 0:
            score = accuracy(weights, *load_split(data, "validate"))
            print(f"rank {rank} of {nodes}, epoch {epoch}: validation accuracy {score:.4f}")
    if rank == 0:
        partial = data / "model.partial.npz"
        np.savez(partial, **weights)
        partial.replace(data / "model.npz")
        print(f"trained lr={lr} hidden={hidden} on {nodes} nodes")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("mode", choices=["sweep", "distributed"])
    parser.add_argument("--data", type=Path, required=True)
    parser.add_argument("--lr", type=float)
    parser.add_argument("--hidden", type=int)
    parser.add_argument("--port", type=int)
    arguments = parser.parse_args()
    if arguments.mode == "sweep":
        train_one(arguments.data, arguments.lr, arguments.hidden)
    else:
        train_together(arguments.data, arguments.port)


if __name__ == "__main__":
    main()
