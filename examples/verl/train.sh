#!/usr/bin/env bash
# PPO in verl with span rewards: sampling in vLLM, the critic in the agent-loop workers, training in FSDP2.
# On one node with NGPUS GPUs; on more, start a Ray cluster first (`ray start --head`, `ray start --address=...`) and set
# NNODES. Further arguments override settings, as in: bash train.sh trainer.total_training_steps=100
set -euo pipefail

MODEL=${MODEL:-Qwen/Qwen2.5-0.5B-Instruct}
DATA=${DATA:-data/verl}
NGPUS=${NGPUS:-1}
NNODES=${NNODES:-1}

python -m verl.trainer.main_ppo \
  data.train_files="$DATA/train.parquet" \
  data.val_files="$DATA/val.parquet" \
  data.train_batch_size=32 \
  data.max_prompt_length=1024 \
  data.max_response_length=128 \
  actor_rollout_ref.model.path="$MODEL" \
  actor_rollout_ref.actor.strategy=fsdp2 \
  actor_rollout_ref.actor.optim.lr=1e-6 \
  actor_rollout_ref.actor.ppo_mini_batch_size=32 \
  actor_rollout_ref.actor.ppo_micro_batch_size_per_gpu=8 \
  actor_rollout_ref.actor.use_kl_loss=True \
  actor_rollout_ref.actor.kl_loss_coef=0.02 \
  actor_rollout_ref.ref.log_prob_micro_batch_size_per_gpu=16 \
  actor_rollout_ref.rollout.name=vllm \
  actor_rollout_ref.rollout.n=4 \
  actor_rollout_ref.rollout.tensor_model_parallel_size=1 \
  actor_rollout_ref.rollout.gpu_memory_utilization=0.4 \
  actor_rollout_ref.rollout.log_prob_micro_batch_size_per_gpu=16 \
  actor_rollout_ref.rollout.agent.default_agent_loop=text2grad \
  algorithm.adv_estimator=text2grad_rloo_tokens \
  +algorithm.text2grad.critic.name=grounding \
  reward.num_workers=1 \
  reward.reward_manager.name=text2grad \
  trainer.n_gpus_per_node="$NGPUS" \
  trainer.nnodes="$NNODES" \
  trainer.total_epochs=2 \
  trainer.logger='["console"]' \
  "$@"
