#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""Two processes learn y = 2a - 3b, each from its own samples; torch averages their gradients. The
operator sets MASTER_ADDR, MASTER_PORT, RANK and WORLD_SIZE."""

import torch
import torch.distributed as dist
from torch.nn.parallel import DistributedDataParallel

dist.init_process_group("gloo")
rank, size = dist.get_rank(), dist.get_world_size()
torch.manual_seed(rank)
model = DistributedDataParallel(torch.nn.Linear(2, 1, bias=False))
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
for _ in range(200):
    samples = torch.randn(64, 2)
    loss = ((model(samples).squeeze() - samples @ torch.tensor([2.0, -3.0])) ** 2).mean()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
first, second = model.module.weight.detach()[0].tolist()
print(f"rank {rank} of {size}: weights {first:.1f} {second:.1f}", flush=True)
dist.destroy_process_group()
