"""The model that training starts from, the policy, its optimiser and what samples from it, for a run's precision."""

from __future__ import annotations

from pathlib import Path
from typing import Any, NamedTuple

import torch
from peft import LoraConfig, PeftModel
from transformers import PreTrainedModel, PreTrainedTokenizerBase

from text2grad.checkpoint.trained import find_model, load_adapted
from text2grad.models.loading import end_ids, load_tokenizer, with_pad_token
from text2grad.models.lora import disable_input_casts
from text2grad.models.policy import Policy
from text2grad.rollout.fast.modules import fuse_modules
from text2grad.rollout.samplers import HFSampler, Sampler
from text2grad.rollout.vllm.completions import TrainedPolicy
from text2grad.rollout.vllm.sampler import vllm_sampler
from text2grad.trainer.config import Text2GradConfig


class InitialModel(NamedTuple):
    """What training starts from. base: the name of the model below its adapters. context: tokens that it can read."""

    model: PreTrainedModel | PeftModel
    tokenizer: PreTrainedTokenizerBase
    base: str
    end_ids: list[int]
    context: int


def load_initial(
    model: str | Path | PreTrainedModel | PeftModel,
    tokenizer: PreTrainedTokenizerBase | None,
    peft_config: LoraConfig | None,
    bf16: bool,
) -> InitialModel:
    """Load a model by its name, or take the one that is given, with its own tokenizer unless there is another.

    peft_config: of a new adapter; below an adapter the weights are frozen, and with `bf16` they are loaded so.
    """
    if isinstance(model, str | Path):
        source = find_model(model)
        base = source.base
        tokenizer = with_pad_token(tokenizer, base) if tokenizer else load_tokenizer(source.tokenizer)
        frozen_in_bf16 = bf16 and (peft_config is not None or source.adapter is not None)
        model = load_adapted(source, torch.bfloat16 if frozen_in_bf16 else torch.float32, is_trainable=True)
    else:
        base = str(model.config.name_or_path)
        tokenizer = with_pad_token(tokenizer, base) if tokenizer else load_tokenizer(base)
    context = int(getattr(model.config, "max_position_embeddings", 1 << 30))
    return InitialModel(model, tokenizer, base, end_ids(model, tokenizer), context)


def make_policy(
    model: PreTrainedModel | PeftModel, peft_config: LoraConfig | None, args: Text2GradConfig, device: torch.device
) -> Policy:
    """Return the policy with its adapter, whose initial weights depend on the seed, and its value head."""
    torch.manual_seed(args.seed)
    policy = Policy(model, peft_config, share_prompts=args.share_prompts, torch_compile=args.torch_compile)
    if args.bf16:
        disable_input_casts(policy.model)
        if device.type == "cuda" and not args.torch_compile:  # which fuses them itself
            fuse_modules(policy)  # the reference's too
    if args.gradient_checkpointing:
        policy.model.gradient_checkpointing_enable({"use_reentrant": False})
    return policy


def make_optimizer(policy: Policy, args: Text2GradConfig, fused: bool) -> torch.optim.AdamW:
    """Return AdamW on the trainable weights, the value head at its own learning rate.

    fused: without temporary copies of all weights; on the CPU it is no faster.
    """
    groups: list[dict[str, Any]] = [
        {"params": [p for n, p in policy.trainable().items() if not n.startswith("value_head")]},
        {"params": list(policy.value_head.parameters()), "lr": args.value_learning_rate},
    ]
    return torch.optim.AdamW(groups, lr=args.learning_rate, weight_decay=args.weight_decay, fused=fused)


def make_sampler(args: Text2GradConfig, hf_sampler: HFSampler, trained: TrainedPolicy) -> Sampler:
    """Return what samples the completions that are trained on: the policy itself, or vLLM with its weights."""
    if args.rollouts == "transformers":
        return hf_sampler
    return vllm_sampler(
        args.rollouts,
        trained,
        temperature=args.temperature,
        bf16=bool(args.bf16),
        server_base_url=args.vllm_server_base_url,
        server_timeout=args.vllm_server_timeout,
        weight_transfer=args.vllm_weight_transfer,
        gpu_memory_utilization=args.vllm_gpu_memory_utilization,
    )
