# %% [markdown]
# # How many nodes for 200 sessions an hour, with first tokens within five seconds?

# %%
from pathlib import Path

import capmodel as cm
from capmodel.report.canvas import save
from capmodel.report.plan_figure import plan_figure

scenario = cm.Scenario(model="kimi-k3", node="8xB300", price="in=3,cached=0.3,out=15")
plan = cm.optimize(scenario, slo={"ttft_p90_s": 5}, demand_sessions_per_hour=200)
print(f"{plan.replicas} x {plan.configuration.scenario.node.name}, C = {plan.concurrency} each")
print(f"DRAM {plan.dram_bytes / 1e9:.0f} GB per node")
print(f"${plan.usd_per_hour:.2f}/h, ${plan.objective_usd_per_mtok:.4f} per M tokens")
print(f"proved: {plan.certificate.to_dict()['relative_gap']:.1%} from the best there can be")

# %%
save(plan_figure(plan), Path(__file__).with_suffix(".svg"))
