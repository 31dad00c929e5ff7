"""Lines that a healthy job prints by the thousand must not be kept for this floor."""

from __future__ import annotations

import pytest

from forensics.knowledge import anchors

HEALTHY = [
    "[2026-01-05 10:00:03 TP0] Decode batch. #running-req: 12, #token: 4096, token usage: 0.12, cuda graph: True, gen throughput (token/s): 812.33, #queue-req: 0",
    "[2026-01-05 10:00:03 TP0] Prefill batch. #new-seq: 1, #new-token: 512, #cached-token: 0, token usage: 0.00, #running-req: 3, #queue-req: 0",
    "INFO 01-05 10:00:03 [loggers.py:116] Engine 000: Avg prompt throughput: 12.0 tokens/s, Avg generation throughput: 80.1 tokens/s, Running: 3 reqs, Waiting: 0 reqs, GPU KV cache usage: 1.2%, Prefix cache hit rate: 0.0%",
    'INFO:     10.0.0.14:38344 - "POST /v1/chat/completions HTTP/1.1" 200 OK',
    " [2026-01-05 10:00:03] iteration      100/  500000 | consumed samples:       102400 | elapsed time per iteration (ms): 1234.5 | learning rate: 1.0E-04 | global batch size:  1024 | lm loss: 2.345678E+00 | loss scale: 1.0 | grad norm: 0.512 |",
    "{'loss': 2.3456, 'grad_norm': 0.51, 'learning_rate': 9.9e-05, 'epoch': 0.12}",
    "step: 100  loss: 2.3456  memory: 63.21GiB(79.81%)  tps: 5,123  tflops: 301.2  mfu: 30.45%",
    "Epoch 3:  45%|####      | 450/1000 [10:00<12:13,  1.33s/it, v_num=3, train_loss=0.512]",
    "[Rank 0] step=1000, skipped=0, lr=[0.0001], mom=[(0.9, 0.95)] | iter time (s): 1.23 samples/sec: 830.1",
    "| prompt eval time =     123.45 ms /    12 tokens (   10.29 ms per token,    97.20 tokens per second)",
    "[01/05/2026-10:00:03] [TRT-LLM] [I] iter = 100, global_rank = 0, num_scheduled_requests: 8, host_step_time = 12.3ms",
    "10:00:03 GPU utilization 98%, memory used 71234 MiB, temperature 63C, power 650W",
]


@pytest.mark.parametrize("line", HEALTHY, ids=lambda line: line[:30])
def test_no_literal_stands_in_a_healthy_line(line: str) -> None:
    assert [a.literal for a in anchors() if a.literal in line.encode()] == []


def test_literals_are_unique_and_carry_their_owner() -> None:
    found = anchors()
    assert all(anchor.owner == "knowledge" and anchor.literal for anchor in found)
    assert min(len(anchor.literal) for anchor in found) >= 6
