"""Transfers: loading and storing cached context between HBM and a tier, or between pools.

Each rank moves its own part: the ranks of a tensor-parallel group load side by side, and a latent
that every rank holds whole is loaded once per rank, which is what a host's memory bus sees.
"""

from __future__ import annotations

from dataclasses import dataclass

from ..catalog import efficiencies
from ..errors import SpecError
from ..memory.kv_layout import kv_bytes_per_token, state_bytes_per_sequence
from ..spec.deployment import Deployment
from ..spec.model import Model
from ..spec.node import Node
from ..units import GB
from .prefill import prefill_s
from .step_law import StepLaw

_BISECTIONS = 60


@dataclass(frozen=True, slots=True, kw_only=True)
class Transfer:
    """What moving cached context costs one rank.

    Parameters
    ----------
    bytes_per_token : float
        Cache of one token on one rank [bytes].
    state_bytes : float
        Recurrent state of one resume point on one rank [bytes].
    load_bytes_per_s, store_bytes_per_s : float
        Rates of one rank while all ranks move [bytes/s].
    load_interval_bytes_per_s : tuple of float
        Evidence interval of the load rate [bytes/s].
    overlap : float
        Share of a load that runs under the prefill of earlier layers [1].
    first_layer : float
        Share of a load that must be there before the first layer runs [1].
    kind, source : str
        Evidence.
    """

    bytes_per_token: float
    state_bytes: float
    load_bytes_per_s: float
    store_bytes_per_s: float
    load_interval_bytes_per_s: tuple[float, float]
    overlap: float
    first_layer: float
    kind: str
    source: str

    @property
    def load_s_per_token(self) -> float:
        """Time to load one token's cache [s]."""
        return self.bytes_per_token / self.load_bytes_per_s

    @property
    def store_s_per_token(self) -> float:
        """Time a write-through of one token's cache takes of the link [s]."""
        return self.bytes_per_token / self.store_bytes_per_s

    def load_s(self, tokens: float) -> float:
        """Time to load `tokens` of context and the state that lets them be resumed [s]."""
        if tokens <= 0:
            return 0.0
        return (tokens * self.bytes_per_token + self.state_bytes) / self.load_bytes_per_s

    def store_s(self, tokens: float) -> float:
        """Link time to write `tokens` of context and one resume point through [s]."""
        if tokens <= 0:
            return 0.0
        return (tokens * self.bytes_per_token + self.state_bytes) / self.store_bytes_per_s


def tier_transfer(model: Model, node: Node, deployment: Deployment) -> Transfer:
    """Return the cost of loading from and storing to the deployment's offload tier.

    Raises
    ------
    SpecError
        If the deployment has no tier, or the accelerator no known link to it.
    """
    offload = deployment.offload
    if offload is None:
        raise SpecError("the deployment has no offload tier.", field="offload")
    table = efficiencies("offload")
    tier = table[offload.tier]
    part = node.accelerator
    if offload.tier == "ssd":
        per_gpu = GB * tier["disks_per_node"][0] / node.gpus
        low, value, high = (per_gpu * tier["gb_per_s_per_disk"][i] for i in (1, 0, 2))
        store = value
    elif offload.tier == "remote" and part.nic_bytes_per_s <= 0:
        rates = tier["fallback_gb_per_s_per_node"]
        value, low, high = (GB * rate / node.gpus for rate in rates)
        store = value
    else:
        link = part.host_bytes_per_s if offload.tier == "dram" else part.nic_bytes_per_s
        value, low, high = (share * link for share in tier["load_share"])
        store = tier["store_share"][0] * link
    if offload.tier == "dram":
        shares = tier["host_memory_gb_per_s_per_node"]
        caps = [GB * share / node.gpus for share in shares]
        value, low, high = (min(a, b) for a, b in zip((value, low, high), caps, strict=True))
        store = min(store, caps[0])
    if offload.bytes_per_s is not None:
        value = low = high = offload.bytes_per_s
        store = offload.bytes_per_s
    if value <= 0:
        raise SpecError(
            f"{part.name} has no known link to {offload.tier}; give --offload-bandwidth.",
            field="offload_bandwidth",
        )
    kind = "given" if offload.bytes_per_s is not None else tier["kind"]
    return _transfer(model, deployment, value, store, (low, high), kind, tier["source"])


def pool_transfer(model: Model, node: Node, deployment: Deployment) -> Transfer:
    """Return the cost of moving a prefilled context to a decode pool over the network.

    Inside one scale-up domain (a rack) the scale-up link carries it.
    """
    tier = efficiencies("offload")["prefill_to_decode"]
    part = node.accelerator
    rack = part.scale_up_domain > part.gpus_per_node
    link = part.scale_up_bytes_per_s if rack else part.nic_bytes_per_s or part.host_bytes_per_s
    value, low, high = (share * link for share in tier["load_share"])
    kind = tier["kind"] if part.nic_bytes_per_s and not rack else "assumed"
    return _transfer(model, deployment, value, value, (low, high), kind, tier["source"])


def _transfer(
    model: Model,
    deployment: Deployment,
    load: float,
    store: float,
    interval: tuple[float, float],
    kind: str,
    source: str,
) -> Transfer:
    return Transfer(
        bytes_per_token=kv_bytes_per_token(model, deployment),
        state_bytes=state_bytes_per_sequence(model, deployment),
        load_bytes_per_s=load,
        store_bytes_per_s=store,
        load_interval_bytes_per_s=interval,
        overlap=float(efficiencies("offload")["overlap"]["layerwise"][0]),
        first_layer=1.0 / model.layer_count,
        kind=kind,
        source=source,
    )


def resumed_prefill_s(
    law: StepLaw, transfer: Transfer, new_tokens: float, loaded_tokens: float
) -> float:
    """Seconds until the first token of a prompt whose context comes from a tier [s].

    Notes
    -----
    ``P + L - o min(P, (1 - f) L)``: load L and prefill P overlap layer by layer but for the first
    layer's share f, to the extent o that the engine loads layer by layer.
    """
    prefill = float(prefill_s(law, new_tokens, loaded_tokens))
    load = transfer.load_s(loaded_tokens)
    hidden = transfer.overlap * min(prefill, (1.0 - transfer.first_layer) * load)
    return prefill + load - hidden


def break_even_tokens(
    law: StepLaw, transfer: Transfer, longest_tokens: float = 1_048_576.0
) -> float | None:
    """Shortest context that is quicker to load than to compute again, None if none is [tokens].

    Notes
    -----
    Solves ``L(T) = P(T)`` with nothing overlapped on either side. A recurrent state makes short
    contexts dear to load; attention makes long ones dear to compute.
    """

    def gain(tokens: float) -> float:
        return float(prefill_s(law, tokens)) - transfer.load_s(tokens)

    if gain(longest_tokens) <= 0:
        return None
    if gain(1.0) > 0:
        return 1.0
    low, high = 1.0, longest_tokens
    for _ in range(_BISECTIONS):
        middle = 0.5 * (low + high)
        low, high = (low, middle) if gain(middle) > 0 else (middle, high)
    return high
