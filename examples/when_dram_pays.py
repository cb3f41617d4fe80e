# %% [markdown]
# # When does a DRAM tier pay?
#
# Public threads report anything from +151% to -48%. The sign follows the reuse: with agentic
# sessions past the cliff a tier multiplies output, before the cliff it changes nothing, and for
# traffic without reuse it is only rent. Stalls of an engine's store path are not modelled.

# %%
from pathlib import Path

import capmodel as cm
from capmodel.pipeline import sweep_runs
from capmodel.report.canvas import COLOURS, new_axes, save

TIER = "dram:1889GB"
sessions = [1, 2, 4, 6, 8, 10, 12, 16, 20, 24]
axes = new_axes()
for index, model in enumerate(("kimi-k3", "deepseek-v3")):
    node = {"kimi-k3": "8xB300", "deepseek-v3": "8xH200"}[model]
    given = {"model": model, "node": node, "weights": "auto"}
    without = sweep_runs(cm.Scenario(**given), sessions, "closed")
    tiered = sweep_runs(cm.Scenario(**given, offload=TIER), sessions, "closed")
    gains = [
        with_tier.output_tokens_per_s / bare.output_tokens_per_s
        for with_tier, bare in zip(tiered, without, strict=True)
    ]
    axes.plot(sessions, gains, color=COLOURS[index], label=f"{model} on {node}")
    first = next((c for c, gain in zip(sessions, gains, strict=True) if gain > 1.2), None)
    print(f"{model} on {node}: pays from C = {first}, {max(gains):.1f} times at best")

# %%
chat = cm.Scenario(model="qwen3-8b", node="2xL40S", workload="8k1k")
bare, held = (
    cm.estimate(cm.Scenario(model=chat.model, node=chat.node, workload="8k1k", offload=tier), 50)
    for tier in (None, "dram:393GB")
)
print(
    f"no reuse (qwen3-8b, 8k1k): hits {held.hit_rate.overall:.0%}, "
    f"output x {held.output_tokens_per_s / bare.output_tokens_per_s:.2f}"
)

# %%
axes.axhline(1.0, color="0.6", lw=0.8)
axes.set_xlabel("live sessions C")
axes.set_ylabel("output with the tier over output without [1]")
axes.legend(frameon=False)
save(axes, Path(__file__).with_suffix(".svg"))
