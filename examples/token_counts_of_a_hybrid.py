# %% [markdown]
# # Why do the logged tokens and the logged concurrency disagree?
#
# Kimi-Linear on two 24 GB cards with 2.30 GiB of KV: the log of vLLM 0.11 says 75,840 tokens and
# 2.48 requests of 120,000 tokens, which cannot both be token counts. A hybrid's pool is divided in
# blocks that linear-attention states share; old builds divide the blocks among layer groups before
# they report. See https://github.com/vllm-project/vllm/issues/28228.

# %%
import capmodel as cm

given = {
    "model": "kimi-linear-48b-a3b",
    "node": "2xRTX-3090",
    "weights": "int4",
    "available_kv_gib": 2.30,
    "max_model_len": 120_000,
}
for version in ("0.11.0", "0.20.1"):
    budget = cm.memory(cm.Scenario(engine_version=version, **given))
    print(
        f"vLLM {version}: {budget.kv_blocks} blocks of {budget.block_tokens} tokens, "
        f"{budget.blocks_per_request} per request: {budget.max_concurrency:.2f} requests, "
        f"logged as {budget.kv_tokens:,} tokens"
    )
print("the log of 0.11: 2.48 requests, 75,840 tokens")
