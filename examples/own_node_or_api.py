# %% [markdown]
# # Does my own node earn money at the market's price, and at which occupancy?
#
# Cost per million tokens against the speed a user sees, with the tariff's pay for the same mix of
# tokens as the floor. Cached-token prices change what an API costs; they change nothing about what
# the node costs per hour.

# %%
from pathlib import Path

import capmodel as cm
from capmodel.report.canvas import save
from capmodel.report.frontier_figure import frontier_figure

scenario = cm.Scenario(model="kimi-k3", node="8xB300", price="in=3,cached=0.3,out=15")
sweep = cm.sweep(scenario, [1, 2, 3, 4, 6, 8, 10, 12, 16], level="closed")
save(frontier_figure(sweep), Path(__file__).with_suffix(".svg"))

# %%
best = min(sweep.rows, key=lambda row: row.run.cost.usd_per_mtok_total)
cost = best.run.cost
print(f"cheapest at C = {best.concurrency}: ${cost.usd_per_mtok_total:.3f} per M tokens")
print(f"pays above {cost.breakeven_occupancy:.0%} occupancy at these prices")
for rule, margin in cost.margin.items():
    print(f"margin {margin:.0%} when cached input is billed: {rule}")
