# %% [markdown]
# # Why output collapses after eight sessions, and what DRAM buys
#
# Kimi K3 on one node of eight B300, coding-agent traffic: output, hit rate and cost per session
# against live sessions, without and with a DRAM tier. The triangles are public measurements.

# %%
from pathlib import Path

import capmodel as cm
from capmodel.report.canvas import save
from capmodel.report.cliff_figure import cliff_figure

sessions = [1, 2, 4, 6, 7, 8, 9, 10, 12, 14, 16, 20, 24]
hbm_only = cm.Scenario(model="kimi-k3", node="8xB300", workload="agentic-coding")
with_dram = cm.Scenario(
    model="kimi-k3", node="8xB300", workload="agentic-coding", offload="dram:1889GB"
)
sweeps = [cm.sweep(hbm_only, sessions), cm.sweep(with_dram, sessions)]

# %%
axes = cliff_figure(sweeps)
save(axes, Path(__file__).with_suffix(".svg"))
print(f"best without DRAM: C = {sweeps[0].peak_concurrency}")
at_16 = sessions.index(16)
bare, tiered = (sweep.rows[at_16].output_tokens_per_s for sweep in sweeps)
print(f"at C = 16 DRAM multiplies output by {tiered / bare:.1f}; measured 4.9")
