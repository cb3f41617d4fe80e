# %% [markdown]
# # Hits are low and the pool is half empty: what should I expect?
#
# The expectation from the workload alone, before any engine's defect: hit rate over live sessions
# and pool. A pool of 502,059 tokens with three or four coding agents should hit about 70%; the
# engine in https://github.com/MiaAI-Lab/GLM-5.3-Flash-EXL3-2x-DGX-Sparks/issues/106 showed none.

# %%
from pathlib import Path

from capmodel.report.canvas import COLOURS, new_axes, save
from capmodel.reuse.curve import hit_rate_curve

sessions = [1, 2, 3, 4, 6, 8, 12, 16, 24]
pools = [502_059, 1_000_000, 3_250_000]
curve = hit_rate_curve("agentic-coding", concurrency=sessions, capacity_tokens=pools)

# %%
axes = new_axes()
for index, pool in enumerate(pools):
    rates = [row["hit_rate"] for row in curve.to_dict()["rows"] if row["capacity_tokens"] == pool]
    axes.plot(sessions, rates, "-o", ms=3, color=COLOURS[index], label=f"{pool:,} tokens")
    print(f"{pool:,} tokens: hits {rates[3]:.0%} at C = 4, {rates[-1]:.0%} at C = 24")
axes.set_xlabel("live sessions C")
axes.set_ylabel("hit rate [1]")
axes.set_ylim(0, 1)
axes.legend(frameon=False)
save(axes, Path(__file__).with_suffix(".svg"))
