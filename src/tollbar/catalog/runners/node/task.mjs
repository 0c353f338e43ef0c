// Task: its settings, each read or refused, its inputs, and the data made from its seed.

/** Reason for a missing result: `unsupported` by Node, or `failed` although it should succeed. */
export class Refusal extends Error {
  constructor(outcome, reason) {
    super(reason);
    this.outcome = outcome;
  }
}

const MOST_BYTES = 2 ** 30;

export class Task {
  constructor(said) {
    Object.assign(this, said);
    this.provider = said.provider ?? {};
    this.inputs = said.inputs ?? {};
    // Settings are removed when they are read, so that the rest is unread.
    this.left = new Map(Object.entries(said.setting ?? {}));
  }

  #take(name, missing) {
    const value = this.left.has(name) ? this.left.get(name) : missing;
    this.left.delete(name);
    return value;
  }

  /** Reads a setting that must be one of these words; the first is the default. */
  word(name, words) {
    const value = this.#take(name, words[0]);
    if (!words.includes(value)) {
      throw new Refusal("failed", `the setting ${name} must be ${words.join(" or ")}, and is ${JSON.stringify(value)}`);
    }
    return value;
  }

  /** Reads the setting `bytes`: the length of the message. */
  bytes(missing) {
    const value = this.#take("bytes", missing);
    if (!Number.isInteger(value) || value < 0 || value > MOST_BYTES) {
      throw new Refusal("failed", `the setting bytes must be a whole number up to ${MOST_BYTES}, and is ${JSON.stringify(value)}`);
    }
    return value;
  }

  allSettingsRead() {
    const left = [...this.left.keys()];
    if (left.length > 0) {
      const what = `${this.op} of ${this.choice} (${this.family})`;
      throw new Refusal("failed", `settings that ${what} does not read: ${left.join(", ")}`);
    }
  }

  /** Returns an input in hexadecimal, or undefined. */
  hex(name) {
    const text = this.inputs[`${name}_hex`];
    return text === undefined ? undefined : Buffer.from(text, "hex");
  }

  /** Returns the message of the known answer, or undefined. */
  known() {
    return this.hex("of") ?? (this.inputs.of === undefined ? undefined : Buffer.from(this.inputs.of, "utf8"));
  }

  /** Returns pseudo-random bytes that depend only on the seed (SplitMix64, as in the engine). */
  filled(bytes, salt = 0n) {
    const words = Buffer.alloc(Math.ceil(bytes / 8) * 8);
    let state = BigInt(this.seed ?? 0) ^ salt;
    for (let at = 0; at < words.length; at += 8) {
      state = BigInt.asUintN(64, state + 0x9e3779b97f4a7c15n);
      let z = state;
      z = BigInt.asUintN(64, (z ^ (z >> 30n)) * 0xbf58476d1ce4e5b9n);
      z = BigInt.asUintN(64, (z ^ (z >> 27n)) * 0x94d049bb133111ebn);
      words.writeBigUInt64LE(z ^ (z >> 31n), at);
    }
    return words.subarray(0, bytes);
  }
}

/** Returns a copy with its first bit flipped; one zero byte for empty data. */
export function tampered(data) {
  if (data.length === 0) return Buffer.alloc(1);
  const other = Buffer.from(data);
  other[0] ^= 1;
  return other;
}

/** Returns a copy with a bit of its last byte flipped: the first bytes of a DER signature are structure, not value. */
export function tamperedAtEnd(data) {
  const other = Buffer.from(data);
  other[other.length - 1] ^= 1;
  return other;
}

/** Proof of an operation: valid inputs accepted, wrong ones refused. */
export class Proof {
  answer = undefined;
  accepted = [];
  refused = [];
  not_tried = [];

  accept(what, accepted) {
    if (!accepted) throw new Refusal("failed", `not accepted: ${what}`);
    this.accepted.push(what);
  }

  refuse(what, refused) {
    if (!refused) throw new Refusal("failed", `not refused: ${what}`);
    this.refused.push(what);
  }

  leave(what, why) {
    this.not_tried.push(`${what}: ${why}`);
  }
}
