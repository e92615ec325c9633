#!/usr/bin/python3
"""An independent scorer of multiple-choice questions, to hold elmgraft's evaluation against.

It shares no code with elmgraft: its own reader of safetensors, config.json and tokenizer.model,
its own SentencePiece BPE encoder and an OpenELM forward pass in float64. It needs Debian's
python3-numpy and nothing else.

    score_choices.py MODEL_DIRECTORY QUESTIONS.json [--limit N]
        one line of JSON per question: index, choices, sums of log p, sums by characters
    score_choices.py MODEL_DIRECTORY QUESTIONS.json --against SAMPLES.jsonl
        score the questions of elmgraft's samples (evaluate.samples) and compare: log-likelihoods
        within 1e-4, the same right and picked choices, the same rows counted as over-long
    score_choices.py MODEL_DIRECTORY --check-encode golden_encode.jsonl
    score_choices.py MODEL_DIRECTORY --check-nll golden_nll.jsonl
        hold this program itself against reference values

QUESTIONS.json is an array of {"instruction", "input", "output", "answer"} as LLM-Adapters' sets.
Scoring is CoreNet's (its OpenELM evaluation): the prompt of its fine-tuning, the continuations
"the correct answer is X", log-likelihoods as in lm-eval.
"""

import argparse
import json
import math
import os
import re
import sys

import numpy as np

SPACE = "\u2581"  # SentencePiece writes a space as this

# ---- files -------------------------------------------------------------------------------


def read_safetensors(path):
    """All tensors of a file, widened to float64."""
    with open(path, "rb") as file:
        data = file.read()
    header_length = int.from_bytes(data[:8], "little")
    header = json.loads(data[8 : 8 + header_length])
    base = 8 + header_length
    tensors = {}
    for name, entry in header.items():
        if name == "__metadata__":
            continue
        begin, end = entry["data_offsets"]
        raw = data[base + begin : base + end]
        if entry["dtype"] == "BF16":
            bits = np.frombuffer(raw, dtype="<u2").astype(np.uint32) << 16
            values = bits.view(np.float32)
        else:
            values = np.frombuffer(raw, dtype={"F32": "<f4", "F16": "<f2"}[entry["dtype"]])
        tensors[name] = values.astype(np.float64).reshape(entry["shape"])
    return tensors


def read_weights(directory):
    index = os.path.join(directory, "model.safetensors.index.json")
    names = ["model.safetensors"]
    if os.path.exists(index):
        with open(index, encoding="utf-8") as file:
            names = sorted(set(json.load(file)["weight_map"].values()))
    tensors = {}
    for name in names:
        tensors.update(read_safetensors(os.path.join(directory, name)))
    return tensors


def protobuf_fields(data):
    """(field number, value) of each field of a protobuf message: an int for a varint, else bytes."""

    def varint(at):
        value = shift = 0
        while True:
            byte = data[at]
            at += 1
            value |= (byte & 0x7F) << shift
            shift += 7
            if byte < 0x80:
                return value, at

    at = 0
    while at < len(data):
        key, at = varint(at)
        kind = key & 7
        if kind == 0:
            value, at = varint(at)
        else:
            size, at = {1: (8, at), 5: (4, at)}[kind] if kind != 2 else varint(at)
            value = data[at : at + size]
            at += size
        yield key >> 3, value


# ---- tokenizer ---------------------------------------------------------------------------


class Tokenizer:
    """SentencePiece BPE with identity normalisation, as LLaMA's."""

    NORMAL, UNKNOWN, CONTROL, USER_DEFINED, UNUSED, BYTE = 1, 2, 3, 4, 5, 6

    def __init__(self, path):
        with open(path, "rb") as file:
            fields = list(protobuf_fields(file.read()))
        self.score = {}  # piece -> (score, id), of the pieces that text can become
        self.byte = {}  # "<0x41>" -> id
        self.unknown = 0
        self.bos = 1
        self.dummy_prefix = True
        for number, value in fields:
            if number == 2:
                self._trainer(dict(protobuf_fields(value)))
            elif number == 3:
                self._normalizer(dict(protobuf_fields(value)))
        pieces = [dict(protobuf_fields(value)) for number, value in fields if number == 1]
        for index, piece in enumerate(pieces):
            self._piece(index, piece)

    def _trainer(self, spec):
        if spec.get(3, 1) != 2:
            raise SystemExit("tokenizer.model: only BPE is known here")
        self.bos = spec.get(41, 1)

    def _normalizer(self, spec):
        self.dummy_prefix = spec.get(3, 1) == 1
        if spec.get(2, b"") or spec.get(4, 1) == 1:
            raise SystemExit("tokenizer.model: only identity normalisation is known here")

    def _piece(self, index, piece):
        text = piece[1].decode("utf-8")
        kind = piece.get(3, self.NORMAL)
        if kind == self.USER_DEFINED or kind == self.UNUSED:
            raise SystemExit("tokenizer.model: user-defined and unused pieces are not known here")
        if kind == self.NORMAL:
            score = np.frombuffer(piece.get(2, b"\0\0\0\0"), dtype="<f4")[0]
            self.score[text] = (float(score), index)
        elif kind == self.BYTE:
            self.byte[text] = index
        elif kind == self.UNKNOWN:
            self.unknown = index

    def encode(self, text):
        """The ids of a text, without BOS."""
        if not text:
            return []
        text = (" " if self.dummy_prefix else "") + text
        symbols = list(text.replace(" ", SPACE))
        while True:
            best = None  # the pair with the highest score, the leftmost of equals
            for at in range(len(symbols) - 1):
                found = self.score.get(symbols[at] + symbols[at + 1])
                if found is not None and (best is None or found[0] > best[0]):
                    best = (found[0], at)
            if best is None:
                break
            at = best[1]
            symbols[at : at + 2] = [symbols[at] + symbols[at + 1]]
        ids = []
        for symbol in symbols:
            if symbol in self.score:
                ids.append(self.score[symbol][1])
            elif self.byte:
                ids.extend(self.byte["<0x%02X>" % byte] for byte in symbol.encode("utf-8"))
            else:
                ids.append(self.unknown)
        return ids


# ---- model -------------------------------------------------------------------------------


def rms_norm(x, weight):
    return x / np.sqrt(np.mean(x * x, axis=-1, keepdims=True) + 1e-6) * weight


def rotate(x, base):
    """Rotary embedding, half-rotation form. x: [heads, tokens, head_dim]."""
    half = x.shape[-1] // 2
    rate = float(base) ** (-2.0 * np.arange(half) / x.shape[-1])
    angle = np.arange(x.shape[1])[:, None] * rate
    a, b = x[..., :half], x[..., half:]
    cosine, sine = np.cos(angle), np.sin(angle)
    return np.concatenate([a * cosine - b * sine, b * cosine + a * sine], axis=-1)


def log_softmax(x):
    x = x - x.max(axis=-1, keepdims=True)
    return x - np.log(np.exp(x).sum(axis=-1, keepdims=True))


class Model:
    def __init__(self, directory):
        with open(os.path.join(directory, "config.json"), encoding="utf-8") as file:
            self.config = json.load(file)
        self.weights = read_weights(directory)

    def logits(self, ids, last):
        """Logits [last, vocabulary] of the last positions."""
        x = self.weights["transformer.token_embeddings.weight"][ids]
        for layer in range(self.config["num_transformer_layers"]):
            w = {
                name.split(".", 3)[3]: value
                for name, value in self.weights.items()
                if name.startswith("transformer.layers.%d." % layer)
            }
            x = x + self._attention(rms_norm(x, w["attn_norm.weight"]), w, layer)
            gate, up = np.split(rms_norm(x, w["ffn_norm.weight"]) @ w["ffn.proj_1.weight"].T, 2, axis=1)
            x = x + (gate / (1 + np.exp(-gate)) * up) @ w["ffn.proj_2.weight"].T
        x = rms_norm(x[-last:], self.weights["transformer.norm.weight"])
        tied = self.config["share_input_output_layers"]
        head = "transformer.token_embeddings.weight" if tied else "lm_head.weight"
        return x @ self.weights[head].T[:, : self.config["vocab_size"]]

    def _attention(self, x, w, layer):
        queries = self.config["num_query_heads"][layer]
        groups = self.config["num_kv_heads"][layer]
        size = self.config["head_dim"]
        heads = (x @ w["attn.qkv_proj.weight"].T).reshape(len(x), -1, size).transpose(1, 0, 2)
        q, k, v = np.split(heads, [queries, queries + groups])
        if self.config["normalize_qk_projections"]:
            q = rms_norm(q, w["attn.q_norm.weight"])
            k = rms_norm(k, w["attn.k_norm.weight"])
        base = self.config["rope_freq_constant"]
        q, k = rotate(q, base), rotate(k, base)
        k = np.repeat(k, queries // groups, axis=0)
        v = np.repeat(v, queries // groups, axis=0)
        scores = q @ k.transpose(0, 2, 1) / math.sqrt(size)
        scores[:, np.triu(np.ones((len(x), len(x)), dtype=bool), 1)] = -np.inf
        scores = np.exp(scores - scores.max(axis=-1, keepdims=True))
        mixed = (scores @ v) / scores.sum(axis=-1, keepdims=True)
        return mixed.transpose(1, 0, 2).reshape(len(x), -1) @ w["attn.out_proj.weight"].T

    def log_likelihood(self, context, continuation):
        """Σ log p(continuation | context), and whether the context had to be cut at its front."""
        whole = context + continuation
        limit = self.config["max_context_length"] + 1
        ids = whole[-limit:]
        logps = log_softmax(self.logits(np.array(ids[:-1]), len(continuation)))
        return float(logps[np.arange(len(continuation)), continuation].sum()), len(whole) > limit


# ---- questions ---------------------------------------------------------------------------

INDENT = " " * 16


def prompt(row):
    """CoreNet's prompt of the LLM-Adapters sets, up to the response."""
    lines = "Below is an instruction that describes a task"
    if row["input"]:
        lines += ", paired with an input that provides further context"
    lines += ". Write a response that appropriately completes the request."
    lines += " \n\n" if row["input"] else "  \n\n"
    parts = [("Instruction", row["instruction"])]
    if row["input"]:
        parts.append(("Input", row["input"]))
    for title, text in parts:
        lines += f"{INDENT}### {title}:\n{INDENT}{text}\n{INDENT}\n"
    return lines + f"{INDENT}### Response:\n{INDENT}"


def choices(row):
    """What may be answered: from the last line of the instruction."""
    last = row["instruction"].split("\n")[-1]
    if last.endswith("Answer format: true/false"):
        return ["true", "false"]
    numbered = re.search(r"([a-z]+)(\d)$", last)
    if numbered is None:
        raise SystemExit(f"no choices in: {last}")
    return [f"{numbered[1]}{i}" for i in range(1, int(numbered[2]) + 1)]


def split_tokens(tokenizer, context, continuation):
    """lm-eval: whitespace at the end of the context goes to the continuation; the whole is encoded
    at once and split by the length of the context's encoding."""
    kept = context.rstrip()
    continuation = context[len(kept) :] + continuation
    whole = [tokenizer.bos] + tokenizer.encode(kept + continuation)
    length = 1 + len(tokenizer.encode(kept))
    return whole[:length], whole[length:]


def score(model, tokenizer, index, row):
    texts = [f"the correct answer is {choice}" for choice in choices(row)]
    context = prompt(row)
    sums, cut = [], False
    for text in texts:
        total, was_cut = model.log_likelihood(*split_tokens(tokenizer, context, text))
        sums.append(total)
        cut = cut or was_cut
    return {
        "index": index,
        "choices": choices(row),
        "answer": row["answer"],
        "logp": sums,
        "logp_per_char": [total / len(text) for total, text in zip(sums, texts)],
        "truncated": cut,
    }


# ---- elmgraft against this program -------------------------------------------------------

TOLERANCE = 1e-4


def pick(scores):
    return max(range(len(scores)), key=lambda i: scores[i])


def sample_problems(ours, sample):
    """What differs between our result and elmgraft's sample of the same question."""
    theirs = [choice["logp"] for choice in sample["choices"]]
    if len(theirs) != len(ours["logp"]):
        return ["number of choices"]
    problems = []
    if max(abs(a - b) for a, b in zip(ours["logp"], theirs)) > TOLERANCE:
        problems.append(f"log-likelihoods {ours['logp']} and {theirs}")
    if ours["choices"][sample["gold"]] != ours["answer"]:
        problems.append("right answer")
    if ours["truncated"] != sample["overlong"]:
        problems.append("over-long")
    for picked, scores in (("acc", ours["logp"]), ("acc_norm", ours["logp_per_char"])):
        best, second = sorted(scores, reverse=True)[:2]
        if best - second > 2 * TOLERANCE and pick(scores) != sample[picked]:
            problems.append(picked)
    return problems


def compare(model, tokenizer, rows, path):
    samples = read_lines(path)
    worst, wrong, cut = 0, 0, 0
    for sample in samples:
        ours = score(model, tokenizer, sample["row"], rows[sample["row"]])
        problems = sample_problems(ours, sample)
        wrong += bool(problems)
        cut += ours["truncated"]
        for problem in problems:
            print(f"row {sample['row']}: {problem}")
        for a, b in zip(ours["logp"], sample["choices"]):
            worst = max(worst, abs(a - b["logp"]))
    print(
        f"{os.path.basename(path)}: {len(samples)} questions, {wrong} differ, {cut} over-long, "
        f"largest difference of a log-likelihood {worst:.3g}"
    )
    return samples and not wrong


# ---- this program against reference values -----------------------------------------------


def read_lines(path):
    with open(path, encoding="utf-8") as file:
        return [json.loads(line) for line in file]


def check_encode(tokenizer, path):
    rows = read_lines(path)
    wrong = [row["text"] for row in rows if tokenizer.encode(row["text"]) != row["ids"]]
    for text in wrong:
        print("differs:", repr(text))
    print(f"{len(rows) - len(wrong)} of {len(rows)} encodings agree")
    return not wrong


def check_nll(model, path):
    worst = 0
    rows = read_lines(path)
    for row in rows:
        total, _ = model.log_likelihood(row["ids"][:1], row["ids"][1:])
        worst = max(worst, abs(total + row["nll_sum_f64"]) / row["n_predicted"])
    print(f"{len(rows)} texts, largest difference of a log-likelihood: {worst:.3g} per token")
    # The reference has its rotary tables in float32, as the official model code.
    return worst < 1e-6


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n", maxsplit=1)[0])
    parser.add_argument("model")
    parser.add_argument("questions", nargs="?")
    parser.add_argument("--limit", type=int)
    parser.add_argument("--against", metavar="SAMPLES")
    parser.add_argument("--check-encode", metavar="FILE")
    parser.add_argument("--check-nll", metavar="FILE")
    options = parser.parse_args()

    tokenizer = Tokenizer(os.path.join(options.model, "tokenizer.model"))
    if options.check_encode:
        return 0 if check_encode(tokenizer, options.check_encode) else 1
    model = Model(options.model)
    if options.check_nll:
        return 0 if check_nll(model, options.check_nll) else 1
    if options.questions is None:
        parser.error("QUESTIONS.json is missing")
    with open(options.questions, encoding="utf-8") as file:
        rows = json.load(file)
    if options.against:
        return 0 if compare(model, tokenizer, rows, options.against) else 1
    for index, row in enumerate(rows[: options.limit]):
        print(json.dumps(score(model, tokenizer, index, row)), flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(main())
