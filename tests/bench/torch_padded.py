#!/usr/bin/env python3
"""An epoch of PyTorch over batches of real row lengths, each padded to its longest row.

    python3 torch_padded.py PEER.py LENGTHS [--every N] [--batch 8] [--seed 0] ARGUMENTS OF PEER...

LENGTHS holds a row's number of tokens on each line. Ids are random; positions behind a row are
masked in the loss (the causal mask keeps them from the row itself). PEER.py brings model, adapter,
optimizer and precision: it is run for one tiny step, and what it made is used. Prints a JSON line.
"""
import argparse
import contextlib
import io
import json
import resource
import runpy
import sys
import time

arguments = argparse.ArgumentParser()
arguments.add_argument("peer")
arguments.add_argument("lengths")
arguments.add_argument("--every", type=int, default=1, help="time each N-th batch and scale")
arguments.add_argument("--rows", type=int, default=8, help="rows of a batch")
own, passed = arguments.parse_known_args()

sys.argv = [own.peer, *passed, "--batch", "1", "--seq", "8", "--warmup", "0", "--steps", "1"]
with contextlib.redirect_stdout(io.StringIO()):
    peer = runpy.run_path(own.peer)
torch, model, optimizer, trained, options = (peer[k] for k in ("torch", "m", "opt", "tr", "a"))

lengths = [int(line) for line in open(own.lengths)]
batches = [lengths[i : i + own.rows] for i in range(0, len(lengths), own.rows)]
generator = torch.Generator().manual_seed(options.seed)


def step(rows):
    ids = torch.randint(3, options.vocab, (len(rows), max(rows)), generator=generator)
    labels = ids.clone()
    for row, length in enumerate(rows):
        labels[row, length:] = -100
    begun = time.perf_counter()
    with torch.autocast("cpu", dtype=torch.bfloat16, enabled=options.dtype == "bf16"):
        loss = model(ids, labels)
    loss.backward()
    torch.nn.utils.clip_grad_norm_(trained, options.clip)
    optimizer.step()
    optimizer.zero_grad(set_to_none=True)
    return time.perf_counter() - begun


def padded(rows):
    return len(rows) * max(rows)


timed = batches[own.every // 2 :: own.every]
step(timed[0])  # not counted
seconds = [step(rows) for rows in timed]
tokens = sum(map(padded, batches))
scale = tokens / sum(map(padded, timed))
print(json.dumps({"epoch_seconds": round(sum(seconds) * scale, 3), "batches": len(batches), "timed": len(timed),
                  "tokens": sum(lengths), "padded_tokens": tokens, "method": options.method, "dtype": options.dtype,
                  "peak_rss_mb": round(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024, 1)}))
