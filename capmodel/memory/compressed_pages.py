"""DeepSeek-V4 in a paged engine: entries, windows and compressor states in two page sizes.

One block stands for 256 positions of a context: 64 entries of a ratio-4 layer, its 64 index keys
and 2 entries of a ratio-128 layer. Windows and compressor states slide, in pages of the same
bytes, so that what a request reserves grows with the tokens of a step and not only its length.
"""

from __future__ import annotations

import math

from ..spec.attention import CompressedAttention
from ..spec.deployment import Deployment
from ..spec.model import Model
from .kv_layout import compressed_entry_bytes, index_key_bytes
from .pages import LayerGroups, PagePlan

WINDOW_GROUPS = 2
FP32_BYTES = 4
# A compressor keeps keys and scores; at ratio 4 two overlapping sets of both.
KEYS_AND_SCORES = 2
OVERLAPPING_SETS = 2
SHORT_RATIO = 4


def _power_of_two_tokens(page_bytes: float, bytes_per_token: float) -> int:
    """Return the largest power of two of tokens that a page holds [tokens]."""
    return int(2 ** math.floor(math.log2(max(1.0, page_bytes / bytes_per_token))))


def compressed_plan(
    model: Model, layers: int, deployment: Deployment, *, block_tokens: int, step_tokens: int
) -> PagePlan:
    """Return the block geometry of a rank that holds `layers` layers of compressed attention.

    Notes
    -----
    Groups hold half the layers, so that the windows make two. A request reserves, besides its
    entries, window and state pages of W - 1 + step tokens. Measured on two cards of one machine
    (kv174, kv175): 3.040 and 3.417 GiB per request against 3.047 and 3.417.
    """
    mixers = [g.mixer for g in model.layers if isinstance(g.mixer, CompressedAttention)]
    indexed = next((m for m in mixers if m.indexer is not None), mixers[0])
    long_ratio = max((m.ratio for m in mixers), default=0) or block_tokens
    group = math.ceil(layers / WINDOW_GROUPS)
    entry = compressed_entry_bytes(indexed, deployment)
    entries = block_tokens // SHORT_RATIO
    page = entries * entry
    key = index_key_bytes(indexed.indexer) if indexed.indexer else 0.0
    index_page = entries * key
    long_page = math.ceil(block_tokens / long_ratio) * entry
    block_bytes = group * (page + index_page + long_page)
    state = KEYS_AND_SCORES * FP32_BYTES * indexed.head_dim
    short_bound = OVERLAPPING_SETS * SHORT_RATIO
    states = [(page, OVERLAPPING_SETS * state, short_bound), (page, state, long_ratio)]
    if indexed.indexer is not None:
        index_state = KEYS_AND_SCORES * FP32_BYTES * indexed.indexer.head_dim
        states.append((index_page, OVERLAPPING_SETS * index_state, short_bound))
    bounded = [
        LayerGroups(
            groups=WINDOW_GROUPS,
            block_tokens=entries,
            bound_tokens=indexed.window_tokens,
            page_share=group * page / block_bytes,
        )
    ]
    bounded += [
        LayerGroups(
            groups=1,
            block_tokens=_power_of_two_tokens(page_bytes, per_token),
            bound_tokens=bound,
            page_share=group * page_bytes / block_bytes,
        )
        for page_bytes, per_token, bound in states
    ]
    tokens = block_tokens * deployment.dcp
    return PagePlan(
        block_tokens=tokens,
        block_bytes=block_bytes,
        growing=(LayerGroups(groups=1, block_tokens=tokens),),
        bounded=tuple(bounded),
        step_tokens=step_tokens,
    )
