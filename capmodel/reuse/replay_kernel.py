"""The replay loop: C lanes of sessions, LRU order by last completion, running requests pinned.

One entry of the stack is what one request left behind. Entries are kept in completion order in
a Fenwick tree of tokens, so that the tokens above an entry cost O(log n). The next request of the
session takes its reusable prefix out of the entry; the rest stays and ages. Within an entry
the tail is evicted first, so a prefix hit is what the capacity leaves above it, and one distance
per request gives its hit at every capacity. The same text runs compiled and plain.
"""

from __future__ import annotations

import heapq
from typing import Any

import numpy as np

# The kernel is one function because a compiler only sees through what it can inline.


def replay_lanes(
    order: Any, starts: Any, sizes: Any, prefix: Any, recent: Any, lags: Any, output: Any,
    gaps: Any, service: Any, lanes: int, count: int, deepest: float,
    feedback: bool, capacity: float, rate: float, output_token_s: float,
    extra: float, every: float,
) -> Any:  # fmt: skip
    """Return row, distance to the recent and the deep part, hit, start and finish per request.

    Parameters
    ----------
    order : ndarray of int
        Sessions in the order in which lanes take them; read round and round [1].
    lanes, count : int
        Concurrency, and how many requests to replay [1].
    deepest : float
        Entries below this depth may be forgotten [tokens].
    feedback : bool
        Whether service follows the hits at `capacity`, and running contexts must fit in it.
    extra, every : float
        Tokens a retained state costs per request, and the distance between resume points;
        0 for models without state [tokens].
    """
    slots = 1 << 12
    tree = np.zeros(slots + 1)
    held = np.zeros(slots)
    lane_of = np.zeros(slots, np.int64)
    turn_of = np.zeros(slots, np.int64)
    top = 0
    total = 0.0
    rows = np.zeros(count, np.int64)
    depth = np.full(count, np.inf)
    deep = np.full(count, np.inf)
    hits = np.zeros(count)
    begun = np.zeros(count)
    ended = np.zeros(count)
    turns = np.zeros(lanes, np.int64)
    session = np.zeros(lanes, np.int64)
    current = np.zeros(lanes, np.int64)
    longest = 1
    for s in range(starts.size - 1):
        longest = max(longest, starts[s + 1] - starts[s])
    entry = np.full((lanes, longest), -1, np.int64)
    events = [(0.0, 0, 0, 0)]
    events.pop()
    waiting = [0]
    waiting.pop()
    head = 0
    taken = 0
    running = 0.0
    server_free = 0.0
    done = 0
    # Events of the same instant keep the order in which they were made.
    tick = lanes
    for lane in range(lanes):
        session[lane] = order[taken % order.size]
        taken += 1
        heapq.heappush(events, (0.0, lane, lane, 0))
    while done < count:
        now, _, lane, kind = heapq.heappop(events)
        if kind == 0:
            waiting.append(lane)
        else:
            row = rows[current[lane]]
            size = sizes[row] + extra
            running -= size
            if top == slots:
                # Renumber what is alive and not deeper than asked; grow when it is still crowded.
                above = running
                alive = 0
                for i in range(top - 1, -1, -1):
                    if held[i] > 0:
                        if above > deepest:
                            held[i] = 0.0
                        else:
                            above += held[i]
                            alive += 1
                    # An entry that is used up or forgotten may not be found under a new number.
                    if held[i] <= 0 and lane_of[i] >= 0:
                        entry[lane_of[i], turn_of[i]] = -1
                grown = slots * 2 if alive * 2 > slots else slots
                new_held = np.zeros(grown)
                new_lane = np.zeros(grown, np.int64)
                new_turn = np.zeros(grown, np.int64)
                tree = np.zeros(grown + 1)
                j = 0
                total = 0.0
                for i in range(top):
                    if held[i] > 0:
                        new_held[j] = held[i]
                        new_lane[j] = lane_of[i]
                        new_turn[j] = turn_of[i]
                        # A finished session's entry is dead; nothing may point at it again.
                        if new_lane[j] >= 0:
                            entry[new_lane[j], new_turn[j]] = j
                        total += held[i]
                        j += 1
                top = j
                slots = grown
                held = new_held
                lane_of = new_lane
                turn_of = new_turn
                for i in range(top):
                    k = i + 1
                    tree[k] += held[i]
                    parent = k + (k & -k)
                    if parent <= slots:
                        tree[parent] += tree[k]
                for i in range(top, slots):
                    k = i + 1
                    parent = k + (k & -k)
                    if parent <= slots:
                        tree[parent] += tree[k]
            held[top] = size
            lane_of[top] = lane
            turn_of[top] = turns[lane]
            entry[lane, turns[lane]] = top
            total += size
            k = top + 1
            while k <= slots:
                tree[k] += size
                k += k & -k
            top += 1
            turns[lane] += 1
            if row + 1 == starts[session[lane] + 1]:
                for q in range(turns[lane]):
                    if entry[lane, q] >= 0:
                        lane_of[entry[lane, q]] = -1
                        entry[lane, q] = -1
                session[lane] = order[taken % order.size]
                taken += 1
                turns[lane] = 0
                tick += 1
                heapq.heappush(events, (now, tick, lane, 0))
            else:
                tick += 1
                heapq.heappush(events, (now + gaps[row + 1], tick, lane, 0))
        while head < len(waiting) and done < count:
            lane = waiting[head]
            row = starts[session[lane]] + turns[lane]
            size = sizes[row] + extra
            if feedback and running > 0 and running + size > capacity:
                break
            head += 1
            if head > 4096:
                waiting = waiting[head:]
                head = 0
            want = prefix[row]
            got = 0.0
            if want > 0:
                near = want if lags[row] <= 1 else min(recent[row], want)
                if near > 0:
                    e = entry[lane, turns[lane] - 1]
                    if e >= 0:
                        below = 0.0
                        k = e + 1
                        while k > 0:
                            below += tree[k]
                            k -= k & -k
                        depth[done] = total - below + running
                        near = min(near, held[e])
                        held[e] -= near
                        total -= near
                        k = e + 1
                        while k <= slots:
                            tree[k] -= near
                            k += k & -k
                        got = min(max(capacity - depth[done], 0.0), near)
                rest = want - near
                if rest > 0:
                    e = entry[lane, turns[lane] - lags[row]]
                    if e >= 0:
                        below = 0.0
                        k = e + 1
                        while k > 0:
                            below += tree[k]
                            k -= k & -k
                        deep[done] = total - below + running + near
                        rest = min(rest, held[e])
                        held[e] -= rest
                        total -= rest
                        k = e + 1
                        while k <= slots:
                            tree[k] -= rest
                            k += k & -k
                        if got >= near:
                            got += min(max(capacity - deep[done], 0.0), rest)
                if every > 0 and got < want:
                    got = every * np.floor(got / every)
            running += size
            if feedback:
                server_free = max(server_free, now) + (sizes[row] - got) / rate
                finish = server_free + output[row] * output_token_s
            else:
                finish = now + service[row]
            rows[done] = row
            hits[done] = got
            begun[done] = now
            ended[done] = finish
            current[lane] = done
            tick += 1
            heapq.heappush(events, (finish, tick, lane, 1))
            done += 1
    return rows, depth, deep, hits, begun, ended
