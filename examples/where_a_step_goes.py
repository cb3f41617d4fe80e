# %% [markdown]
# # What would make it faster: FLOPs, bandwidth, or fewer launches?
#
# The time of one decode step and of one step that also prefills, by kernel class.

# %%
from pathlib import Path

import capmodel as cm
from capmodel.report.canvas import save

chain = cm.estimate(cm.Scenario(model="kimi-k3", node="8xB300"), 8).explain()
save(chain.plot(), Path(__file__).with_suffix(".svg"))
for bar in chain.bars:
    name, seconds = max(bar.seconds.items(), key=lambda item: item[1])
    print(f"{bar.title}: {bar.total_s * 1e3:.0f} ms, {name} {seconds / bar.total_s:.0%} of it")
