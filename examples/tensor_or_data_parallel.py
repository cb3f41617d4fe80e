# %% [markdown]
# # TP8 or DP8 for a model with one KV head, at a million tokens?
#
# Tensor parallel copies a latent cache to every rank, data parallel splits the requests instead.
# Start-up logs of DeepSeek-V4-Flash on eight B200 say 20.43 and 156.9 requests of 1M tokens
# (https://github.com/vllm-project/recipes/issues/762).

# %%
import capmodel as cm

given = {"model": "deepseek-v4-flash", "node": "8xB200", "kv_dtype": "fp8", "ep": 8}
given["engine_version"] = "0.25.0"
tensor = cm.memory(cm.Scenario(**given))
data = cm.memory(cm.Scenario(**given, tp=1, dp=8, gpu_memory_utilization=0.95))
for name, budget, logged in (("TP8", tensor, 20.43), ("DP8", data, 156.9)):
    error = budget.max_concurrency / logged - 1
    print(f"{name}: {budget.max_concurrency:.1f} requests of 1M, logged {logged} ({error:+.0%})")
print(f"DP8 holds {data.max_concurrency / tensor.max_concurrency:.1f} times as many; logged 7.7")
