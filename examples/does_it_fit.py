# %% [markdown]
# # Does it fit, and if not, what would?
#
# Kimi K3 (2.8T parameters) on one node of eight B200 and of eight B300. The ledger says where each
# GiB of a GPU goes; the error names the cheapest ways out.

# %%
from pathlib import Path

import capmodel as cm
from capmodel.report.canvas import save

small = cm.memory(cm.Scenario(model="kimi-k3", node="8xB200"))
large = cm.memory(cm.Scenario(model="kimi-k3", node="8xB300"))
for budget in (small, large):
    verdict = "fits" if budget.fits else "does not fit"
    print(f"{budget.node}: {verdict}, {budget.kv_tokens:,} KV tokens beside the weights")

# %%
save(large.plot(), Path(__file__).with_suffix(".svg"))

# %%
try:
    cm.estimate(cm.Scenario(model="deepseek-r1", node="8xRTX-4090"), 1)
except cm.InfeasibleError as error:
    print(error)
