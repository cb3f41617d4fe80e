"""Kernels of the block stack: LRU over the blocks of prompts, in runs instead of blocks.

Positions are handed out in touch order. A request touches its blocks tail first, so that the
head is the most recent and leaf-first eviction is plain LRU. Blocks that were neighbours in an
earlier request are still neighbours in position: one rank query serves the whole run. Live
positions are bits of 32-position words, counted in a Fenwick tree over the words.
"""

from __future__ import annotations

from typing import Any

import numpy as np

# State: [0] next position, [1] live blocks, [2] runs written.
TOP, LIVE, RUNS = 0, 1, 2
# The hash multiplies halves, so that no product leaves 63 bits.
LOW_HALF = 0xFFFFFFFF


def touch_requests(
    ids: Any, offsets: Any, numbers: Any, first: int,
    keys: Any, places: Any, owner: Any, request_at: Any, words: Any, tree: Any, state: Any,
    runs: Any,
) -> Any:  # fmt: skip
    """Touch requests from `first` on until room runs out; return the request to go on with.

    Parameters
    ----------
    ids, offsets, numbers : ndarray of int
        Blocks in prefix order, where each request's begin, and the requests' numbers.
    keys, places : ndarray of int
        Open-addressing table from block to position; place -1 is free.
    owner, request_at : ndarray of int, shape (slots,)
        Block and request of each position.
    words, tree : ndarray of int
        Bits of live positions, and the Fenwick tree of their counts.
    runs : ndarray of int, shape (room, 5)
        Out: request, earlier request, first rank, first block, length.
    """
    slots = owner.size
    mask = keys.size - 1
    groups = words.size
    one = np.int64(1)
    found_at = np.zeros(1024, np.int64)
    for r in range(first, offsets.size - 1):
        begin, end = offsets[r], offsets[r + 1]
        count = end - begin
        if state[0] + count > slots or state[2] + count > runs.shape[0]:
            return r
        if count > found_at.size:
            found_at = np.zeros(2 * count, np.int64)
        hits = 0
        for i in range(count):
            key = ids[begin + i]
            h = (key & LOW_HALF) * 0x45D9F3B ^ ((key >> 32) & LOW_HALF) * 0x2C1B3C6D
            spot = (h ^ (h >> 20)) & mask
            place = np.int64(-1)
            while places[spot] >= 0:
                if keys[spot] == key:
                    place = places[spot]
                    break
                spot = (spot + 1) & mask
            if place < 0:
                break
            found_at[i] = place
            hits += 1
        # Runs of the found prefix: neighbours in position that the same request left.
        i = 0
        while i < hits:
            place = found_at[i]
            before = request_at[place]
            length = 1
            while (
                i + length < hits
                and found_at[i + length] == place - length
                and request_at[place - length] == before
            ):
                length += 1
            group = place >> 5
            below = np.int64(0)
            k = group
            while k > 0:
                below += tree[k]
                k -= k & -k
            bits = words[group] & ((one << (place & 31)) - one)
            while bits != 0:
                bits &= bits - one
                below += 1
            row = state[2]
            runs[row, 0] = numbers[r]
            runs[row, 1] = before
            runs[row, 2] = state[1] - below - 1
            runs[row, 3] = i
            runs[row, 4] = length
            state[2] += 1
            i += length
        # Take the found blocks out of their old positions, a word at a time.
        group = np.int64(-1)
        taken = np.int64(0)
        for i in range(hits):
            place = found_at[i]
            if place >> 5 != group:
                if taken > 0:
                    k = group + 1
                    while k <= groups:
                        tree[k] -= taken
                        k += k & -k
                group = place >> 5
                taken = np.int64(0)
            bit = one << (place & 31)
            if words[group] & bit != 0:
                words[group] ^= bit
                taken += 1
                state[1] -= 1
        if taken > 0:
            k = group + 1
            while k <= groups:
                tree[k] -= taken
                k += k & -k
        # Touch, tail first.
        group = np.int64(-1)
        added = np.int64(0)
        start = state[0]
        for i in range(count - 1, -1, -1):
            key = ids[begin + i]
            h = (key & LOW_HALF) * 0x45D9F3B ^ ((key >> 32) & LOW_HALF) * 0x2C1B3C6D
            spot = (h ^ (h >> 20)) & mask
            while places[spot] >= 0 and keys[spot] != key:
                spot = (spot + 1) & mask
            old = places[spot]
            if old >= start:
                continue  # the same block twice in one request
            if i >= hits and old >= 0 and words[old >> 5] & (one << (old & 31)) != 0:
                # Found behind a gap: no hit, but still one block.
                words[old >> 5] ^= one << (old & 31)
                state[1] -= 1
                k = (old >> 5) + 1
                while k <= groups:
                    tree[k] -= 1
                    k += k & -k
            place = state[0]
            state[0] += 1
            keys[spot] = key
            places[spot] = place
            owner[place] = key
            request_at[place] = numbers[r]
            if place >> 5 != group:
                if added > 0:
                    k = group + 1
                    while k <= groups:
                        tree[k] += added
                        k += k & -k
                group = place >> 5
                added = np.int64(0)
            words[group] |= one << (place & 31)
            added += 1
            state[1] += 1
        if added > 0:
            k = group + 1
            while k <= groups:
                tree[k] += added
                k += k & -k
    return offsets.size - 1


def compact(
    keys: Any, places: Any, owner: Any, request_at: Any, words: Any, tree: Any, state: Any,
    deepest: int, new_slots: int, new_keys: int,
) -> Any:  # fmt: skip
    """Return the state renumbered, without what lies deeper than `deepest` blocks."""
    one = np.int64(1)
    live = state[1]
    skip = max(live - deepest, 0)
    kept_keys = np.zeros(new_keys, np.int64)
    kept_places = np.full(new_keys, -1, np.int64)
    kept_owner = np.zeros(new_slots, np.int64)
    kept_request = np.zeros(new_slots, np.int64)
    kept_words = np.zeros(new_slots >> 5, np.int64)
    kept_tree = np.zeros((new_slots >> 5) + 1, np.int64)
    mask = new_keys - 1
    j = np.int64(0)
    for place in range(state[0]):
        if words[place >> 5] & (one << (place & 31)) == 0:
            continue
        if skip > 0:
            skip -= 1
            continue
        key = owner[place]
        kept_owner[j] = key
        kept_request[j] = request_at[place]
        kept_words[j >> 5] |= one << (j & 31)
        kept_tree[(j >> 5) + 1] += 1
        h = (key & LOW_HALF) * 0x45D9F3B ^ ((key >> 32) & LOW_HALF) * 0x2C1B3C6D
        spot = (h ^ (h >> 20)) & mask
        while kept_places[spot] >= 0:
            spot = (spot + 1) & mask
        kept_keys[spot] = key
        kept_places[spot] = j
        j += 1
    for k in range(1, kept_tree.size):
        parent = k + (k & -k)
        if parent < kept_tree.size:
            kept_tree[parent] += kept_tree[k]
    state[0] = j
    state[1] = j
    return kept_keys, kept_places, kept_owner, kept_request, kept_words, kept_tree


def count_touched_since(
    at_request: Any, since: Any, first_query: int, last_query: int,
    request_at: Any, words: Any, tree: Any, state: Any, counts: Any,
) -> None:  # fmt: skip
    """Write how many live blocks were touched after request `since`, for a range of queries."""
    one = np.int64(1)
    for q in range(first_query, last_query):
        low, high = np.int64(0), state[0]
        while low < high:
            middle = (low + high) >> 1
            if request_at[middle] <= since[q]:
                low = middle + 1
            else:
                high = middle
        below = np.int64(0)
        k = low >> 5
        while k > 0:
            below += tree[k]
            k -= k & -k
        if low & 31:
            bits = words[low >> 5] & ((one << (low & 31)) - one)
            while bits != 0:
                bits &= bits - one
                below += 1
        counts[q] += state[1] - below
