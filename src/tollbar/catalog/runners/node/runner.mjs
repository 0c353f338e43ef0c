#!/usr/bin/env node
// Tollbar's runner for Node: what `node:crypto` costs, by the runner contract (docs/runners.md), version 2.

import crypto from "node:crypto";
import { readSync, writeSync } from "node:fs";

import { Chunks } from "./chunks.mjs";
import { OFFERS, prepare } from "./operations.mjs";
import { Refusal, Task } from "./task.mjs";

const CONTRACT = 2;
const RECEIPT = {
  provider: `Node ${process.versions.node} crypto, OpenSSL ${process.versions.openssl}, V8 ${process.versions.v8}`,
  name: `node crypto ${process.versions.node}`,
  parts: {
    backend: `OpenSSL ${process.versions.openssl}, ${process.config.variables.node_shared_openssl ? "a shared library" : "part of node"}`,
    runtime: `V8 ${process.versions.v8}`,
    flags: [...process.execArgv, process.env.NODE_OPTIONS ?? ""].join(" ").trim() || "none",
    fips: String(Boolean(crypto.getFips())),
  },
};

// Standard input is read by calls that block: between two chunks the main thread sleeps in the kernel, and no event
// loop turns, so what runs is V8's own threads and nothing else.
const buffer = Buffer.alloc(1 << 16);
let heard = "";

/** The next line as a value; undefined at the end of the input. */
function hear() {
  let end;
  while ((end = heard.indexOf("\n")) < 0) {
    const count = readSync(0, buffer);
    if (count === 0) {
      if (heard === "") return undefined;
      end = heard.length;
      break;
    }
    heard += buffer.toString("utf8", 0, count);
  }
  const line = heard.slice(0, end);
  heard = heard.slice(end + 1);
  try {
    return JSON.parse(line);
  } catch (error) {
    throw new Refusal("failed", `the line is not of the runner contract: ${error.message}`);
  }
}

function say(line) {
  writeSync(1, `${JSON.stringify(line)}\n`);
}

function perform() {
  const task = new Task(hear() ?? {});
  if (task.contract !== CONTRACT) {
    throw new Refusal("failed", `the task has contract ${task.contract}, and this runner supports contract ${CONTRACT}`);
  }
  const wanted = task.provider.package ?? "crypto";
  if (wanted !== "crypto") throw new Refusal("unsupported", `the package must be crypto, and is ${wanted}`);
  if (task.mode === "list") return { receipt: RECEIPT, offers: OFFERS };
  if (task.mode !== "verify" && task.mode !== "measure") throw new Refusal("failed", `the mode must be list, verify or measure, and is ${task.mode}`);
  const operation = prepare(task);
  return task.mode === "verify" ? verify(task, operation) : measure(operation);
}

function verify(task, operation) {
  operation.perform();
  const proof = operation.prove();
  if (task.inputs.expected_hex !== undefined && proof.answer === undefined) {
    throw new Refusal("failed", "the known answer was not tested, because inputs are missing");
  }
  return { receipt: RECEIPT, proof };
}

function measure(operation) {
  const chunks = new Chunks(operation.perform);
  const parts = { ...RECEIPT.parts, "warm-up": `${Math.round(chunks.warmUpNs / 1e6)} ms` };
  say({ ready: { ...RECEIPT, parts, operation_ns: chunks.eachNs } });
  let line;
  while ((line = hear()) !== undefined) {
    const { seconds = 0, operations = 0 } = line?.advance ?? {};
    const fits = Number.isFinite(seconds) && seconds >= 0 && Number.isInteger(operations) && operations >= 0;
    if (!fits || (seconds === 0 && operations === 0)) {
      throw new Refusal("failed", `cannot advance: ${JSON.stringify(line)}`);
    }
    say(chunks.advance(seconds * 1e9, operations));
  }
  return {};
}

try {
  say({ outcome: "ok", ...perform() });
} catch (error) {
  // What OpenSSL or Node refuses is an answer in their own words; the lab shows it as the row's reason.
  const outcome = error instanceof Refusal ? error.outcome : "failed";
  say({ outcome, reason: error.message || String(error), receipt: RECEIPT });
}
