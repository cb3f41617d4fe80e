# %% [markdown]
# # Why does more concurrency past a point add little and cost every user their speed?
#
# MiniMax-M3 on four MI355X: a public recipe measured 40 to 48 lanes at +3.9% tokens for -38.5%
# interactivity, while hits in HBM fell from 83.1% to 70.2%
# (https://github.com/ROCm/ATOM, MiniMax-M3-Agentic-InferenceX).

# %%
from pathlib import Path

import capmodel as cm
from capmodel.report.canvas import COLOURS, new_axes, save

scenario = cm.Scenario(
    model="minimax-m3",
    node="4xMI355X",
    engine="atom",
    weights="mxfp4",
    kv_dtype="fp8",
    gpu_memory_utilization=0.95,
    offload="dram:1024GiB",
)
lanes = [2, 8, 16, 24, 32, 40, 48]
rows = cm.sweep(scenario, lanes, level="closed").rows

# %%
measured = {8: 14502, 28: 44609, 48: 55516}  # total tokens/s per GPU, with a draft model
axes = new_axes()
per_gpu = [row.total_tokens_per_s / 4 for row in rows]
axes.plot(lanes, per_gpu, "-o", ms=3, color=COLOURS[0], label="total tokens/s per GPU")
axes.plot(measured.keys(), measured.values(), "k^", label="measured, with a draft model")
speed = axes.twinx()
speed.plot(lanes, [1 / row.latency.tpot_s.p50 for row in rows], "--", color=COLOURS[1])
speed.set_ylabel("output per user (dashed) [tokens/s]")
speed.set_ylim(bottom=0)
axes.set_xlabel("live sessions C")
axes.set_ylabel("prompt and output [tokens/s per GPU]")
axes.legend(frameon=False)
save(axes, Path(__file__).with_suffix(".svg"))
best = max(rows, key=lambda row: row.output_tokens_per_s)
print(f"best output at C = {best.concurrency} of those tried")
for row in (best, rows[-1]):
    print(
        f"C = {row.concurrency}: {row.total_tokens_per_s / 4:,.0f} total tok/s per GPU, "
        f"{1 / row.latency.tpot_s.p50:.0f} tok/s per user, hits {row.hit_rate.overall:.0%} "
        f"({row.hit_rate.hbm:.0%} in HBM)"
    )
print(f"measured at C = 48: {measured[48]:,} total tok/s per GPU: the model is too early there")
