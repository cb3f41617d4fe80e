# %% [markdown]
# # Which input should I measure first?
#
# Output at both ends of each input's evidence: the widest bar is the measurement worth making.

# %%
from pathlib import Path

import capmodel as cm
from capmodel.report.canvas import save
from capmodel.report.tornado import swings, tornado_figure

answer = cm.estimate(cm.Scenario(model="kimi-k3", node="8xB300"), 10)
found = swings(answer)
save(tornado_figure(answer, found), Path(__file__).with_suffix(".svg"))
for swing in found:
    low, high = swing.output_tokens_per_s
    print(
        f"{swing.name} {swing.inputs[0]:,.0f}-{swing.inputs[1]:,.0f}: {low:.0f} to {high:.0f} tok/s"
    )
